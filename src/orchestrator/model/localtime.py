"""From local times to instants: what happens when the clocks change.

A local time that does not exist fires once, at the corresponding time after the change (02:30 at
03:30); one that occurs twice fires once, at its first. Both are what a local time means with
`fold=0`; the work is in not losing or doubling an occurrence around the change, because instants
do not follow the order of the local times there: 02:30, moved to 03:30, comes after a real 03:00.

A zone is any `tzinfo`. No change of the clocks moves them by more than a day, and two changes lie
more than a day apart; both hold for every zone in the database.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

from orchestrator.model.cron import Cron

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_TICK = timedelta(microseconds=1)
_ZERO = timedelta(0)
_LOOK = 26
"""Hours looked back for a change of the clocks: the longest change is one of 24 hours."""


def instant_of(local: datetime, zone: tzinfo) -> datetime:
    """The instant (UTC) at which a local time fires."""
    if zone is UTC:
        return local.replace(tzinfo=UTC)
    return local.replace(tzinfo=zone).astimezone(UTC)


def cron_after(cron: Cron, zone: tzinfo, at: datetime) -> datetime | None:
    """The first occurrence strictly after `at` (aware), in UTC; None beyond the calendar."""
    try:
        smallest, _ = _offsets(zone, at)
        for local in _forwards(cron, _local(at, smallest)):
            found = instant_of(local, zone)
            if found > at:
                return _earliest_beside(cron, zone, local, found, at)
    except OverflowError:
        return None
    return None


def cron_until(cron: Cron, zone: tzinfo, at: datetime) -> datetime | None:
    """The last occurrence not after `at` (aware), in UTC; None before the calendar."""
    try:
        _, largest = _offsets(zone, at)
        for local in _backwards(cron, _local(at, largest)):
            found = instant_of(local, zone)
            if found <= at:
                return _latest_beside(cron, zone, local, found, at)
    except OverflowError:
        return None
    return None


def cron_count(cron: Cron, zone: tzinfo, after: datetime, until: datetime) -> int:
    """How many occurrences lie after `after` and not after `until`.

    Days are counted, not occurrences; only the days at both ends and around a change of the clocks
    are looked at one local time at a time.
    """
    if until <= after:
        return 0
    (least, most), (low, high) = _offsets(zone, after), _offsets(zone, until)
    day, last = _local(after, least).date(), _local(until, high).date()
    begun, ending = _local(after, most).date(), _local(until, low).date()
    total, seen = 0, set[datetime]()
    gaps = [_has_gap(zone, day - _DAY), _has_gap(zone, day), False]
    while day <= last:
        gaps[2] = _has_gap(zone, day + _DAY)
        if day <= begun or day >= ending or any(gaps):
            seen.update(instant_of(local, zone) for local in cron.times_on(day))
        elif cron.matches(day):
            total += cron.times_a_day
        gaps[:2] = gaps[1:]
        day += _DAY
    return total + sum(after < found <= until for found in seen)


def _has_gap(zone: tzinfo, day: date) -> bool:
    """Whether the clocks go forward within the local day."""
    if zone is UTC:
        return False
    start = datetime(day.year, day.month, day.day, tzinfo=zone)
    return ((start + _DAY).utcoffset() or _ZERO) > (start.utcoffset() or _ZERO)


def _offsets(zone: tzinfo, at: datetime) -> tuple[timedelta, timedelta]:
    """The smallest and the largest offset from UTC in the day before `at`."""
    if zone is UTC:
        return _ZERO, _ZERO
    found = [(at - n * _HOUR).astimezone(zone).utcoffset() or _ZERO for n in range(_LOOK)]
    return min(found), max(found)


def _local(at: datetime, offset: timedelta) -> datetime:
    return (at.astimezone(UTC) + offset).replace(tzinfo=None)


def _forwards(cron: Cron, start: datetime) -> Iterator[datetime]:
    local = cron.first_from(start)
    while local is not None:
        yield local
        local = cron.first_from(local + _TICK)


def _backwards(cron: Cron, start: datetime) -> Iterator[datetime]:
    local = cron.last_until(start)
    while local is not None:
        yield local
        local = cron.last_until(local - _TICK)


def _earliest_beside(
    cron: Cron, zone: tzinfo, local: datetime, found: datetime, at: datetime
) -> datetime:
    """`found`, or a real local time just after the gap that `local` fell into, if it is earlier."""
    shifted = found.astimezone(zone).replace(tzinfo=None)
    for other in _forwards(cron, local + _TICK):
        if other >= shifted:
            break
        candidate = instant_of(other, zone)
        if at < candidate < found:
            found = candidate
    return found


def _latest_beside(
    cron: Cron, zone: tzinfo, local: datetime, found: datetime, at: datetime
) -> datetime:
    """`found`, or a local time of a gap just before `local`, if it was moved to a later instant."""
    smallest, _ = _offsets(zone, found)
    for other in _backwards(cron, local - _TICK):
        if other <= _local(found, smallest):
            break
        candidate = instant_of(other, zone)
        if found < candidate <= at:
            found = candidate
    return found
