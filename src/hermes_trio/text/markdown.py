"""Markdown, once, into text and spans.

The parser is markdown-it-py: CommonMark with tables and strikethrough. Changed where a chat needs it:

- HTML is text: `vector<int>`, `<?php` and `<details>` stay as they were written.
- There are no reference definitions: they would vanish from the screen, and in a growing text a definition that
  arrives late would change parts that are full. `[1]: address`, `[^1]` and `[text][1]` stay literally.
- Underscores of a bare address are no emphasis, and a line below a text makes a heading only when it is one of `=`.
- Blank lines are as in the source. CommonMark's loose and tight lists would change with an item that arrives later.

The rule that must not be broken: no word of the input is lost, whatever it is; what cannot be shown as its markup
means is shown as it was written. Everything else is taste.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from hermes_trio.text.body import Body
from hermes_trio.text.layout import Writer
from hermes_trio.text.repair import repair
from hermes_trio.text.tables import align
from hermes_trio.text.visible import has_visible

RULE = "———"
"""How a thematic break looks."""

_MAX_NESTING = 40
"""What is nested deeper the parser leaves out (it recurses); a text that comes near is shown as it was written."""

_MARKS = {"em": "italic", "strong": "bold", "s": "strike"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BARE_ADDRESS = re.compile(r"://[^\s<>\[\]()`\"'*\\]*[^\s<>\[\]()`\"'*\\_~.,;:!?]")
_UNDERLINE = re.compile(r"(=+|-+)[ \t]*$")
_SPACE = re.compile(r"\s")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~\s]+")
_WORDS = re.compile(r"[^\W_]")


def render(markdown: str) -> Body:
    """What a Markdown text shows, as text and spans; empty only when it shows nothing (`is_blank`).

    Takes any text, also one that is not complete yet: an open fence is a code block, an open mark stays literally.
    Spans are sorted, nested or apart, never empty, and have no white space at their ends, as `tidy_spans` says.
    """
    source = repair(markdown).replace("\r\n", "\n").replace("\r", "\n")
    tokens = _parser().parse(source)
    if any(token.level >= _MAX_NESTING - 1 for token in tokens):
        return Body(source.strip())
    return _Document(source, tokens).body()


def is_blank(text: str | Body) -> bool:
    """Whether there is nothing to see: white space, characters without a glyph, only markup, only rules.

    A str is Markdown; a Body is taken as it is.
    """
    body = text if isinstance(text, Body) else render(text)
    return not any(has_visible(line) for line in body.text.split("\n") if line != RULE)


class _Parser(MarkdownIt):
    """Leaves an address as it was written: encoded letters and hosts are no words."""

    def normalizeLink(self, url: str) -> str:
        return _SPACE.sub(lambda space: quote(space.group()), url)

    def normalizeLinkText(self, link: str) -> str:
        return link


@cache
def _parser() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "maxNesting": _MAX_NESTING})
    parser.enable(["table", "strikethrough"]).disable(["reference"])
    parser.inline.ruler.before("newline", "bare_address", _bare_address)
    return parser


def _bare_address(state: StateInline, silent: bool) -> bool:
    """An inline rule: takes the rest of `http://...` as text, so that its underscores stay."""
    if state.src[state.pos] != ":" or not state.src[max(state.pos - 5, 0) : state.pos].endswith(("http", "https")):
        return False
    match = _BARE_ADDRESS.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.pending += match.group()
    state.pos = match.end()
    return True


class _Document:
    """One walk over the tokens of one document."""

    def __init__(self, source: str, tokens: Sequence[Token]) -> None:
        self._lines = source.split("\n")
        self._tokens = tokens
        self._writer = Writer()
        # The source line after the last block that was written.
        self._line = 0
        self._indents: list[str] = []
        self._quotes = 0

    def body(self) -> Body:
        index = 0
        while index < len(self._tokens):
            index = self._block(index)
        return self._writer.body()

    def _block(self, index: int) -> int:
        """Writes the block token at `index`; the index of the next one."""
        token = self._tokens[index]
        kind = token.type
        if kind == "inline":
            self._inline(token.children or ())
        elif kind == "paragraph_open":
            self._begin(token)
        elif kind == "heading_open":
            return self._heading(index)
        elif kind in ("fence", "code_block"):
            self._code(token)
        elif kind == "hr":
            self._begin(token)
            self._writer.write(RULE)
        elif kind == "table_open":
            return self._table(index)
        elif kind == "list_item_open":
            self._open_item(index)
        elif kind == "list_item_close":
            self._writer.end_marker()
            self._writer.indent = self._indents.pop()
        elif kind == "blockquote_open":
            self._open_quote(token)
        elif kind == "blockquote_close":
            self._close_quote()
        return index + 1

    def _begin(self, token: Token, lines: int | None = None) -> None:
        """A block begins on a new line, behind a blank one if the source has one there."""
        first, last = token.map or (0, 0)
        self._writer.want(2 if first > self._line else 1)
        self._line = last if lines is None else first + lines

    def _source(self, token: Token) -> list[str]:
        first, last = token.map or (0, 0)
        return self._lines[first:last]

    def _heading(self, index: int) -> int:
        token, inline = self._tokens[index], self._tokens[index + 1]
        self._begin(token)
        underline = _UNDERLINE.search(self._source(token)[-1]) if token.markup in ("-", "=") else None
        if underline is None or (token.markup == "=" and len(underline[1]) > 1):
            self._writer.open("bold")
            self._inline(inline.children or ())
            self._writer.close()
            return index + 3
        # A line of dashes is far more often a rule, or the beginning of a list that is still arriving.
        self._inline(inline.children or ())
        self._writer.want(1)
        self._writer.write(RULE if len(underline[1]) > 2 else underline[1])
        return index + 3

    def _code(self, token: Token) -> None:
        language, *more = token.info.split(maxsplit=1)[:2] or [""]
        lines = token.content.rstrip().split("\n")
        while lines and not lines[0].strip():
            del lines[0]
        self._begin(token)
        if not lines:
            # Nothing in it: what stands behind the fence may be all that was said.
            self._writer.write(token.markup + token.info.rstrip() if language else "")
            return
        if more:
            self._writer.write(more[0].strip())
            self._writer.want(1)
        self._writer.raw("\n".join(lines), "pre", language)

    def _table(self, index: int) -> int:
        rows: list[list[str]] = []
        sides: list[str] = []
        end = index
        while self._tokens[end].type != "table_close":
            token = self._tokens[end]
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_flat(token.children or ()))
            elif token.type == "th_open":
                sides.append(str(token.attrGet("style") or "").rpartition(":")[2])
            end += 1
        source = "\n".join(self._source(self._tokens[index]))
        text = align(rows, sides)
        if len(_WORDS.findall(text)) < len(_WORDS.findall(source)):
            text = source  # a row had more cells than the head, and the parser left them out
        self._begin(self._tokens[index])
        self._writer.raw(text.strip("\n"), "pre")
        return end + 1

    def _open_item(self, index: int) -> None:
        token = self._tokens[index]
        empty = self._tokens[index + 1].type == "list_item_close"
        self._begin(token, lines=int(empty))
        # An item that says nothing is shown as it was written: "*" may be the whole answer.
        marker = token.info + token.markup if token.info or empty else "•"
        self._writer.mark(f"{marker} ")
        self._indents.append(self._writer.indent)
        self._writer.indent += " " * (len(marker) + 1)

    def _open_quote(self, token: Token) -> None:
        self._begin(token, lines=0)
        self._indents.append(self._writer.indent)
        if self._quotes == 0:
            self._writer.end_marker()
            self._writer.indent = ""
            self._writer.open("quote")
        else:
            self._writer.indent += "> "
        self._quotes += 1

    def _close_quote(self) -> None:
        self._quotes -= 1
        if self._quotes == 0:
            self._writer.close()
        self._writer.indent = self._indents.pop()

    def _inline(self, tokens: Sequence[Token]) -> None:
        writer = self._writer
        # For each open link: where its text begins, its address and its title.
        links: list[tuple[int, str, str]] = []
        faces = _faces(tokens)
        for index, token in enumerate(tokens):
            name = token.type.removesuffix("_open").removesuffix("_close")
            if index in faces:
                writer.write(token.markup)
            elif name in _MARKS:
                writer.open(_MARKS[name]) if token.nesting > 0 else writer.close()
            elif token.type == "link_open":
                address, title = _target(token, "href")
                writer.open("link" if _SCHEME.match(address) else "", address)
                links.append((writer.position, address, title))
            elif token.type == "link_close":
                start, address, title = links.pop()
                if writer.position == start:
                    writer.write(address)
                    address = ""
                writer.close()
                writer.write(_aside("" if _SCHEME.match(address) else address, title))
            elif token.type == "code_inline":
                writer.open("code")
                writer.write(token.content)
                writer.close()
            elif token.type == "image":
                self._image(token, linked=bool(links))
            else:
                writer.write("\n" if token.type in ("softbreak", "hardbreak") else token.content)

    def _image(self, token: Token, linked: bool) -> None:
        """Writes what the image is called; inside a link its address cannot be a span and is written too."""
        address, title = _target(token, "src")
        label = _flat(token.children or ())
        plain = linked or not _SCHEME.match(address)
        self._writer.open("" if plain else "link", address)
        self._writer.write(label or address)
        self._writer.close()
        self._writer.write(_aside(address if label and plain else "", title))


def _faces(tokens: Sequence[Token]) -> set[int]:
    """The indexes of emphasis marks around nothing but punctuation: a face as `(*^_^*)` is meant as it is written."""
    found: set[int] = set()
    for index in range(len(tokens) - 2):
        first, inner, last = tokens[index : index + 3]
        if first.type == "em_open" and last.type == "em_close" and _PUNCTUATION.fullmatch(inner.content):
            found |= {index, index + 2}
    return found


def _target(token: Token, attribute: str) -> tuple[str, str]:
    """The address and the title of a link or an image."""
    return str(token.attrGet(attribute) or ""), str(token.attrGet("title") or "")


def _aside(address: str, title: str) -> str:
    """What is said behind the text of a link: an address that cannot be a span, and the title."""
    return "".join(f" ({word})" for word in (address, title) if word)


def _flat(tokens: Sequence[Token]) -> str:
    """Inline text without spans, for a place that can have none; addresses stand behind what links to them."""
    said: list[str] = []
    links: list[tuple[int, str, str]] = []
    for token in tokens:
        if token.type == "link_open":
            links.append((len(said), *_target(token, "href")))
        elif token.type == "link_close":
            start, address, title = links.pop()
            said.append(_aside("" if "".join(said[start:]) == address else address, title))
        elif token.type == "image":
            said.append(_flat(token.children or ()) + _aside(*_target(token, "src")))
        else:
            said.append(" " if token.type in ("softbreak", "hardbreak") else token.content)
    return "".join(said).strip()
