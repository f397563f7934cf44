"""Bodies cut into messages that a wire takes, and put together again.

A part is exactly what a screen shows: platforms trim messages, so the white space at a border belongs to no part. Only the
indentation of the first line inside a `pre` stays. What lies between two parts is called a gap; a gap holds nothing
visible. The invariant, for every body and its parts:

    join(parts, gaps(body.text, parts)) == body.text        and no gap has anything visible in it

The cut of a part looks at nothing behind its own window, so that in a growing text a part that was full stays what it is.
The one rule: every round takes at least one code point; what cannot be kept (an indentation or a character longer than a
whole message) is given up, never the progress.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
_WORD = re.compile(r"\s|(?<=[、，；])")


def split(
    body: Body, limit: int, unit: Unit, *, reserve: int = 0, max_spans: int | None = MAX_SPANS
) -> tuple[Body, ...]:
    """The body as messages of at most `limit - reserve` units each; none for a body that shows nothing.

    limit: what the wire takes, in `unit`. reserve: units kept free for what is put before a part later. max_spans: a
    part with more is cut earlier; None for no bound. A cut falls between paragraphs where it can, else between lines,
    sentences, words; never inside a grapheme unless that alone is longer than a part. Spans are cut at the border and
    go on in the next part, so a `pre` stays a `pre` with its language in both. Raises ValueError when the limit leaves
    no room for one code point, or max_spans is below 1.
    """
    return tuple(
        _slice(body, start, end, max_spans) for start, end in _pieces(body, limit - reserve, unit, max_spans)
    )


def clip(body: Body, limit: int, unit: Unit, *, max_spans: int | None = MAX_SPANS) -> Body:
    """The body where it must be one message: itself when it fits, else its first part and an ellipsis.

    Raises ValueError when the limit leaves no room for that.
    """
    whole = next(_pieces(body, limit, unit, max_spans), (0, 0))
    if not has_visible(body.text[whole[1] :]):
        return _slice(body, *whole, max_spans)
    start, end = next(_pieces(body, limit - measure(ELLIPSIS, unit), unit, max_spans))
    first = _slice(body, start, end, max_spans)
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


def _pieces(body: Body, budget: int, unit: Unit, max_spans: int | None) -> Iterator[tuple[int, int]]:
    """Start and end of each part, in code points."""
    if budget < WIDEST[unit]:
        raise ValueError(f"{budget} {unit} leave no room for a character; at least {WIDEST[unit]} are needed")
    if max_spans is not None and max_spans < 1:
        raise ValueError("a part must be allowed at least one span")
    text, position = body.text, 0
    while position < len(text):
        start = _skip_blank(body, position)
        window = _window(body, start, budget, unit, max_spans)
        if not has_visible(text[start:window]) and start < len(text) and text[start].isspace():
            start = _skip_space(text, start)  # an indentation longer than a part
            window = _window(body, start, budget, unit, max_spans)
        end = len(text) if window >= len(text) else _cut(body, start, window)
        shown = start + len(text[start:end].rstrip())
        if has_visible(text[start:shown]):
            yield start, shown
        position = max(end, position + 1)


def _skip_space(text: str, position: int) -> int:
    """The offset of the first character that is no white space, or that is one with a mark upon it."""
    while position < len(text) and text[position].isspace() and is_boundary(text, position + 1, position):
        position += 1
    return position


def _skip_blank(body: Body, position: int) -> int:
    """As `_skip_space`, but inside a `pre` the indentation of the line that follows is kept."""
    end = _skip_space(body.text, position)
    for span in body.spans:
        if span.kind == "pre" and span.start < end < span.start + span.length:
            lines = list(_LINE.finditer(body.text, position, end))
            return max(lines[-1].end() if lines else position, span.start)
    return end


def _window(body: Body, start: int, budget: int, unit: Unit, max_spans: int | None) -> int:
    """How far a part that begins at `start` may reach, by its length and its number of spans."""
    end = fit(body.text, start, budget, unit)
    if max_spans is None or len(body.spans) <= max_spans:
        return end
    begins = [span.start for span in body.spans if span.start + span.length > start and span.start < end]
    if len(begins) > max_spans and begins[max_spans] > start:
        return begins[max_spans]
    return end


def _cut(body: Body, start: int, window: int) -> int:
    """The best place in `(start, window]` to end a part whose text goes on behind the window."""
    text = body.text
    half = start + (window - start) // 2
    # One more character is looked at: white space there may be cut away, so a word that just fits is whole.
    seen = text[start : window + 1]
    code = [span for span in body.spans if span.kind == "pre"]
    found: list[int] = []
    for pattern, inside in ((_PARAGRAPH, False), (_LINE, False), (_PARAGRAPH, True), (_LINE, True)):
        places = [start + match.start() for match in pattern.finditer(seen)]
        found = [at for at in places if half < at <= window and inside == _within(code, at)]
        if found:
            return found[-1]
    for pattern in (_SENTENCE, _WORD):
        places = [
            start + (match.end() if pattern is _SENTENCE else match.start()) for match in pattern.finditer(seen)
        ]
        found = [at for at in places if half < at <= window and is_boundary(text, at, start)]
        if found:
            return found[-1]
    places = [start + match.start() for match in re.finditer(r"\s", seen)]
    found = [at for at in places if start < at <= window and text[start:at].strip()]
    if found and found[-1] > start + (window - start) // 8:
        return found[-1]
    return last_boundary(text, start, window)


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

    A `pre` keeps the indentation of its first line, and so does a `quote` around it.
    """
    kept: list[Span] = []
    for start, end, kind, argument in spans:
        inner = text[start:end]
        body = inner.lstrip()
        if not body:
            continue
        lead = len(inner) - len(body)
        if kind in ("pre", "quote"):
            lead = max((match.end() for match in _LINE.finditer(inner, 0, lead)), default=0)
        kept.append(Span(start + lead, len(inner.rstrip()) - lead, kind, argument))
    return tuple(sorted(kept, key=lambda span: (span.start, -span.length)))
