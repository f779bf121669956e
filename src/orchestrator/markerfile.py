"""Reads and writes the marker, `runs/<slug>/sweep.yaml`.

Writing is strict: the same keys in the same order, the same bytes for the same values. Reading is
generous about form (people and other tools write markers too) and strict about what the next sweep
depends on: a marker whose `at` cannot be read says nothing about when the role last swept, and a
guess there would spend money.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from orchestrator import yamlnode
from orchestrator.model.marker import Marker, MarkerReading
from orchestrator.model.names import SweepName
from orchestrator.model.timing import iso
from orchestrator.yamlio import YamlError, parse
from orchestrator.yamlnode import Kind, Node, Scalar, Sequence, described, shown, written

COUNT_MAX = 10**18
"""Tokens beyond this are no count but a mistake, and read and written as unknown."""


class MarkerError(Exception):
    """A marker that cannot be relied on.

    Attributes:
        message: one sentence, without the place.
        line, column: counted from 1; None when it is about the whole file.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def read_marker(data: bytes, sweep: SweepName) -> MarkerReading:
    """Read the marker of `sweep`, by whoever wrote it.

    Raises:
        MarkerError: it is not YAML, has no usable `at`, or speaks of another sweep; and nothing
            else, whatever the bytes.
    """
    keys = _keys(data)
    for key, expected in (("role", sweep.role), ("sweep", sweep.slug)):
        _check_same(key, keys.get(key), expected)
    at = keys.get("at")
    if at is None:
        raise MarkerError("expected the key `at`, the time of the dispatch, found none", 1, 1)
    return MarkerReading(
        sweep,
        at=_instant("at", at),
        covering_since=_optional_instant("covering_since", keys),
        adapter=_text(keys.get("adapter")),
        model=_text(keys.get("model")),
        tokens_in=_count(keys.get("tokens_in")),
        tokens_out=_count(keys.get("tokens_out")),
        cost_usd=_amount(keys.get("cost_usd")),
        failed=_failed(keys.get("failed")),
        every=_text(keys.get("every")),
        cost_limit_usd=_amount(keys.get("cost_limit_usd")),
        occurrence=_optional_instant("occurrence", keys),
        trigger=_text(keys.get("trigger")),
    )


def _keys(data: bytes) -> dict[str, Node]:
    try:
        root = parse(data)
    except YamlError as error:
        raise MarkerError(error.message, error.line, error.column) from None
    if root is None:
        raise MarkerError("expected a map, found an empty file", 1, 1)
    if not isinstance(root, yamlnode.Mapping):
        raise MarkerError(f"expected a map, found {described(root)}", root.line, root.column)
    return {key.text: node for key, node in root.items if key.kind is Kind.STR}


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind is Kind.NULL


def _check_same(key: str, node: Node | None, expected: str) -> None:
    """Refuse a marker copied from another run; bare numbers and dates count as they are written."""
    if node is None or (isinstance(node, Scalar) and node.text == expected) or _is_null(node):
        return
    message = (
        f"expected `{key}` to be {shown(expected)} as the folder says, found {described(node)}"
    )
    raise MarkerError(message, node.line, node.column)


_INSTANT = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,30}))?)?"
    r"[ \t]*(?:[Zz]|UTC|([-+])([0-9]{1,2})(?::?([0-9]{2}))?)?)?"
)
_MINUTES_A_DAY = 24 * 60


def _optional_instant(key: str, keys: Mapping[str, Node]) -> datetime | None:
    node = keys.get(key)
    return None if node is None or _is_null(node) else _instant(key, node)


def _instant(key: str, node: Node) -> datetime:
    if isinstance(node, Scalar) and node.kind in (Kind.STR, Kind.TIMESTAMP):
        found = instant(node.text)
        if found is not None:
            return found
    expected = f"expected `{key}` to be a time such as 2026-11-30T02:00:00Z"
    raise MarkerError(f"{expected}, found {described(node)}", node.line, node.column)


def instant(text: str) -> datetime | None:
    """Read a time in ISO-8601 or as YAML writes it, as UTC; None when it is not one.

    No zone means UTC, a bare date its midnight. `datetime.fromisoformat` takes more than that
    (week dates, `20260101`, other scripts' digits), and offsets of a whole day not at all.
    """
    match = _INSTANT.fullmatch(text.strip(" \t\r\n"))
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[n] or 0) for n in range(1, 7))
    micro = int((match[7] or "")[:6].ljust(6, "0"))
    away = int(match[9] or 0) * 60 + int(match[10] or 0)
    if away > _MINUTES_A_DAY or int(match[10] or 0) >= 60:  # noqa: PLR2004 - minutes an hour
        return None
    offset = timedelta(minutes=-away if match[8] == "-" else away)
    try:
        return datetime(year, month, day, hour, minute, second, micro, tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        return None


def _text(node: Node | None) -> str | None:
    """A name as it is written; a list or map is nobody's name."""
    return node.text if isinstance(node, Scalar) and node.kind is not Kind.NULL else None


def _amount(node: Node | None) -> float | None:
    number = node.number if isinstance(node, Scalar) else None
    return number + 0.0 if number is not None and number >= 0 else None


def _count(node: Node | None) -> int | None:
    value = node.value if isinstance(node, Scalar) and node.number is not None else None
    if not isinstance(value, int | float) or value != int(value) or not 0 <= value <= COUNT_MAX:
        return None
    return int(value)


def _failed(node: Node | None) -> str | None:
    """Anything but null there says that it failed."""
    if node is None or _is_null(node):
        return None
    return _flat(node)


def _flat(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Sequence):
        return ", ".join(map(_flat, node.items))
    return ", ".join(f"{key.text}: {_flat(value)}" for key, value in node.items)


def render_marker(marker: Marker) -> bytes:
    """The marker's text: keys in the agreed order, LF, UTF-8; the same value gives the same bytes.

    Money has at most six decimals; what is not a finite number of 0 or more is written as unknown.
    """
    since = marker.covering_since
    values = {
        "sweep": written(marker.sweep.slug),
        "role": written(marker.sweep.role),
        "every": written(marker.every),
        "at": iso(marker.at),
        "covering_since": "null" if since is None else iso(since),
        **_calendar_keys(marker),
        "adapter": written(marker.adapter),
        "model": "null" if marker.model is None else written(marker.model),
        "cost_limit_usd": _money(marker.cost_limit_usd),
        "tokens_in": _tokens(marker.tokens_in),
        "tokens_out": _tokens(marker.tokens_out),
        "cost_usd": _money(marker.cost_usd),
    }
    if marker.failed is not None:
        values["failed"] = written(marker.failed)
    return "".join(f"{key}: {value}\n" for key, value in values.items()).encode()


def _calendar_keys(marker: Marker) -> dict[str, str]:
    """The keys that only some sweeps have; the others' markers are what they always were."""
    keys: dict[str, str] = {}
    if marker.occurrence is not None:
        from orchestrator.model.occurrence import exact  # only calendar schedules

        keys["occurrence"] = exact(marker.occurrence)
    if marker.trigger is not None:
        keys["trigger"] = written(marker.trigger)
    return keys


def _money(amount: float | None) -> str:
    if amount is None or not math.isfinite(amount) or amount < 0:
        return "null"
    text = f"{amount:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _tokens(count: int | None) -> str:
    return str(count) if count is not None and 0 <= count <= COUNT_MAX else "null"
