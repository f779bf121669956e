"""What a document says about other files, with exact places in its source. Plain values."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

DOCUMENT_SUFFIXES = (".md", ".markdown", ".mdx", ".rst")


class Form(StrEnum):
    """How a destination is written, which decides what may stand in it unescaped."""

    BARE = "bare"
    ANGLE = "angle"
    DOUBLE_QUOTED = "double_quoted"
    SINGLE_QUOTED = "single_quoted"
    UNQUOTED = "unquoted"
    """An HTML attribute's value without quotes."""

    @property
    def html(self) -> bool:
        return self in (Form.DOUBLE_QUOTED, Form.SINGLE_QUOTED, Form.UNQUOTED)


class Place(StrEnum):
    """Where a path is named."""

    CODE = "code"
    TEXT = "text"
    FENCE = "fence"


@dataclass(frozen=True, slots=True)
class Link:
    """A link, image or reference definition.

    Attributes:
        raw: the destination exactly as written, without brackets or quotes.
        start, end: its place in the text, characters; the text there is `raw`.
    """

    raw: str
    start: int
    end: int
    form: Form


@dataclass(frozen=True, slots=True)
class Mention:
    """A path named outside of a destination, such as `src/app/core.py`."""

    path: str
    start: int
    end: int
    place: Place


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading's text and its anchor, duplicates already told apart."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Document:
    """One document, read.

    Attributes:
        anchors: every anchor it offers, in lower case; headings and explicit ones.
    """

    links: tuple[Link, ...] = ()
    mentions: tuple[Mention, ...] = ()
    headings: tuple[Heading, ...] = ()
    anchors: frozenset[str] = frozenset()


_LINE_END = re.compile(r"\r\n|\r|\n")


class Lines:
    """A text's lines as Markdown counts them (not as `str.splitlines` does), and their places."""

    def __init__(self, text: str) -> None:
        self.text: list[str] = []
        self.starts: list[int] = []
        at = 0
        for match in _LINE_END.finditer(text):
            self.starts.append(at)
            self.text.append(text[at : match.start()])
            at = match.end()
        self.starts.append(at)
        self.text.append(text[at:])

    def number(self, offset: int) -> int:
        """The line of a place, counted from 1."""
        return bisect_right(self.starts, offset)


# A path with at least one folder and a file name extension, standing alone: not inside of a URL,
# a package name, a variable or a longer path.
_PATH = re.compile(
    r"(?<![\w/.@:$~+#%&=*{}\\-])"
    r"((?:[\w.-]+/)+[\w.-]*\w\.[A-Za-z][A-Za-z0-9]{0,7})"
    r"(?![\w/*{}$\\@-]|\.\w)"
)


def paths_named(text: str) -> Iterator[tuple[str, int, int]]:
    """Every path that a text names, with its place; over-approximates (code and links too)."""
    for match in _PATH.finditer(text):
        yield match[1], match.start(1), match.end(1)
