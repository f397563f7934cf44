"""The simulated world: deterministic fault tests of a bot on trio's clock.

    async def test_hello(world):
        alice = world.telegram.user("alice")
        world.model.says("Hello, Alice.")
        await alice.says("hi")
        await world.quiet()
        assert alice.sees() == ["Hello, Alice."]

`explore_crashes` plays such a story once for each boundary between the bot and its world, and kills the bot there.
See docs/testing.md.
"""

from hermes_trio.testing.checker import Broken, check, check_database, violations
from hermes_trio.testing.coverage import sometimes
from hermes_trio.testing.direct import direct_bot
from hermes_trio.testing.explore import Diverged, Exploration, Verdict, explore_crashes, run_world, verify_crashes
from hermes_trio.testing.faults import Fault, Missed
from hermes_trio.testing.fence import Crashed, Passed
from hermes_trio.testing.guards import LeftTheWorld
from hermes_trio.testing.ledger_rules import Violation
from hermes_trio.testing.life import Life, runtime_bot
from hermes_trio.testing.world import Stuck, World

__all__ = [
    "Broken",
    "Crashed",
    "Diverged",
    "Exploration",
    "Fault",
    "LeftTheWorld",
    "Life",
    "Missed",
    "Passed",
    "Stuck",
    "Verdict",
    "Violation",
    "World",
    "check",
    "check_database",
    "direct_bot",
    "explore_crashes",
    "run_world",
    "runtime_bot",
    "sometimes",
    "verify_crashes",
    "violations",
]
