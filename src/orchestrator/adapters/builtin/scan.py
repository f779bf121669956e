"""Markdown at a glance: fast over-approximations, so that few documents need the full parse.

`scan` finds every place where a destination could stand, code included: when none of them is
suspicious, nothing that the full parse finds can be.
"""

import re
from collections.abc import Iterator

from markdown_it.helpers import parseLinkDestination

from orchestrator.adapters.builtin.anchors import Anchors
from orchestrator.adapters.builtin.document import Form, Link

_MAYBE = re.compile(
    r"\]\(\s*"
    r"|^[ \t>]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t>]+)*\[(?!\^)(?:[^\]\\]|\\.){1,200}\]:\s*",
    re.MULTILINE,
)
_ATTRIBUTE = re.compile(
    r"""(?<![\w-])(?:href|src)\s*=\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'<>=`]+))""", re.IGNORECASE
)
NAME = re.compile(r"""(?<![\w-])(?:id|name)\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_VISIBLE = re.compile(r"[^\r\n]")
_PLAIN = re.compile(r"[^\s()<>\\\x00-\x1f\x7f]+(?=[\s)])")
_FENCE = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]+)?(`{3,}|~{3,}).*?(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t>]*\n).){1,4000}?(?<!`)\1(?!`)", re.DOTALL)
_GLANCE = re.compile(
    r"^[ \t>]*#{1,6}[ \t]+([^\r\n]*)|^[ \t>]*([^\s>][^\r\n]*)\r?\n[ \t>]*(?:=+|-+)[ \t]*$",
    re.MULTILINE,
)
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*`]|<[^>]+>")


def scan(text: str) -> Iterator[Link]:
    """Everything that could be a destination: a superset of what `parse` finds."""
    for match in _MAYBE.finditer(text):
        plain = _PLAIN.match(text, match.end())
        if plain:
            yield Link(plain[0], plain.start(), plain.end(), Form.BARE)
            continue
        found = parseLinkDestination(text, match.end(), len(text))
        if found.ok and found.pos > match.end():
            yield link_at(text, match.end(), found.pos)
    yield from attributes(text, 0)


def without_code(text: str) -> str:
    """The text with code and comments blanked, nearly as a full parse would: fit for counting."""
    for pattern in (_FENCE, _SPAN, COMMENT):
        text = pattern.sub(blank, text)
    return text


def anchors_at_a_glance(text: str) -> frozenset[str]:
    """Anchors of headings and stated ones without a full parse: nearly right, and fast."""
    anchors = Anchors()
    for match in _GLANCE.finditer(text):
        line = (match[1] or match[2] or "").rstrip()
        closed = line.rstrip("#")
        line = closed if not closed or closed[-1].isspace() else line
        anchors.heading(_MARKUP.sub(lambda m: m[1] or "", line))
    for match in NAME.finditer(text):
        anchors.explicit(match[1])
    return anchors.all


def link_at(text: str, start: int, end: int) -> Link:
    """The destination that stands at a place, brackets off."""
    if text[start] == "<":
        return Link(text[start + 1 : end - 1], start + 1, end - 1, Form.ANGLE)
    return Link(text[start:end], start, end, Form.BARE)


def attributes(source: str, offset: int) -> Iterator[Link]:
    """The values of `href` and `src` in HTML; `offset` is added to their places."""
    forms = (Form.DOUBLE_QUOTED, Form.SINGLE_QUOTED, Form.UNQUOTED)
    for match in _ATTRIBUTE.finditer(source):
        group = next(g for g in (1, 2, 3) if match[g] is not None)
        start, end = match.span(group)
        yield Link(match[group], offset + start, offset + end, forms[group - 1])


def blank(match: re.Match[str]) -> str:
    """A match with every character but line ends blanked, so that places stay."""
    return _VISIBLE.sub(" ", match[0])
