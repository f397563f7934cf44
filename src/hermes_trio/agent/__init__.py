"""The loop of model and tools that turns and sub-agents share."""

from hermes_trio.agent.loop import PROGRESS, Agent, Answer, Journal, NoAnswer, NoAnswerKind

__all__ = ["PROGRESS", "Agent", "Answer", "Journal", "NoAnswer", "NoAnswerKind"]
