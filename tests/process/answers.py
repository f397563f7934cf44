"""What the scripted model says: a header, markup, a footer.

    <<A-1>> ... <</A-1>>

A copy of an answer on a screen runs from its header to its footer, whatever else is there.
"""

from __future__ import annotations

BODY = """\
**Bold words** stand here \N{GRINNING FACE}, *slanted ones* too, and `a_call(x)` beside a [link](https://example.com/a).

- one thing
- another thing

```python
def answer() -> int:
    return 42
```

The end of it."""


def answer(label: str, body: str = BODY) -> str:
    """The usual answer with this label."""
    return f"<<{label}>>\n\n{body}\n\n<</{label}>>"


def long_answer(label: str, characters: int = 8100) -> str:
    """An answer of about so many characters of Markdown: numbered paragraphs and one long fence.

    It has fewer spans than a message may carry, so that only its length decides how it is split.
    """
    paragraphs: list[str] = []
    number = 0
    while sum(map(len, paragraphs)) + 2 * len(paragraphs) < characters - 60:
        number += 1
        if number == 25:
            lines = "\n".join(f"value_{line} = {line} * {line}" for line in range(60))
            paragraphs.append(f"```python\n{lines}\n```")
        else:
            emphasis = "**something bold**" if number % 3 == 0 else "nothing special"
            paragraphs.append(f"Paragraph {number} says {emphasis} and then it goes on to its end.")
    return answer(label, "\n\n".join(paragraphs))
