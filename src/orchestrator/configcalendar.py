"""The keys of a calendar schedule in `orchestrator.yaml`: each value, and all of them together.

Imported only when a file has one of these keys, so that a policy of `every` alone costs what it
always did.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from orchestrator import zones
from orchestrator.configvalues import BadValue, Reader
from orchestrator.model.cron import Cron, CronError
from orchestrator.model.occurrence import (
    GRACE_DEFAULT_MS,
    INTERVAL_MIN_MS,
    Calendar,
    Catchup,
    Overlap,
    Span,
    Zone,
)
from orchestrator.yamlnode import Kind, Node, Scalar, described

DESCRIPTION_MAX_LENGTH = 500
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,3})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_LARGEST_FIRST = "whole numbers with d, h, m, s or ms, the largest first"


def _text(node: Node) -> str | None:
    return node.text if isinstance(node, Scalar) and node.kind is Kind.STR else None


def _bad(expected: str, node: Node, hint: str | None = None) -> BadValue:
    return BadValue(f"expected {expected}, found {described(node)}", node, hint)


def cron(node: Node) -> Cron | BadValue:
    """Read a cron expression."""
    text = _text(node)
    if text is None:
        return _bad("a cron expression such as 0 2 * * *", node, "write it in quotes")
    try:
        return Cron.parse(text)
    except CronError as error:
        return BadValue(error.message, node, error.hint)


def timezone(node: Node) -> Zone | BadValue:
    """Read the name of a zone, as the `tzdata` package spells it."""
    text = _text(node)
    if text is None:
        return _bad("an IANA time zone such as Europe/Berlin", node)
    try:
        return Zone(text, zones.zone(text))
    except zones.ZoneError as error:
        return BadValue(f"{error.message}, found {described(node)}", node, error.hint)


def interval(node: Node) -> Span | BadValue:
    """Read the distance between two occurrences, at least a second."""
    found = _span("an interval such as 1h30m", node)
    if isinstance(found, Span) and found.ms < INTERVAL_MIN_MS:
        return _bad("an interval of at least 1s", node)
    return found


def duration(node: Node) -> Span | BadValue:
    """Read a duration of any length above zero."""
    return _span("a duration such as 30s or 1h30m", node)


def _span(expected: str, node: Node) -> Span | BadValue:
    text = _text(node)
    found = None if text is None else Span.parse(text)
    if found is not None:
        return found
    hint = f"write {_LARGEST_FIRST}"
    if isinstance(node, Scalar) and node.kind is Kind.INT and node.text.isdigit():
        hint = f"say which unit, such as {node.text}s"
    elif text is not None and Span.parse(text.replace(" ", "").lower()) is not None:
        hint = f"write {text.replace(' ', '').lower()}"
    return _bad(expected, node, hint)


def instant(node: Node) -> datetime | BadValue:
    """Read a time as RFC 3339 has it: with its zone, to the millisecond at most."""
    expected = "a time with its zone such as 2026-11-30T02:00:00Z"
    if not isinstance(node, Scalar) or node.kind not in (Kind.STR, Kind.TIMESTAMP):
        return _bad(expected, node)
    match = _INSTANT.fullmatch(node.text.strip())
    if match is None:
        return _bad(expected, node, "without a zone, or as a date alone, it could mean several")
    day, clock, fraction, offset = match.groups(default="")
    try:
        found = datetime.fromisoformat(f"{day}T{clock}{fraction.ljust(4, '0') if fraction else ''}"
                                       f"{'+00:00' if offset in 'Zz' else offset}")  # fmt: skip
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return _bad(expected, node)


_Word = TypeVar("_Word", bound=StrEnum)


def _word(words: type[_Word], node: Node) -> _Word | BadValue:
    text = _text(node)
    known = [w.value for w in words]
    if text in known:
        return words(text)
    from difflib import get_close_matches

    close = get_close_matches(text or "", known, 1)
    return _bad(" or ".join(known), node, f"did you mean {close[0]}?" if close else None)


def catchup(node: Node) -> Catchup | BadValue:
    """Read what becomes of a missed occurrence."""
    return _word(Catchup, node)


def overlap(node: Node) -> Overlap | BadValue:
    """Read what a due occurrence does while a sweep is open."""
    return _word(Overlap, node)


def description(node: Node) -> str | BadValue:
    """Read free text, shown by `status`."""
    text = _text(node)
    if text is None or len(text) > DESCRIPTION_MAX_LENGTH:
        return _bad(f"a text of at most {DESCRIPTION_MAX_LENGTH} characters", node)
    return " ".join(text.split())


READERS: Mapping[str, Reader] = {
    "cron": cron,
    "timezone": timezone,
    "interval": interval,
    "start_at": instant,
    "end_at": instant,
    "jitter": duration,
    "overlap": overlap,
    "catchup": catchup,
    "grace": duration,
    "description": description,
}


class Wrong(NamedTuple):
    """What does not go together: the key it is said at, one sentence, a way out."""

    key: str
    message: str
    hint: str | None


def contradictions(values: Mapping[str, Any], written: Mapping[str, object]) -> list[Wrong]:
    """What is wrong with an entry's keys together, although each has a good value.

    Args:
        values: the keys whose values could be read.
        written: all keys of the entry.
    """
    kinds = [k for k in ("every", "cron", "interval") if k in written]
    if len(kinds) > 1:
        both = f"both `{kinds[0]}` and `{kinds[1]}`"
        message = f"expected exactly one of `every`, `cron` and `interval`, found {both}"
        return [Wrong(kinds[1], message, f"remove `{kinds[0]}` or `{kinds[1]}`")]
    if not kinds:
        return []
    wrong = [
        Wrong(key, f"expected `{key}` only beside {beside}, found it beside `{kinds[0]}`", hint)
        for key, allowed, beside, hint in _BESIDE
        if key in written and kinds[0] not in allowed
    ]
    if "grace" in written and values.get("catchup") is not Catchup.SKIP_MISSED:
        message = "expected `grace` only beside `catchup: skip_missed`"
        wrong.append(Wrong("grace", message, "add `catchup: skip_missed`, or remove `grace`"))
    return wrong or _empty_window(values)


_EITHER = ("cron", "interval")
_NOT_WITH_EVERY = ("start_at", "end_at", "jitter", "overlap", "catchup", "grace")
_BESIDE = (
    ("timezone", ("cron",), "`cron`", "intervals are absolute: remove `timezone`"),
    *((key, _EITHER, "`cron` or `interval`", f"remove `{key}`") for key in _NOT_WITH_EVERY),
)


def _empty_window(values: Mapping[str, Any]) -> list[Wrong]:
    start, end = values.get("start_at"), values.get("end_at")
    if start is None or end is None:
        return []
    if end < start:
        return [Wrong("end_at", "expected `end_at` after `start_at`, found it before", None)]
    found = calendar(values)
    if found is not None and found.after(start - timedelta(microseconds=1)) is None:
        message = "expected an occurrence between `start_at` and `end_at`: it never fires"
        return [Wrong("end_at", message, "move `end_at`, or change the times")]
    return []


def calendar(values: Mapping[str, Any]) -> Calendar | None:
    """An entry's calendar; None when it has neither `cron` nor `interval`."""
    if "cron" not in values and "interval" not in values:
        return None
    grace = values.get("grace")
    return Calendar(
        cron=values.get("cron"),
        interval=values.get("interval"),
        zone=values.get("timezone") or Zone(zones.DEFAULT, UTC),
        start_at=values.get("start_at"),
        end_at=values.get("end_at"),
        jitter=values.get("jitter"),
        catchup=values.get("catchup", Catchup.RUN_ONCE),
        grace_ms=grace.ms if grace is not None else GRACE_DEFAULT_MS,
    )
