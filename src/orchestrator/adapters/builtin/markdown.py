"""Markdown documents -> what they link to, with the exact span of every destination.

markdown-it decides what is a link, an image, a definition or code. It keeps no columns, so its
inline rules are wrapped to note where in a block's content they matched, and a block's content is
then found again in the source lines the block came from. What cannot be found again is left out:
nothing is ever edited on a guess.
"""

import html
import re
from collections.abc import Callable
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkDestination, parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from orchestrator.adapters.builtin.anchors import Anchors, stated_targets
from orchestrator.adapters.builtin.document import (
    Document,
    Lines,
    Link,
    Mention,
    Place,
    paths_named,
)
from orchestrator.adapters.builtin.scan import COMMENT, NAME, attributes, blank, link_at

_HTML_HEADING = re.compile(r"<h[1-6]\b[^>]*>(.{0,1000}?)</h[1-6]>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n.*?\n(?:---|\.\.\.)[ \t]*(?=\r|\n|\Z)", re.DOTALL
)
_LABEL_END = re.compile(r"\]:\s*")


def parse(text: str) -> Document:
    """Read a document."""
    return _Reading(text).document()


Rule = Callable[[StateInline, bool], bool]


def _noting_links(rule: Rule, opening: str, label_at: int) -> Rule:
    """The rule for links or images, leaving on its token where the destination stands."""

    def noting(state: StateInline, silent: bool) -> bool:
        start, before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            token = next(t for t in state.tokens[before:] if t.type == opening)
            label_end = parseLinkLabel(state, start + label_at, not label_at)
            token.meta["hidden"] = (label_end, state.pos)
            at = label_end + 1
            if state.src.startswith("(", at):
                at += 1
                while at < state.pos and state.src[at] in " \t\n":
                    at += 1
                found = parseLinkDestination(state.src, at, state.pos)
                if found.ok and found.pos > at:
                    token.meta["destination"] = (at, found.pos)
        return True

    return noting


def _noting_place(rule: Rule) -> Rule:
    """A rule that makes one token, leaving on it where it matched."""

    def noting(state: StateInline, silent: bool) -> bool:
        start, before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        for token in () if silent else state.tokens[before:]:
            if token.type in ("code_inline", "html_inline", "link_open"):
                token.meta["hidden"] = (start, state.pos)
        return True

    return noting


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"inline_definitions": True}).enable("table")
    ruler = parser.inline.ruler
    rules = {rule.name: rule.fn for rule in ruler.__rules__}
    ruler.at("link", _noting_links(rules["link"], "link_open", 0))
    ruler.at("image", _noting_links(rules["image"], "image", 1))
    for name in ("backticks", "html_inline", "autolink"):
        ruler.at(name, _noting_place(rules[name]))
    return parser


