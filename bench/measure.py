"""How a measurement is written: a module of this folder offers `measure()`, which yields rows of the table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from attrs import frozen


@frozen
class Measurement:
    """One row: what was measured, how much, in which unit, and under which circumstances."""

    name: str
    value: float
    unit: str
    circumstances: str = ""


class Bench(Protocol):
    """A module of measurements."""

    def measure(self) -> Iterator[Measurement]:
        """Runs them, some seconds at most, and yields each as soon as it is known."""
