"""Lines that fit: wrapping with hanging indents, aligned columns, and very little colour.

Colour is an extra, never the message: every word and mark stands without it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

DEFAULT_WIDTH = 80
MAX_WIDTH = 100
_MIN_ROOM = 20

_RESET = "\x1b[0m"

GLUE = "\u00a0"
"""A space at which `wrap` does not break; it comes out as a plain space."""


class Look(NamedTuple):
    """How output may look: columns to use, and whether terminal colours are understood."""

    width: int = DEFAULT_WIDTH
    color: bool = False

    def accent(self, text: str) -> str:
        """The one thing to see first: the rule that decided."""
        return self._styled("1;36", text)

    def strong(self, text: str) -> str:
        return self._styled("1", text)

    def dim(self, text: str) -> str:
        """Evidence: there when wanted."""
        return self._styled("2", text)

    def error(self, text: str) -> str:
        return self._styled("31", text)

    def _styled(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}{_RESET}" if self.color and text else text


UNBROKEN = Look(width=100_000)
"""For lines that are copied or searched rather than read: never wrapped."""


def columns(text: str) -> int:
    """How many terminal columns `text` takes; wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # only for text that needs it

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrap(
    text: str, width: int, *, first: str = "", rest: str | None = None, break_words: bool = True
) -> list[str]:
    """Break `text` at spaces into lines of at most `width` columns.

    Args:
        text: one paragraph; its runs of spaces become one.
        width: columns a line may take, prefix included.
        first: what the first line starts with.
        rest: what the others start with; by default as many spaces as `first` is wide.
        break_words: whether a word longer than a line is broken, after a slash where it has one.
            Commands are better left whole: a terminal wraps them and they can still be copied.
    """
    hanging = " " * columns(first) if rest is None else rest
    room = max(width - max(columns(first), columns(hanging)), _MIN_ROOM)
    lines: list[str] = []
    line = ""
    for word in _words(text, room) if break_words else _split(text):
        if line and columns(line) + 1 + columns(word) > room:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines.append(line)
    return [(hanging if n else first) + one.replace(GLUE, " ") for n, one in enumerate(lines)]


def _split(text: str) -> list[str]:
    # Not `split()`, which splits at GLUE as well.
    return [word for word in text.split(" ") if word]


def _words(text: str, room: int) -> Iterable[str]:
    for whole in _split(text):
        word = whole
        if GLUE in word and columns(word) > room:  # it does not fit a line, so glue cannot hold it
            yield from _words(word.replace(GLUE, " "), room)
            continue
        while columns(word) > room:
            cut = _cut(word, room)
            yield word[:cut]
            word = word[cut:]
        yield word


def _cut(word: str, room: int) -> int:
    """Where to break a word that is longer than a line: after a late slash, or at the room."""
    fits = 0
    taken = columns(word[0])
    while taken <= room:
        fits += 1
        taken += columns(word[fits])
    slash = word.rfind("/", 0, fits) + 1
    return slash if slash > room // 2 else max(fits, 1)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """`text` filled up with spaces to `width` columns."""
    fill = " " * max(width - columns(text), 0)
    return fill + text if right else text + fill


def table(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> list[str]:
    """Rows with their columns aligned, two spaces apart; `right` names the right-aligned ones."""
    if not rows:
        return []
    widths = [max(columns(row[n]) for row in rows) for n in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [pad(cell, widths[n], right=n in right) for n, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return lines
