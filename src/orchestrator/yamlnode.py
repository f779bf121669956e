"""What YAML text is made of, as plain values with their place, and how one value is written.

Reading (`orchestrator.yamlio`) builds these; nothing here knows the parser. A scalar is typed when
somebody asks for its value, so no text can fail to be built.
"""

import math
import re
from enum import StrEnum
from typing import NamedTuple, TypeAlias


class Kind(StrEnum):
    """What YAML 1.2 (core schema) reads a scalar as; quoted and block scalars are strings.

    `TIMESTAMP` is not in the core schema, but many tools build a date from such a scalar: whoever
    wants a string should know that this one is not safely one.
    """

    STR = "string"
    INT = "integer"
    FLOAT = "float"
    BOOL = "boolean"
    NULL = "null"
    TIMESTAMP = "timestamp"


# The core schema's own table (YAML 1.2.2, 10.3.2), in ASCII. The parser's resolver is wider: it
# reads `1_000` and `0b1` as numbers and matches things that are not numbers at all (`._`).
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.NULL, re.compile(r"|~|null|Null|NULL")),
    (Kind.BOOL, re.compile(r"true|True|TRUE|false|False|FALSE")),
    (Kind.INT, re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")),
    (Kind.FLOAT, re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")),
    (Kind.FLOAT, re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")),
    (
        Kind.TIMESTAMP,
        re.compile(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
            r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
            r"(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?"
        ),
    ),
)


def kind_of(plain: str) -> Kind:
    """What a plain (unquoted) scalar is read as."""
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(plain)), Kind.STR)


class Scalar(NamedTuple):
    """One value as written; `line` and `column` count from 1."""

    kind: Kind
    text: str
    line: int
    column: int

    @property
    def value(self) -> str | int | float | bool | None:
        """The value itself. Never raises: an integer too long to convert is an infinity."""
        match self.kind:
            case Kind.NULL:
                return None
            case Kind.BOOL:
                return self.text.lower() == "true"
            case Kind.INT:
                return _integer(self.text)
            case Kind.FLOAT:
                return float(self.text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            case Kind.STR | Kind.TIMESTAMP:
                return self.text

    @property
    def number(self) -> float | None:
        """A finite number, or None for anything else, booleans included."""
        if self.kind not in (Kind.INT, Kind.FLOAT):
            return None
        try:
            number = float(self.value or 0)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None


def _integer(text: str) -> int | float:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        return int(text, base)
    except ValueError:  # more digits than Python converts (a limit against slow conversions)
        return -math.inf if text.startswith("-") else math.inf


class Sequence(NamedTuple):
    items: tuple["Node", ...]
    line: int
    column: int


class Mapping(NamedTuple):
    """Keys in file order; no key stands twice."""

    items: tuple[tuple[Scalar, "Node"], ...]
    line: int
    column: int


Node: TypeAlias = Scalar | Sequence | Mapping


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Words that YAML 1.1 readers turn into booleans.
_OLD_WORDS = frozenset({"y", "n", "yes", "no", "on", "off"})
_BARE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/@+=(),-]*[A-Za-z0-9._/@+=(),-])?")
_OLD_NUMBER = re.compile(r"[0-9][0-9_.,]*|0[box][0-9a-fA-F_]+")


def quoted(text: str) -> str:
    """`text` as a double-quoted YAML scalar on one line, with everything unprintable escaped."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - a lone surrogate has no spelling that can be read
        return "\ufffd"
    width, letter = (2, "x") if code < 0x100 else (4, "u") if code < 0x10000 else (8, "U")  # noqa: PLR2004
    return f"\\{letter}{code:0{width}x}"


def written(text: str) -> str:
    """`text` as a YAML scalar that any reader, 1.1 or 1.2, reads back as this string.

    Bare where that is certain, double-quoted otherwise.
    """
    bare = (
        _BARE.fullmatch(text) is not None
        and kind_of(text) is Kind.STR
        and text.lower() not in _OLD_WORDS
        and _OLD_NUMBER.fullmatch(text) is None
    )
    return text if bare else quoted(text)


def shown(text: str, limit: int = 60) -> str:
    """`text` as a sentence can hold it: quoted, printable, and cut when it is long."""
    return quoted(text if len(text) <= limit else text[: limit - 1] + "…")


def described(node: Node | None) -> str:
    """What stands there, for "expected …, found …"."""
    match node:
        case None:
            return "nothing"
        case Sequence():
            return "a list"
        case Mapping():
            return "a map"
        case Scalar(kind=Kind.STR):
            return f"the text {shown(node.text)}"
        case Scalar(kind=Kind.NULL):
            return f"an empty value ({node.text})" if node.text else "nothing"
        case Scalar(kind=Kind.BOOL):
            return f"the boolean {node.text}"
        case Scalar(kind=Kind.TIMESTAMP):
            return f"the date {shown(node.text)[1:-1]}"
        case Scalar():
            return f"the number {shown(node.text)[1:-1]}"
