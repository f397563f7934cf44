"""The loop of model and tools that turns and sub-agents share."""

from hermes_trio.agent.loop import Agent, Answer, Journal, NoAnswer, NoAnswerKind

__all__ = ["Agent", "Answer", "Journal", "NoAnswer", "NoAnswerKind"]
