"""Bodies cut into messages that a wire takes, and put together again.

A part is exactly what a screen shows: platforms trim messages, so the white space at a border belongs to no part.
Only the indentation of the first line inside a `pre` stays. What lies between two parts is called a gap; a gap holds
nothing visible. The invariant, for every body and its parts:

    join(parts, gaps(body.text, parts)) == body.text        and no gap has anything visible in it

The cut of a part looks at nothing behind its own window, so that in a growing text a part that was full stays what it
is. The one rule: every round takes at least one code point; what cannot be kept (an indentation or a character longer
than a whole message) is given up, never the progress.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from hermes_trio.text.body import Body, Span
from hermes_trio.text.graphemes import is_boundary, last_boundary
from hermes_trio.text.units import WIDEST, Unit, fit, measure
from hermes_trio.text.visible import has_visible

MAX_SPANS = 100
"""The most spans that a message may carry (Telegram Bot API: at most 100 entities are honoured)."""

ELLIPSIS = "…"

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_LINE = re.compile(r"[\r\n\u2028\u2029]")
_SENTENCE = re.compile(r"[.!?…][\"'”’»)\]*_]*(?=\s)|[。！？]")
_WORD = re.compile(r"\s|[、，；]")


def split(
    body: Body,
    limit: int,
    unit: Unit,
    *,
    reserve: int = 0,
    max_spans: int | None = MAX_SPANS,
    weigh: Callable[[Body], int] | None = None,
) -> tuple[Body, ...]:
    """The body as messages of at most `limit - reserve` units each; none for a body that shows nothing.

    limit: what the wire takes, in `unit`. reserve: units kept free for what is put before a part later. max_spans: a
    part with more is cut earlier; None for no bound. weigh: the units that a part really takes, for a wire that
    writes spans as markup; None when it is the length of the text.

    A cut falls between paragraphs where it can, else between lines, sentences, words; never inside a grapheme unless
    that alone is longer than a part. Spans are cut at the border and go on in the next part, so a `pre` stays a `pre`
    with its language in both. Raises ValueError when the limit leaves no room for one code point, or max_spans is
    below 1.
    """
    pieces = _Splitter(body, limit - reserve, unit, max_spans, weigh).pieces()
    return tuple(part for part, _ in pieces)


def clip(
    body: Body,
    limit: int,
    unit: Unit,
    *,
    max_spans: int | None = MAX_SPANS,
    weigh: Callable[[Body], int] | None = None,
) -> Body:
    """The body where it must be one message: itself when it fits, else its first part and an ellipsis.

    The arguments are those of `split`. Raises ValueError when the limit leaves no room for that.
    """
    whole, end = next(_Splitter(body, limit, unit, max_spans, weigh).pieces(), (Body(""), 0))
    if not has_visible(body.text[end:]):
        return whole
    budget = limit - measure(ELLIPSIS, unit)
    first, _ = next(_Splitter(body, budget, unit, max_spans, weigh).pieces())
    return Body(first.text + ELLIPSIS, first.spans)


def gaps(original: str, parts: Sequence[Body]) -> tuple[str, ...]:
    """What lies before, between and behind the parts in the original: one more than there are parts.

    Raises ValueError when the parts are not the original, in order and complete, but for what cannot be seen.
    """
    found: list[str] = []
    position = 0
    for part in parts:
        start = original.find(part.text, position)
        if start < 0:
            raise ValueError("a part is not in the original, or not in this order")
        found.append(original[position:start])
        position = start + len(part.text)
    found.append(original[position:])
    if any(map(has_visible, found)):
        raise ValueError("the parts leave out something that can be seen")
    return tuple(found)


def join(parts: Sequence[Body], between: Sequence[str] | None = None) -> str:
    """The text of the parts together: with their gaps exactly the original, else with a line break at each border.

    Without white space both are equal.
    """
    if between is None:
        return "\n".join(part.text for part in parts)
    return between[0] + "".join(part.text + gap for part, gap in zip(parts, between[1:], strict=True))


@frozen
class _Splitter:
    """One body and the limits that it is cut to. Offsets count code points of the body's text."""

    body: Body
    budget: int
    unit: Unit
    max_spans: int | None
    weigh: Callable[[Body], int] | None

    def pieces(self) -> Iterator[tuple[Body, int]]:
        """Each part, and where it ends."""
        room = WIDEST[self.unit]
        if self.budget < room:
            raise ValueError(f"{self.budget} {self.unit} leave no room for a character; at least {room} are needed")
        if self.max_spans is not None and self.max_spans < 1:
            raise ValueError("a part must be allowed at least one span")
        length, position = len(self.body.text.rstrip()), 0
        while position < length:
            start = self._skip_blank(position)
            part, end = self._piece(start, length)
            if has_visible(part.text):
                yield part, start + len(part.text)
            position = end

    def _piece(self, start: int, length: int) -> tuple[Body, int]:
        """The part that begins at `start`, and where the rest begins."""
        budget = self.budget
        while True:
            window = self._window(start, budget)
            end = length if window >= length else self._cut(start, window)
            part = _slice(self.body, start, start + len(self.body.text[start:end].rstrip()), self.max_spans)
            over = self.weigh(part) - self.budget if self.weigh else 0
            if over <= 0 or budget <= WIDEST[self.unit]:
                return part, end
            # The markup is taken off the text; the part is cut again with so much less.
            budget = max(min(budget, measure(part.text, self.unit)) - over, WIDEST[self.unit])

    def _skip_blank(self, position: int) -> int:
        """The first offset from `position` that belongs to a part.

        White space belongs to none, but for the indentation in a `pre`, unless that alone is longer than a part.
        """
        text = self.body.text
        end = _skip_space(text, position)
        for span in self.body.spans:
            if span.kind == "pre" and span.start < end < span.start + span.length:
                lines = [line.end() for line in _LINE.finditer(text, position, end)]
                start = max(lines[-1] if lines else position, span.start)
                return start if has_visible(text[start : self._window(start, self.budget)]) else end
        return end

    def _window(self, start: int, budget: int) -> int:
        """How far a part that begins at `start` may reach, by its length and its number of spans."""
        end = fit(self.body.text, start, budget, self.unit)
        if self.max_spans is None or len(self.body.spans) <= self.max_spans:
            return end
        begins = [span.start for span in self.body.spans if span.start + span.length > start and span.start < end]
        if len(begins) > self.max_spans and begins[self.max_spans] > start:
            return begins[self.max_spans]
        return end

    def _cut(self, start: int, window: int) -> int:
        """The best place in `(start, window]` to end a part whose text goes on behind the window."""
        text = self.body.text
        half = start + (window - start) // 2
        # One more character is looked at: white space there may be cut away, so that a word which just fits is whole.
        seen = text[start : window + 1]
        lines = [start + match.start() for match in _LINE.finditer(seen)]
        paragraphs = [start + match.start() for match in _PARAGRAPH.finditer(seen)]
        code = [span for span in self.body.spans if span.kind == "pre" and span.start < window]
        for places, inside in ((paragraphs, False), (lines, False), (paragraphs, True), (lines, True)):
            found = [at for at in places if half < at <= window and _within(code, at) == inside]
            if found:
                return found[-1]
        sentences = [start + match.end() for match in _SENTENCE.finditer(seen)]
        words = [start + match.end() - match.group().isspace() for match in _WORD.finditer(seen)]
        # A break between words is worth much of the room, but not nearly all of it: a long address is cut.
        least = start + (window - start) // 8
        for places, after in ((sentences, half), (words, least)):
            found = [at for at in places if after < at <= window and is_boundary(text, at, start)]
            if found:
                return found[-1]
        return last_boundary(text, start, window)


