"""Layout of blocks: the writer that turns a walk over a document into text and spans.

It knows lines, list markers and indentation, and nothing of Markdown. The rule: line breaks and span starts are only
wanted, and come true with the first text that follows; so nothing begins or ends with them, no block leaves a hole.
"""

from __future__ import annotations

from attrs import evolve

from hermes_trio.text.body import Body
from hermes_trio.text.split import tidy_spans


class Writer:
    """Collects the text and the spans of one document."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._spans: list[tuple[int, int, str, str]] = []
        # Open spans, the innermost last. The start of one is None until text follows; -1: it shows nothing.
        self._open: list[tuple[int | None, str, str]] = []
        self._breaks = 0
        # The marker of a list item that has no text yet; it stands on the line of the item's first text.
        self._lead = ""
        self.indent = ""

    @property
    def position(self) -> int:
        """Code points written so far."""
        return self._length

    def want(self, breaks: int) -> None:
        """The next text begins a block, `breaks` line breaks after the last; right behind a marker if one waits."""
        if not self._lead:
            self._breaks = max(self._breaks, breaks)

    def mark(self, marker: str) -> None:
        """A list item begins: its marker goes before its first text."""
        self._lead = (self._lead or self.indent) + marker

    def write(self, text: str) -> None:
        """Text of the current block; its further lines get the indentation."""
        if not text:
            return
        self._begin_line()
        self._begin_spans()
        self._append(text.replace("\n", "\n" + self.indent) if self.indent else text)

    def raw(self, text: str, kind: str, argument: str = "") -> None:
        """Lines of their own that are kept as they are, without indentation, as one span."""
        self.end_marker()
        self._break_line()
        self._begin_spans()
        start = self._length
        self._append(text)
        self._spans.append((start, self._length, kind, argument))

    def end_marker(self) -> None:
        """A marker that still waits for a text gets a line of its own."""
        if self._lead:
            self._break_line()
            self._append(self._line_start().rstrip())
            self._breaks = 1

    def open(self, kind: str, argument: str = "") -> None:
        """A span begins at the next text. One without a kind, or inside another of its kind, shows nothing."""
        shown = kind and all(kind != other for _, other, _ in self._open)
        self._open.append((None if shown else -1, kind, argument))

    def close(self) -> None:
        """The innermost open span ends here."""
        start, kind, argument = self._open.pop()
        if start is not None and start >= 0:
            self._spans.append((start, self._length, kind, argument))

    def body(self) -> Body:
        """What was written, without white space at its ends, but for the indentation of a `pre`."""
        text = "".join(self._pieces).rstrip()
        # Spans were noted as they ended; of two over the same text the outer ended later and goes first.
        spans = tidy_spans(text, self._spans[::-1])
        lead = min([len(text) - len(text.lstrip()), *(span.start for span in spans if span.kind == "pre")])
        return Body(text[lead:], tuple(evolve(span, start=span.start - lead) for span in spans))

    def _begin_spans(self) -> None:
        if self._open:
            at = self._length
            self._open = [(at if start is None else start, kind, more) for start, kind, more in self._open]

    def _begin_line(self) -> None:
        if self._lead or self._breaks or not self._length:
            self._break_line()
            self._append(self._line_start())

    def _break_line(self) -> None:
        if self._length:
            self._append("\n" * self._breaks)
        self._breaks = 0

    def _line_start(self) -> str:
        lead, self._lead = self._lead, ""
        return lead or self.indent

    def _append(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
