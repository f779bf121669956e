"""A calendar schedule: the occurrences that a `cron` or an `interval` names, and when each is due.

An occurrence is a nominal instant (UTC). Jitter delays when it is due and never moves it; the
delay is computed from the role and the occurrence, so every machine waits equally long. It stays
below the gap to the next occurrence, so occurrences come due in their order.

Nothing here counts up from the past: an outage of three years costs what one of a minute costs.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import NamedTuple, Self

from orchestrator.model.cron import Cron
from orchestrator.model.localtime import cron_after, cron_count, cron_until
from orchestrator.model.timing import iso, later

_PART = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_TICK = timedelta(microseconds=1)
INTERVAL_MIN_MS = 1000
GRACE_DEFAULT_MS = 3_600_000


class Span(NamedTuple):
    """A duration as written (`text`) and in milliseconds (`ms`, positive)."""

    text: str
    ms: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read whole numbers with the units d, h, m, s and ms, the largest first, each once."""
        trimmed = text.strip(" \t\r\n")
        order = list(_UNITS)
        total, at, unit = 0, 0, -1
        while at < len(trimmed):
            match = _PART.match(trimmed, at)
            if match is None or order.index(match[2]) <= unit:
                return None
            unit = order.index(match[2])
            total += int(match[1]) * _UNITS[match[2]]
            at = match.end()
        return cls(trimmed, total) if total > 0 else None


class Overlap(StrEnum):
    """What a due occurrence does while an earlier sweep of the role is open."""

    SKIP = "skip"
    ALLOW = "allow"


class Catchup(StrEnum):
    """What becomes of the latest occurrence when nobody looked while it was due."""

    RUN_ONCE = "run_once"
    SKIP_MISSED = "skip_missed"


class Zone(NamedTuple):
    """A time zone with the name it has in the policy. Equal when the names are."""

    name: str
    rules: tzinfo


class Calendar(NamedTuple):
    """When a role's occurrences are; exactly one of `cron` and `interval` is set.

    Attributes:
        start_at, end_at: no occurrence lies before the one or after the other (aware).
        jitter: each occurrence is due less than this after its nominal time.
        catchup, grace_ms: with `skip_missed`, an occurrence found later than this after it was due
            is missed.
    """

    cron: Cron | None
    interval: Span | None
    zone: Zone
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: Span | None = None
    catchup: Catchup = Catchup.RUN_ONCE
    grace_ms: int = GRACE_DEFAULT_MS

    @property
    def text(self) -> str:
        """One line for the marker: `cron 0 2 * * * Europe/Berlin`, or `interval 1h30m`."""
        if self.cron is not None:
            return f"cron {self.cron.text} {self.zone.name}"
        return f"interval {self.interval.text}" if self.interval is not None else ""

    @property
    def words(self) -> str:
        """The same for people: `cron "0 2 * * *" Europe/Berlin`, or `every 1h30m`."""
        if self.cron is not None:
            return f'cron "{self.cron.text}" {self.zone.name}'
        return f"every {self.interval.text}" if self.interval is not None else ""

    @property
    def times(self) -> tuple[object, ...]:
        """What, when it changes, makes the schedule start anew: its times, not its policies."""
        step = self.interval.ms if self.interval is not None else None
        jitter = self.jitter.ms if self.jitter is not None else None
        fields = self.cron[1:] if self.cron is not None else None
        return fields, self.zone.name, step, self.start_at, self.end_at, jitter

    def after(self, at: datetime) -> datetime | None:
        """The first occurrence strictly after `at` (aware); None when there is none any more."""
        if self.start_at is not None and at < self.start_at:
            at = self.start_at - _TICK
        if self.cron is not None:
            found = cron_after(self.cron, self.zone.rules, at)
        else:
            found = self._on_grid(self._steps(at) + 1)
        return found if found is None or self.end_at is None or found <= self.end_at else None

    def until(self, at: datetime) -> datetime | None:
        """The last occurrence not after `at` (aware); None when there was none yet."""
        if self.end_at is not None and at > self.end_at:
            at = self.end_at
        if self.start_at is not None and at < self.start_at:
            return None
        if self.cron is not None:
            found = cron_until(self.cron, self.zone.rules, at)
        else:
            found = self._on_grid(self._steps(at))
        early = found is not None and self.start_at is not None and found < self.start_at
        return None if early else found

    def first(self, now: datetime) -> datetime | None:
        """The first occurrence that is not due yet where none is due: one waiting for its jitter,
        or the next one.
        """
        return self.until(now) or self.after(now)

    def between(self, after: datetime, until: datetime) -> int:
        """How many occurrences lie after `after` and not after `until`; whole days are not walked
        through one occurrence at a time.
        """
        if self.start_at is not None:
            after = max(after, self.start_at - _TICK)
        if self.end_at is not None:
            until = min(until, self.end_at)
        if until <= after:
            return 0
        if self.cron is not None:
            return cron_count(self.cron, self.zone.rules, after, until)
        return self._steps(until) - self._steps(after)

    def due_at(self, role: str, occurrence: datetime) -> datetime:
        """When an occurrence is due: its nominal time and its share of the jitter."""
        if self.jitter is None:
            return occurrence
        delay = jitter_ms(role, occurrence, self.jitter.ms)
        following = self.after(occurrence)
        if following is not None:
            delay = min(delay, (following - occurrence) // _MS - 1)
        return later(occurrence, max(delay, 0)) or occurrence

    def latest_due(self, role: str, now: datetime) -> datetime | None:
        """The latest occurrence that is due at `now`."""
        found = self.until(now)
        if found is not None and self.due_at(role, found) > now:
            found = self.until(found - _TICK)
        return found

    def missed(self, role: str, occurrence: datetime, now: datetime) -> bool:
        """Whether it is too late for a due occurrence; lateness counts from when it was due."""
        late = now - self.due_at(role, occurrence)
        return self.catchup is Catchup.SKIP_MISSED and late // _MS > self.grace_ms

    @property
    def often(self) -> bool:
        """Whether a day can have several occurrences, of which a role sweeps the first only."""
        if self.interval is not None:
            return self.interval.ms < _UNITS["d"]
        return self.cron is not None and self.cron.times_a_day > 1

    def _steps(self, at: datetime) -> int:
        step = self.interval.ms if self.interval is not None else 1
        return (at - (self.start_at or _EPOCH)) // _MS // step

    def _on_grid(self, steps: int) -> datetime | None:
        step = self.interval.ms if self.interval is not None else 1
        return later(self.start_at or _EPOCH, steps * step)


def jitter_ms(role: str, occurrence: datetime, below: int) -> int:
    """The delay of one occurrence, milliseconds: the same on every machine, spread over roles."""
    from hashlib import sha256  # only for schedules with jitter

    ms = (occurrence - _EPOCH) // _MS
    digest = sha256(f"{role}@{ms}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % below


def exact(at: datetime) -> str:
    """UTC ISO-8601 with `Z`; to the millisecond where an occurrence has any."""
    utc = at.astimezone(UTC)
    if not utc.microsecond // 1000:
        return iso(utc)
    return f"{iso(utc)[:-1]}.{utc.microsecond // 1000:03d}Z"
