"""The values of `orchestrator.yaml`, strictly typed: each is read as what it is, or refused.

Each reader takes one node and returns the value, or a `BadValue` with one sentence ("expected …,
found …") and a hint where one can be computed. Nothing is converted: a quoted number is a text, a
bare `no` is a text, and guessing at either could spend money or hide that nothing runs.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.model.timing import Every
from orchestrator.yamlnode import Kind, Node, Scalar, Sequence, described, quoted, shown

NAME_MAX_LENGTH = 200
"""Of an adapter's and a model's name: both end up in every marker."""

_INTERVAL = "an interval such as 7d, 12h or 30m"


@dataclass(frozen=True, slots=True)
class BadValue:
    """Why a value is refused, and where it stands."""

    message: str
    node: Node
    hint: str | None = None


Reader: TypeAlias = Callable[[Node], object]


def _bad(expected: str, node: Node, hint: str | None = None) -> BadValue:
    return BadValue(f"expected {expected}, found {described(node)}", node, hint)


def _text(node: Node) -> str | None:
    return node.text if isinstance(node, Scalar) and node.kind is Kind.STR else None


def interval(node: Node) -> Every | BadValue:
    """Read `every` or `timeout`: a text that `Every.parse` takes."""
    text = _text(node)
    every = None if text is None else Every.parse(text)
    if every is not None:
        return every
    from orchestrator.everyhint import interval_hint  # only mistakes need it

    guess = interval_hint(node.text) if isinstance(node, Scalar) else None
    if isinstance(node, Scalar) and node.kind is Kind.NULL:
        guess = "write an interval such as 7d after the colon"
    return _bad(_INTERVAL, node, guess)


def boolean(node: Node) -> bool | BadValue:
    """Read `true` or `false`; nothing else means either."""
    if isinstance(node, Scalar) and node.kind is Kind.BOOL:
        return node.value is True
    return _bad("true or false", node, _boolean_hint(node))


def _boolean_hint(node: Node) -> str | None:
    if not isinstance(node, Scalar):
        return None
    if node.kind is Kind.NULL:
        return "write true or false, or remove the key (the default is true)"
    word = node.text.strip().lower()
    if word in ("true", "yes", "y", "on", "1", "enabled"):
        return "write true"
    if word in ("false", "no", "n", "off", "0", "disabled"):
        return "write false"
    return None


def dollars(node: Node) -> float | BadValue | None:
    """Read a finite amount of US dollars, 0 or more; null is None."""
    if isinstance(node, Scalar):
        if node.kind is Kind.NULL:
            return None
        if (number := node.number) is not None and number >= 0:
            return number + 0.0  # -0.0 becomes 0.0
    return _bad("a number of US dollars, 0 or more", node, _dollars_hint(node))


def count(node: Node) -> int | BadValue:
    """Read a whole number, 1 or more: of files, or of bytes."""
    if isinstance(node, Scalar) and node.kind is Kind.INT:
        number = node.value
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            return number
    text = _text(node)
    quoted_number = text is not None and text.isascii() and text.isdigit()
    hint = f"remove the quotes: {text}" if quoted_number else _empty(node)
    return _bad("a whole number, 1 or more", node, hint)


_AMOUNT = re.compile(
    r"(?:US)?\$? *([0-9][0-9_,]{0,14}(?:\.[0-9]{1,6})?) *(?:\$|USD|dollars?)?", re.IGNORECASE
)


def _dollars_hint(node: Node) -> str | None:
    if not isinstance(node, Scalar):
        return None
    if node.kind is Kind.STR:
        found = _AMOUNT.fullmatch(node.text.strip())
        if found and node.text == found[1] and not set(found[1]) & set("_,"):
            return f"remove the quotes: {found[1]}"
        return f"write {found[1].replace('_', '').replace(',', '')}" if found else None
    if node.kind in (Kind.INT, Kind.FLOAT) and node.number is None:
        return "write a finite number, or leave the key out"
    return None


def name(node: Node) -> str | BadValue:
    """Read an adapter's or a model's name: it ends up in a command line and in every marker."""
    text = _text(node)
    if text is None:
        return _bad("a name", node, _quote_it(node))
    if not text or not text.isprintable() or text != text.strip():
        return _bad("a name without control characters or white space around it", node)
    if text.startswith("-"):
        return _bad("a name that does not start with '-' (programs would read an option)", node)
    if len(text) > NAME_MAX_LENGTH:
        return _bad(f"a name of at most {NAME_MAX_LENGTH} characters", node)
    return text


def _quote_it(node: Node) -> str | None:
    """The way out for a value that YAML reads as a number, a boolean or a date."""
    if isinstance(node, Scalar) and node.kind is not Kind.NULL:
        return f"quote it: {shown(node.text)}"
    return _empty(node)


def _empty(node: Node) -> str | None:
    nothing = isinstance(node, Scalar) and node.kind is Kind.NULL
    return "write a value, or remove the key" if nothing else None


def _path_problem(text: str) -> tuple[str, str | None] | None:
    """Why a path or glob cannot be followed inside the repository's tree, with a hint."""
    if not text or not text.isprintable():
        return "a path without control characters", None
    if "\\" in text:
        return "a path with '/' between its parts", f"write {quoted(text.replace(chr(92), '/'))}"
    if text.startswith(("/", "~")):
        return "a path relative to the repository's root", None
    parts = text.split("/")
    if ".." in parts:
        return "a path inside the repository, without '..'", None
    if "." in parts or "" in parts:
        clean = "/".join(part for part in parts if part not in ("", "."))
        return "a path without '.' or empty parts", f"write {quoted(clean)}" if clean else None
    return None


