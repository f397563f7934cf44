"""What the fake model understands under /control/. See hermes_fakes.control.

    curl -d '{"when": "hi", "script": [{"says": {"text": "Hello there", "chunks": 3, "interval": 0.2}}]}' \
        localhost:8082/control/script

A script is a list of verbs with their arguments. Without "when" it answers the next request. A "hold" waits for
POST /control/release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from hermes_fakes.control import JSON, Action, common_actions, dispatch, request_line
from hermes_fakes.http import Reply, Request

if TYPE_CHECKING:
    from hermes_fakes.model.fake import ModelFake
    from hermes_fakes.model.script import Script

VERBS = frozenset({"says", "thinks", "calls", "waits", "fails", "errors", "stalls", "cuts", "finishes", "then", "hold"})


def answer_control(fake: ModelFake, request: Request) -> Reply | None:
    """None for a request that is not one of the control interface."""
    return dispatch(_actions(fake), request)


def _actions(fake: ModelFake) -> dict[str, Action]:
    return {
        **common_actions(fake),
        "script": lambda args: _script(fake, args),
        "release": lambda args: fake.release(),
        "requests": lambda args: [
            {**request_line(call), "aborted": call.aborted, "finished": call.finished} for call in fake.requests
        ],
        "rules": lambda args: [{"pattern": str(rule.pattern), "uses": rule.uses} for rule in fake.rules],
    }


def _script(fake: ModelFake, args: JSON) -> None:
    steps = args.get("script") or [{"says": {"text": args["says"]}}]
    for step in steps:
        unknown = set(step) - VERBS
        if unknown:
            raise ValueError(f"no verb {', '.join(sorted(unknown))}; known: {', '.join(sorted(VERBS))}")
    script = fake.when(args["when"], once=bool(args.get("once"))).script() if "when" in args else fake.script()
    for step in steps:
        for verb, given in step.items():
            script = _apply(fake, script, verb, given)


def _apply(fake: ModelFake, script: Script, verb: str, given: Any) -> Script:
    if verb == "hold":
        event = trio.Event()
        fake.held.append(event)
        return script.holds(event)
    options = given if isinstance(given, dict) else {}
    positional = () if isinstance(given, dict) or given is None else (given,)
    changed: Script = getattr(script, verb)(*positional, **options)
    return changed
