"""What a terminal shows of the chat, and what to write to it for a change. Pure.

A message that streams is redrawn in place: from its first line that differs, as far as that line can still be
reached. What has scrolled out of reach, or stands above something that the user typed, is left as it is; where such a
line was wrong, the whole message is printed once more when its turn is over. The cursor always stands at the
beginning of an empty line below the last message, or behind the prompt.

The rule that must not be broken: whatever becomes of the lines above, the end of a message is on screen as soon as
`edit` has been written.

Source: ECMA-48, "Control functions" (CUU, ED); the terminal turns a line feed into a new line.
"""

from __future__ import annotations

from collections import OrderedDict

from attrs import define, field, frozen

from hermes_trio.platforms.console.layout import lines_of, shown
from hermes_trio.text.body import Body

REMEMBERED = 64
"""Messages that can still be edited without printing all of them again; older ones are out of sight."""
BULLET, INDENT = "● ", "  "
PROMPT = "› "
AGAIN = "↻ from before the restart"
WHOLE = "↻ the whole answer, because its beginning changed"
UP, CLEAR = "\x1b[{}A", "\r\x1b[J"


@frozen
class Size:
    """Of the terminal, in cells."""

    columns: int = 80
    rows: int = 24


@define
class _Message:
    body: Body
    reach: int
    """The first line that can be redrawn; more than all lines: none."""
    torn: bool = False
    """A line above `reach` shows something else than it should."""


@define
class Screen:
    """The state of one terminal. Every method returns what is to be written."""

    style: bool = True
    """Whether text may have colours and weights."""
    _messages: OrderedDict[str, _Message] = field(factory=OrderedDict)
    _last: str | None = None
    """The message directly above the cursor."""
    _prompting: bool = False

    def create(self, message_id: str, body: Body, size: Size) -> str:
        """A new message at the bottom."""
        self._leave()
        self._remember(message_id, _Message(body, 0))
        return self._unprompted() + self._text(self._lines(body, size))

    def edit(self, message_id: str, body: Body, size: Size) -> str:
        """The message shows another body. One that this screen does not know comes from before a restart."""
        message = self._messages.get(message_id)
        if message is None:
            return self._unprompted() + self._dim(AGAIN) + self.create(message_id, body, size)
        if message.body == body:
            return ""
        old, new = self._lines(message.body, size), self._lines(body, size)
        same = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
        differs = min(len(old), len(new)) if same is None else same
        written = self._unprompted()
        message.body = body
        if message_id != self._last:
            self._leave()
            self._last = message_id
            message.reach = differs
            return written + self._text(new[differs:])
        message.reach = max(message.reach, len(old) - max(size.rows - 2, 1))
        message.torn = message.torn or differs < message.reach
        if message.torn and len(new) <= message.reach:
            return written + self._whole(size)
        start = min(max(differs, message.reach), len(old))
        up = len(old) - start
        return written + (UP.format(up) if up else "") + CLEAR + self._text(new[start:])

    def erase(self, message_id: str, size: Size) -> str | None:
        """The message disappears; None where that is not possible any more."""
        message = self._messages.get(message_id)
        if message is None or message_id != self._last or message.reach > 0:
            return None
        height = len(self._lines(message.body, size))
        if height > max(size.rows - 2, 1):
            return None
        del self._messages[message_id]
        self._last = None
        return self._unprompted() + UP.format(height) + CLEAR

    def pause(self, size: Size) -> str:
        """Nobody is speaking: what was torn is printed whole, and the user is asked for more."""
        written = self._whole(size)
        if self._prompting:
            return written
        self._prompting = True
        return f"{written}\n{self._bold(PROMPT)}"

    def close(self, size: Size) -> str:
        """The terminal is left as a chat that is over."""
        return self._unprompted() + self._whole(size)

    def entered(self) -> str:
        """The user has pressed Enter: the cursor is below what they typed."""
        self._prompting = False
        self._leave()
        return ""

    def note(self, text: str) -> str:
        """A line of the program itself."""
        self._leave()
        return self._unprompted() + self._dim(text)

    def _whole(self, size: Size) -> str:
        """The last message once more, where a line out of reach is wrong."""
        message = self._messages.get(self._last or "")
        if message is None or not message.torn:
            return ""
        message.torn, message.reach = False, 0
        return self._unprompted() + self._dim(WHOLE) + self._text(self._lines(message.body, size))

    def _leave(self) -> None:
        """Something else stands below the last message from now on."""
        self._last = None

    def _remember(self, message_id: str, message: _Message) -> None:
        self._messages[message_id] = message
        self._last = message_id
        while len(self._messages) > REMEMBERED:
            self._messages.popitem(last=False)

    def _unprompted(self) -> str:
        """Takes the prompt away."""
        if not self._prompting:
            return ""
        self._prompting = False
        return UP.format(1) + CLEAR

    def _lines(self, body: Body, size: Size) -> list[str]:
        lines = lines_of(body, size.columns - len(INDENT), style=self.style)
        return [(self._bold(BULLET) if index == 0 else INDENT) + line for index, line in enumerate(lines)]

    def _text(self, lines: list[str]) -> str:
        return "".join(f"{line}\n" for line in lines)

    def _bold(self, text: str) -> str:
        return f"\x1b[1;32m{text}\x1b[0m" if self.style else text

    def _dim(self, text: str) -> str:
        line = shown(text).replace("\n", " ")
        return f"\x1b[2m{line}\x1b[0m\n" if self.style else f"{line}\n"