class _Reading:
    """One pass over a document's tokens."""

    def __init__(self, text: str) -> None:
        self.source = _FRONT_MATTER.sub(blank, text, count=1).replace("\ufeff", " ", 1)
        self.lines = Lines(self.source)
        self.links: list[Link] = []
        self.mentions: list[Mention] = []
        self.anchors = Anchors()
        self._cells: dict[int, int] = {}

    def document(self) -> Document:
        in_heading = False
        for token in _parser().parse(self.source):
            if token.type == "inline":
                if in_heading:
                    self._heading(token)
                self._inline(token)
            elif token.type in ("fence", "code_block"):
                self._code(token)
            elif token.type == "html_block":
                self._html(token)
            elif token.type == "definition":
                self._definition(token)
            in_heading = token.type == "heading_open"
        for name in stated_targets(self.source):
            self.anchors.explicit(name)
        return Document(
            tuple(sorted(self.links, key=lambda link: link.start)),
            tuple(sorted(self.mentions, key=lambda mention: mention.start)),
            self.anchors.headings,
            self.anchors.all,
        )

    def _heading(self, token: Token) -> None:
        parts = [c.content for c in token.children or () if c.type in ("text", "code_inline")]
        self.anchors.heading("".join(parts))

    def _code(self, token: Token) -> None:
        first, last = token.map or (0, 0)
        if first < len(self.lines.starts):
            start = self.lines.starts[first]
            end = self.lines.starts[last] if last < len(self.lines.starts) else len(self.source)
            self._named(self.source[start:end], lambda at: start + at, Place.FENCE)

    def _html(self, token: Token) -> None:
        first, last = token.map or (0, 0)
        start = self.lines.starts[first]
        end = self.lines.starts[last] if last < len(self.lines.starts) else len(self.source)
        block = COMMENT.sub(blank, self.source[start:end])
        self.links.extend(attributes(block, start))
        self._html_anchors(block)
        for match in _HTML_HEADING.finditer(block):
            self.anchors.heading(html.unescape(_TAG.sub("", match[1])))

    def _html_anchors(self, source: str) -> None:
        for match in NAME.finditer(source):
            self.anchors.explicit(match[1])

    def _definition(self, token: Token) -> None:
        if str(token.meta.get("label", "")).startswith("^"):
            return  # a footnote, which CommonMark does not know
        first, last = token.map or (0, 0)
        start = self.lines.starts[first]
        end = self.lines.starts[last] if last < len(self.lines.starts) else len(self.source)
        label = _LABEL_END.search(self.source, start, end)
        if label is None:
            return
        found = parseLinkDestination(self.source, label.end(), end)
        if found.ok and found.pos > label.end():
            link = link_at(self.source, label.end(), found.pos)
            if _parser().normalizeLink(found.str) == token.meta.get("url"):
                self.links.append(link)

    def _inline(self, token: Token) -> None:
        if token.map is None or not token.children:
            return
        place = self._placing(token.map[0], token.content)
        content = list(token.content)
        for child in token.children:
            hidden = child.meta.get("hidden")
            if hidden is None:
                continue
            source = token.content[slice(*hidden)]
            if child.type == "html_inline" and not source.startswith("<!--"):
                for link in attributes(source, hidden[0]):
                    self._add_link(place, link)
                self._html_anchors(source)
            elif child.type == "code_inline":
                at = hidden[0]
                self._named(source, lambda i, at=at: place(at + i), Place.CODE)  # type: ignore[misc]
            elif "destination" in child.meta:
                self._add_link(place, link_at(token.content, *child.meta["destination"]))
            content[slice(*hidden)] = " " * (hidden[1] - hidden[0])
        self._named("".join(content), place, Place.TEXT)

    def _add_link(self, place: "Placing", link: Link) -> None:
        start = place(link.start)
        if start is not None and self.source.startswith(link.raw, start):
            self.links.append(Link(link.raw, start, start + len(link.raw), link.form))

    def _named(self, source: str, place: "Placing", kind: Place) -> None:
        for path, at, _ in paths_named(source):
            start = place(at)
            if start is not None and self.source.startswith(path, start):
                self.mentions.append(Mention(path, start, start + len(path), kind))

    def _placing(self, first: int, content: str) -> "Placing":
        """Where in the source a place in a block's content is; None when it cannot be told."""
        starts: list[int] = []
        columns: list[int | None] = []
        at = 0
        for number, line in enumerate(content.split("\n"), first):
            starts.append(at)
            at += len(line) + 1
            columns.append(self._column(number, line, whole="\n" in content))

        def place(offset: int) -> int | None:
            index = max(i for i, start in enumerate(starts) if start <= offset)
            column = columns[index]
            return None if column is None else column + offset - starts[index]

        return place

    def _column(self, number: int, line: str, *, whole: bool) -> int | None:
        core = line.strip()
        if not core or number >= len(self.lines.text):
            return None
        source = self.lines.text[number].replace("\0", "\ufffd")
        # A table's cells share one line, so each is looked for after the one before it.
        column = source.rfind(core) if whole else source.find(core, self._cells.get(number, 0))
        if column < 0:
            return None
        self._cells[number] = column + len(core)
        return self.lines.starts[number] + column - (len(line) - len(line.lstrip()))


Placing = Callable[[int], int | None]
