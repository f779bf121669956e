"""Reads YAML into plain values with line numbers, within bounds, and strictly YAML 1.2.

Two kinds of files are read with this: the committed policy and the markers. Both decide whether
money is spent, and both come from whoever can push, so one pass over the parser's *events* refuses
what makes YAML surprising (anchors, merge keys, tags, directives, second documents, repeated keys)
and what makes it expensive (size, depth, number of nodes) before any value exists.
"""

import re
from collections.abc import Iterable
from typing import NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from orchestrator.yamlnode import Kind, Mapping, Node, Scalar, Sequence, kind_of, shown

__all__ = [
    "MAX_BYTES",
    "Kind",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "YamlError",
    "parse",
]

MAX_BYTES = 65_536
MAX_DEPTH = 16
MAX_EVENTS = 20_000


class YamlError(Exception):
    """The text is not YAML, or not the plain, bounded YAML that is read here.

    Attributes:
        message: one sentence, without the place.
        hint: the way out, or None.
        line, column: counted from 1; None when it is about the whole text.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column


def parse(
    data: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_events: int = MAX_EVENTS,
) -> Node | None:
    """Read one YAML document; None when there is none (empty, or only comments).

    Raises:
        YamlError: and nothing else, whatever the bytes.
    """
    text = _decode(data, max_bytes)
    try:
        return _build(YAML(typ="safe", pure=True).parse(text), max_depth, max_events)
    except YamlError as error:
        _raise_if_conflict(text)
        raise error from None
    except Exception as error:  # noqa: BLE001 - the parser raises bare ValueErrors and others, too
        _raise_if_conflict(text)
        raise _not_yaml(error) from None


# What YAML calls unprintable, and the three that only YAML 1.1 reads as line breaks: between two
# readers, a file holding them would say two different things. UTF-8 rules out surrogates. (Its
# complement, every printable range, takes 8 ms to compile.)
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_CONFLICT = re.compile(r"^(?:<{7} .*|>{7} .*|={7})\r?$", re.MULTILINE)


def _decode(data: bytes, max_bytes: int) -> str:
    if len(data) > max_bytes:
        raise YamlError(f"it is larger than {max_bytes} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        hint = "save it as UTF-8"
        raise YamlError("it is not UTF-8 text", hint, line=line, column=column) from None
    if found := _UNREADABLE.search(text):
        line, column = _place(text, found.start())
        message = f"the character U+{ord(found[0]):04X} may not stand in YAML"
        raise YamlError(message, "remove it, or write it escaped", line=line, column=column)
    return text


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _raise_if_conflict(text: str) -> None:
    """Say what really happened when the text cannot be read because of conflict markers."""
    if found := _CONFLICT.search(text):
        line, column = _place(text, found.start())
        hint = "resolve it and commit the result"
        raise YamlError("a merge conflict was left in", hint, line=line, column=column) from None


_PARSER_HINTS = (
    ("mapping values are not allowed", "quote a value that contains ': ', or mend the indentation"),
    (r"'\t' that cannot start", "use spaces instead of tabs"),
    ("cannot start any token", "quote a value that starts with this character"),
    ("end of stream", "close the quote or bracket"),
    ("expected <block end>", "mend the indentation"),
    ("could not find expected ':'", "put ': ' between the key and its value"),
)


def _not_yaml(error: Exception) -> YamlError:
    """Turn whatever the parser raised into one sentence."""
    problem = getattr(error, "problem", None)
    said = " ".join(problem.split())[:200] if isinstance(problem, str) else "it cannot be read"
    said = "".join(char if char.isprintable() else "?" for char in said)
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    hint = next((hint for part, hint in _PARSER_HINTS if part in said), None)
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return YamlError(f"it is not valid YAML: {said}", hint, line=line, column=column)


class _Frame:
    """A list or map that is still open."""

    __slots__ = ("column", "is_map", "items", "key", "line", "pairs", "seen")

    def __init__(self, *, is_map: bool, line: int, column: int) -> None:
        self.is_map, self.line, self.column = is_map, line, column
        self.items: list[Node] = []
        self.pairs: list[tuple[Scalar, Node]] = []
        self.key: Scalar | None = None
        self.seen: dict[tuple[Kind, str], int] = {}

    @property
    def wants_key(self) -> bool:
        return self.is_map and self.key is None

    def add(self, node: Node) -> None:
        if not self.is_map:
            self.items.append(node)
        elif self.key is not None:
            self.pairs.append((self.key, node))
            self.key = None
        elif isinstance(node, Scalar):
            self._open_key(node)

    def _open_key(self, key: Scalar) -> None:
        first = self.seen.get((key.kind, key.text))
        if first is not None:
            raise YamlError(
                f"the key {shown(key.text)} stands twice, on lines {first} and {key.line}",
                "keep one of the two",
                line=key.line,
                column=key.column,
            )
        self.seen[key.kind, key.text] = key.line
        self.key = key

    def closed(self) -> Node:
        if self.is_map:
            return Mapping(tuple(self.pairs), self.line, self.column)
        return Sequence(tuple(self.items), self.line, self.column)


class _Builder:
    """Takes events one by one and keeps the bounds."""

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.stack: list[_Frame] = []
        self.root: Node | None = None
        self.documents = 0
        self.previous: Event | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self.documents += 1
            _check_document(event, self.documents)
        elif isinstance(event, NodeEvent):
            _check_node(event)
            if isinstance(event, CollectionStartEvent):
                self._open(event)
            elif isinstance(event, ScalarEvent):
                is_key = bool(self.stack) and self.stack[-1].wants_key
                self._add(_scalar(event, self.previous, is_key=is_key))
        elif isinstance(event, CollectionEndEvent):
            self._add(self.stack.pop().closed())
        self.previous = event

    def _open(self, event: CollectionStartEvent) -> None:
        if len(self.stack) >= self.max_depth:
            deep = f"it is nested more than {self.max_depth} levels deep"
            _refuse(event, deep, "close the brackets that were left open, or mend the indentation")
        if self.stack and self.stack[-1].wants_key:
            _refuse(event, "a list or map stands where a key is expected", "quote it if it is text")
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        is_map = isinstance(event, MappingStartEvent)
        self.stack.append(_Frame(is_map=is_map, line=line, column=column))

    def _add(self, node: Node) -> None:
        if self.stack:
            self.stack[-1].add(node)
        else:
            self.root = node


def _build(events: Iterable[Event], max_depth: int, max_events: int) -> Node | None:
    builder = _Builder(max_depth)
    for count, event in enumerate(events, start=1):
        if count > max_events:
            _refuse(event, f"it has more than {max_events} parts")
        builder.take(event)
    root = builder.root
    nothing = isinstance(root, Scalar) and root.kind is Kind.NULL and not root.text
    return None if nothing else root


def _check_document(event: DocumentStartEvent, documents: int) -> None:
    if event.version or event.tags:
        _refuse(event, "directives (%YAML, %TAG) are not read here", "remove the line")
    if documents > 1:
        _refuse(event, "a second document starts here", "keep one document, without this `---`")


def _check_node(event: NodeEvent) -> None:
    if isinstance(event, AliasEvent):
        _refuse(
            event,
            f"aliases ({shown('*' + event.anchor)[1:-1]}) are not read here",
            "write the value out",
        )
    if event.anchor:
        _refuse(
            event,
            f"anchors ({shown('&' + event.anchor)[1:-1]}) are not read here",
            "write each value out",
        )
    if isinstance(event, ScalarEvent | CollectionStartEvent) and event.ctag:
        _refuse(
            event,
            f"tags ({shown(str(event.ctag))[1:-1]}) are not read here",
            "remove it; quote what is text",
        )


def _scalar(event: ScalarEvent, previous: Event | None, *, is_key: bool) -> Scalar:
    text: str = event.value
    plain = event.style is None
    if plain and is_key and text == "<<":
        _refuse(event, "merge keys (<<) are not read here", "write the keys out")
    # A value that is not there stands at the next token, often lines below; its key is the place.
    mark = previous.end_mark if previous and plain and not text else event.start_mark
    try:
        # "\ud83d\ude00" in quotes is how JSON writes one character; half of it is none.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        _refuse(event, "half of a surrogate pair stands here, which is no character")
    kind = kind_of(text) if plain else Kind.STR
    return Scalar(kind, text, mark.line + 1, mark.column + 1)


def _refuse(event: Event, message: str, hint: str | None = None) -> NoReturn:
    mark = event.start_mark
    raise YamlError(message, hint, line=mark.line + 1, column=mark.column + 1)