def _skip_space(text: str, position: int) -> int:
    """The offset of the first character that is no white space, or that is one with a mark upon it."""
    while position < len(text) and text[position].isspace() and is_boundary(text, position + 1, position):
        position += 1
    return position


def _within(spans: Sequence[Span], position: int) -> bool:
    return any(span.start < position < span.start + span.length for span in spans)


def _slice(body: Body, start: int, end: int, max_spans: int | None) -> Body:
    """The body between two offsets, its spans cut to it and free of white space at their ends."""
    text = body.text[start:end]
    spans = []
    for span in body.spans:
        first, last = max(span.start, start) - start, min(span.start + span.length, end) - start
        if first < last:
            spans.append((first, last, span.kind, span.argument))
    return Body(text, tidy_spans(text, spans)[:max_spans])


def tidy_spans(text: str, spans: Sequence[tuple[int, int, str, str]]) -> tuple[Span, ...]:
    """Spans from (start, end, kind, argument): sorted, the outer first, never empty, no white space at their ends.

    Only a `pre` keeps the indentation of its first line, and with it a span that begins there. Of spans over the same
    text the order is kept.
    """
    code = [start + _margin(text[start:end]) for start, end, kind, _ in spans if kind == "pre"]
    kept: list[Span] = []
    for start, end, kind, argument in spans:
        inner = text[start:end]
        if not inner or inner.isspace():
            continue
        lead = len(inner) - len(inner.lstrip())
        first = start + (_margin(inner) if kind == "pre" else lead)
        if lead:
            first = min([first, *(begin for begin in code if start <= begin < first)])
        kept.append(Span(first, start + len(inner.rstrip()) - first, kind, argument))
    return tuple(sorted(kept, key=lambda span: (span.start, -span.length)))


def _margin(code: str) -> int:
    """The length of the blank lines before the first line of a code block."""
    lead = len(code) - len(code.lstrip())
    return max((match.end() for match in _LINE.finditer(code, 0, lead)), default=0)
