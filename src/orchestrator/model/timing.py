"""How often: the grammar of `every` and the instants computed from it.

Everything is whole milliseconds and integers, so that `999999999999d` compares instead of
overflowing a `timedelta`.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self

_EVERY = re.compile(r"([0-9]{1,15})([dhm])")
_UNIT_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What "trimmed" means: the white space of the grammar's first implementation (ECMAScript's
# `trim`). Python's `strip()` differs: it keeps U+FEFF and drops U+001C to U+001F and U+0085.
_TRIM = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


class Every(NamedTuple):
    """A duration as written (`text`, trimmed) and in milliseconds (`ms`, positive)."""

    text: str
    ms: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `<n>d`, `<n>h` or `<n>m` with n > 0, or None.

        The grammar is `^[0-9]+[dhm]$` after trimming; more than fifteen digits are refused.
        """
        trimmed = text.strip(_TRIM)
        match = _EVERY.fullmatch(trimmed)
        if match is None or int(match[1]) == 0:
            return None
        return cls(trimmed, int(match[1]) * _UNIT_MS[match[2]])

    @property
    def seconds(self) -> float:
        return self.ms / 1000


def elapsed_ms(since: datetime, now: datetime) -> int:
    """Whole milliseconds from `since` to `now`, rounded down; negative when `since` is later."""
    return (now - since) // timedelta(milliseconds=1)


def later(at: datetime, ms: int) -> datetime | None:
    """`at` plus `ms` milliseconds, or None when that lies past what a calendar can hold."""
    try:
        return at + timedelta(milliseconds=ms)
    except OverflowError:
        return None


def next_midnight(now: datetime) -> datetime | None:
    """The start of the next UTC day."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return later(day, _UNIT_MS["d"])


def iso(at: datetime) -> str:
    """UTC ISO-8601 with `Z`, to the second: `2026-11-30T02:00:00Z`."""
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def from_epoch(seconds: int) -> datetime:
    """A git time (seconds since 1970, UTC), clamped into what a calendar can hold."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if seconds > 0 else datetime.min.replace(tzinfo=UTC)