def path(node: Node) -> str | BadValue:
    """Read the path of a file in the repository's tree, clean and relative to its root."""
    text = _text(node)
    if text is None:
        return _bad("the path of a file in the repository", node, _empty(node))
    if problem := _path_problem(text):
        return _bad(problem[0], node, problem[1])
    return text


def globs(node: Node) -> tuple[str, ...] | BadValue:
    """Read a list of glob patterns, each relative to the repository's root."""
    expected = 'a list of patterns such as ["docs/**"]'
    if not isinstance(node, Sequence):
        text = _text(node)
        return _bad(expected, node, f"write [{quoted(text)}]" if text else _empty(node))
    patterns = []
    for item in node.items:
        text = _text(item)
        if text is None:
            return _bad("a pattern such as docs/**", item, _empty(item))
        if text.endswith("/") and _path_problem(text[:-1]) is None:
            return _bad("a pattern that matches files", item, f"write {quoted(text + '**')}")
        if problem := _path_problem(text):
            return _bad(problem[0].replace("a path", "a pattern"), item, problem[1])
        patterns.append(text)
    return tuple(patterns)


def argv(node: Node) -> tuple[str, ...] | BadValue:
    """Read a command: the program and its arguments, each a text, no shell in between."""
    expected = "a list: the program and its arguments"
    if not isinstance(node, Sequence):
        text = _text(node)
        parts = ", ".join(map(quoted, text.split())) if text and len(text) < NAME_MAX_LENGTH else ""
        return _bad(expected, node, f"write [{parts}]" if parts else _empty(node))
    if not node.items:
        return BadValue(f"expected {expected}, found an empty list", node)
    words = []
    for item in node.items:
        text = _text(item)
        if text is None:
            return _bad("a text", item, _quote_it(item))
        if "\0" in text:
            return _bad("a text without a NUL character", item)
        words.append(text)
    if problem := _program_problem(words[0]):
        return BadValue(f"expected {problem}, found {shown(words[0])}", node.items[0])
    return tuple(words)


def _program_problem(program: str) -> str | None:
    if not program or not program.isprintable() or program != program.strip():
        return "the program's name or path first"
    if program.startswith(("-", "~")):
        return "a program's name or path that does not start with '-' or '~'"
    if not program.startswith("/") and ".." in program.split("/"):
        return "a program inside the repository, without '..'"
    return None
