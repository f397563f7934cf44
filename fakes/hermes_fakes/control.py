"""The control interface of a fake: a person with curl, or a test in another process, makes people act and injects
faults.

    curl -d '{"user": "alice", "text": "hi"}' localhost:8081/control/say
    curl localhost:8081/control/screen?user=alice

Everything under /control/ is answered without faults. A mistake in a control request is a 400 that says what was
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from hermes_fakes.faults import EFFECTS, Call
from hermes_fakes.http import Reply, Request, json_reply
from hermes_fakes.server import Server

PREFIX = "/control/"
JSON = dict[str, Any]
Action = Callable[[JSON], Any]


def dispatch(actions: Mapping[str, Action], request: Request) -> Reply | None:
    """Runs the action that the path names on the arguments of query and body; None outside of /control/."""
    if not request.path.startswith(PREFIX):
        return None
    name = request.path.removeprefix(PREFIX)
    if name not in actions:
        return json_reply({"error": f"no {name!r}", "known": sorted(actions)}, 404)
    try:
        args: JSON = {**request.query, **(request.json() if request.body else {})}
        result = actions[name](args)
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        return json_reply({"error": f"{type(error).__name__}: {error}"}, 400)
    return json_reply({"ok": True} if result is None else result)


def common_actions(server: Server[Any]) -> dict[str, Action]:
    """What every fake understands: fault, faults, requests, refuse, outage, admit."""
    return {
        "fault": lambda args: _add_fault(server, args),
        "faults": lambda args: [_fault_line(fault) for fault in server.faults.all],
        "requests": lambda args: [request_line(call) for call in server.requests],
        "refuse": lambda args: server.refuse(float(args.get("seconds", "inf"))),
        "outage": lambda args: server.outage(float(args.get("seconds", "inf"))),
        "admit": lambda args: server.admit(),
    }


def _add_fault(server: Server[Any], args: JSON) -> JSON:
    """{"effect": NAME, "methods": [...], "contains", "nth", "count", "seconds", "with": {the effect's own}}"""
    if args["effect"] not in EFFECTS:
        raise ValueError(f"no effect {args['effect']!r}; known: {', '.join(EFFECTS)}")
    effect = EFFECTS[args["effect"]](**args.get("with", {}))
    options = {name: args[name] for name in ("contains", "nth", "count", "seconds") if name in args}
    fault = server.faults.add(effect, *args.get("methods", ()), **options)
    return _fault_line(fault)


def _fault_line(fault: Any) -> JSON:
    return {"effect": repr(fault.effect), "methods": sorted(fault.methods), "seen": fault.seen, "hits": fault.hits}


def request_line(call: Call) -> JSON:
    """One request as JSON."""
    fault = None if call.fault is None else repr(call.fault.effect)
    return {"method": call.method, "args": call.args, "time": call.time, "outcome": call.outcome, "fault": fault}


def plain(value: Any) -> Any:
    """An attrs value as JSON."""
    return attrs.asdict(value)
