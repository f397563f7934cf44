"""What a person sees on a terminal while messages stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from little_terminal import LittleTerminal

from hermes_trio.platforms.console.screen import AGAIN, WHOLE, Screen, Size
from hermes_trio.text.body import Body


class Chat:
    """A screen and the terminal that it writes to."""

    def __init__(self, columns: int = 40, rows: int = 10) -> None:
        self.terminal = LittleTerminal(columns, rows)
        self.screen = Screen(style=False)
        self.size = Size(columns, rows)

    def create(self, message: str, text: str) -> None:
        self.terminal.feed(self.screen.create(message, Body(text), self.size))

    def edit(self, message: str, text: str) -> None:
        self.terminal.feed(self.screen.edit(message, Body(text), self.size))

    def pause(self) -> None:
        self.terminal.feed(self.screen.pause(self.size))

    def types(self, text: str) -> None:
        self.terminal.feed(f"{text}\n")
        self.screen.entered()

    @property
    def lines(self) -> list[str]:
        return self.terminal.text.split("\n")


def numbered(count: int) -> str:
    return "\n".join(f"line {n}" for n in range(1, count + 1))


def test_a_message_streams_in_its_place() -> None:
    """Each preview replaces the one before; at the end the text stands there once."""
    chat = Chat()
    chat.create("m", "…")
    for text in ("Once", "Once upon", "Once upon a time", "Once upon a time there was a bot that said all of it."):
        chat.edit("m", text)
    assert chat.lines == ["● Once upon a time there was a bot that", "  said all of it."]


def test_a_conversation_reads_from_top_to_bottom() -> None:
    """Prompt, question and answer follow each other, each once."""
    chat = Chat()
    chat.pause()
    chat.types("hello")
    chat.create("m", "…")
    chat.edit("m", "Hi.")
    chat.pause()
    chat.types("bye")
    chat.create("n", "Bye.")
    assert chat.lines == ["", "› hello", "● Hi.", "", "› bye", "● Bye."]


def test_an_earlier_line_may_change_while_it_is_reachable() -> None:
    """A text that is replaced as a whole (a tool's progress by the answer) leaves nothing behind."""
    chat = Chat()
    chat.create("m", "Let me look.\n\n⚙ clock …")
    chat.edit("m", "It is noon.")
    assert chat.lines == ["● It is noon."]


def test_a_long_text_scrolls_and_stands_there_once() -> None:
    """What is taller than the window is printed once, from its first line to its last."""
    chat = Chat(rows=6)
    chat.create("m", "…")
    for count in range(1, 21):
        chat.edit("m", numbered(count))
    chat.pause()
    assert [line.strip("● ") for line in chat.lines] == [*numbered(20).split("\n"), "", "›"]


def test_a_change_out_of_reach_is_repaired_when_the_turn_is_over() -> None:
    """A line that has scrolled away cannot be changed; then the whole text is printed once more, and says why."""
    chat = Chat(columns=60, rows=6)
    chat.create("m", numbered(20))
    chat.edit("m", f"{numbered(20)}\nmore")
    final = numbered(20).replace("line 2\n", "line two\n")
    chat.edit("m", final)
    assert WHOLE not in chat.terminal.text
    chat.pause()
    chat.pause()
    whole = chat.terminal.text.split(WHOLE)
    assert len(whole) == 2
    assert [line.strip("● ") for line in whole[1].strip().split("\n")][:20] == final.split("\n")


def test_what_the_user_typed_meanwhile_is_not_drawn_over() -> None:
    """A line typed into a streaming answer stays; the answer goes on below it, from where it was."""
    chat = Chat()
    chat.create("m", "one\ntwo\nthree")
    chat.types("/queue next")
    chat.edit("m", "one\ntwo\nthree and\nfour")
    chat.edit("m", "one\ntwo\nthree and\nfour and five")
    assert chat.lines == ["● one", "  two", "  three", "/queue next", "  three and", "  four and five"]


def test_nothing_above_what_the_user_typed_is_redrawn() -> None:
    """When an earlier line changes after the user typed, what stands above stays, and the whole is printed below."""
    chat = Chat(columns=60)
    chat.create("m", "one\ntwo")
    chat.types("hello?")
    chat.edit("m", "one\ntwo\nthree")
    chat.edit("m", "ONE\ntwo\nthree")
    assert chat.lines[:3] == ["● one", "  two", "hello?"]
    chat.pause()
    assert chat.lines[:3] == ["● one", "  two", "hello?"]
    assert chat.lines[-6:] == [WHOLE, "● ONE", "  two", "  three", "", "›"]


def test_a_control_message_passes_a_streaming_one() -> None:
    """The streaming one goes on below it."""
    chat = Chat()
    chat.create("m", "one\ntwo")
    chat.create("c", "control")
    chat.edit("m", "one\ntwo\nthree")
    assert chat.lines == ["● one", "  two", "● control", "  three"]


def test_a_message_from_before_the_restart_is_printed_anew() -> None:
    """An edit of a message that this screen never drew shows all of it, behind a line that says where it is from."""
    chat = Chat()
    chat.edit("old", "The answer")
    chat.edit("old", "The answer is complete.")
    assert chat.lines == [AGAIN, "● The answer is complete."]


def test_the_last_message_can_be_taken_away() -> None:
    """A bare placeholder leaves nothing; what cannot be reached is refused."""
    chat = Chat()
    chat.create("a", "stays")
    chat.create("m", "…")
    assert chat.screen.erase("a", chat.size) is None
    erased = chat.screen.erase("m", chat.size)
    assert erased is not None
    chat.terminal.feed(erased)
    assert chat.lines == ["● stays"]


def test_the_same_text_again_changes_nothing() -> None:
    """A repeated edit, also long after, writes nothing."""
    chat = Chat()
    chat.create("m", "done")
    chat.pause()
    assert chat.screen.edit("m", Body("done"), chat.size) == ""


def test_no_colour_where_none_is_wanted() -> None:
    """Without style no escape sequence is written but those that move the cursor."""
    assert "m" not in Screen(style=False).pause(Size())
    assert "\x1b[" in Screen(style=True).pause(Size())


@given(st.lists(st.text("ab \n", max_size=120), min_size=1, max_size=6), st.integers(3, 8), st.integers(6, 20))
def test_the_end_of_a_message_is_always_on_screen(texts: list[str], rows: int, columns: int) -> None:
    """Whatever sequence of previews: at last the whole final text stands below everything else."""
    chat = Chat(columns, rows)
    chat.create("m", "…")
    for text in texts:
        chat.edit("m", text)
    expected = [line.rstrip() for line in chat.screen._lines(Body(texts[-1]), chat.size)]
    tail = expected[-1:]
    assert chat.terminal.lines[:-1][-1:] == tail
    chat.terminal.feed(chat.screen.close(chat.size))
    assert chat.terminal.lines[:-1][-len(expected) :] == expected
