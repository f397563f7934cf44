"""The fakes on loopback, for a person: `python -m hermes_fakes telegram --port 8081 --token 123:abc`.

Both understand the control interface (hermes_fakes.control), so curl can play the people and the faults.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import trio

from hermes_fakes.loopback import listen
from hermes_fakes.model import open_model_fake
from hermes_fakes.telegram import DEFAULT_TOKEN, open_telegram_fake


async def serve_telegram(
    port: int,
    host: str = "127.0.0.1",
    *,
    token: str = DEFAULT_TOKEN,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves a fresh fake Telegram on loopback until cancelled; starts with the port."""
    async with open_telegram_fake(token, epoch=time.time()) as fake, trio.open_nursery() as nursery:
        task_status.started(await listen(fake, nursery, port, host))
        await trio.sleep_forever()


async def serve_model(
    port: int, host: str = "127.0.0.1", *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
) -> None:
    """Serves a fresh fake model on loopback until cancelled; starts with the port."""
    async with open_model_fake(epoch=time.time()) as fake, trio.open_nursery() as nursery:
        task_status.started(await listen(fake, nursery, port, host))
        await trio.sleep_forever()


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hermes_fakes", description="The other side of the wire, on loopback.")
    fakes = parser.add_subparsers(dest="fake", required=True)
    for name, port in (("telegram", 8081), ("model", 8082)):
        one = fakes.add_parser(name)
        one.add_argument("--port", type=int, default=port)
        one.add_argument("--host", default="127.0.0.1")
    fakes.choices["telegram"].add_argument("--token", default=DEFAULT_TOKEN)
    return parser


async def run(options: argparse.Namespace) -> None:
    """Serves the fake that the options name, and says where."""
    async with trio.open_nursery() as nursery:
        if options.fake == "telegram":
            port = await _start_telegram(nursery, options)
        else:
            port = await nursery.start(serve_model, options.port, options.host)
        base = f"http://{options.host}:{port}"
        sys.stderr.write(f"fake {options.fake} on {base}, control on {base}/control/\n")


async def _start_telegram(nursery: trio.Nursery, options: argparse.Namespace) -> int:
    async def serve(task_status: trio.TaskStatus[int]) -> None:
        await serve_telegram(options.port, options.host, token=options.token, task_status=task_status)

    port: int = await nursery.start(serve)
    return port


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until interrupted."""
    try:
        trio.run(run, parser().parse_args(arguments))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
