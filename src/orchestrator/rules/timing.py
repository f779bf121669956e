"""The one seam through which time enters the rules: is a sweep due, and if not, when?

`every` counts from the last merged sweep. A calendar schedule (`cron`, `interval`) asks which
occurrence is the latest that is due, and whether it was swept, was there before the schedule was,
or is missed. Nothing else in the rules knows the difference.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.model.config import ScheduleEntry
from orchestrator.model.names import SweepName
from orchestrator.model.timing import Every, elapsed_ms, iso, later, next_midnight
from orchestrator.rules.facts import MergedSweep, RoleFacts

if TYPE_CHECKING:  # a policy of `every` alone never imports it
    from orchestrator.model.occurrence import Calendar

_TICK = timedelta(microseconds=1)
_DAYS_AHEAD = 400
"""How many days that were swept already are passed over to name the next chance."""


class Due(NamedTuple):
    """Whether a sweep is due by time.

    Attributes:
        due_at: when it is; None on a first sweep, past what a calendar can hold, or never again.
        warning: something odd about the clocks.
        ended: no occurrence is to come.
    """

    elapsed: bool
    reason: str
    due_at: datetime | None = None
    warning: str | None = None
    ended: bool = False


def due(facts: RoleFacts, entry: ScheduleEntry) -> Due:
    """Ask the entry's own kind of timing; a broken marker has been dealt with before."""
    if facts.by_hand:
        return Due(elapsed=True, reason="a person asks for it now; the schedule does not move")
    if entry.calendar is not None:
        return _calendar(facts, entry.calendar)
    paced = facts.paced
    last = paced if isinstance(paced, MergedSweep) else None
    assert entry.every is not None  # noqa: S101 - an entry has exactly one kind of timing
    return _every(entry.every, last, facts.now)


def next_start(facts: RoleFacts, entry: ScheduleEntry) -> datetime | None:
    """When time alone could start a sweep, on a day that has none yet."""
    if entry.calendar is not None:
        return _whole(_next_due(facts, entry.calendar))
    tomorrow, paced = next_midnight(facts.now), facts.paced
    if tomorrow is None or not isinstance(paced, MergedSweep) or entry.every is None:
        return tomorrow
    return max(tomorrow, later(paced.at, entry.every.ms) or tomorrow)


def _calendar(facts: RoleFacts, calendar: "Calendar") -> Due:
    from orchestrator.model.occurrence import exact

    role, now, newest = facts.role, facts.now, facts.newest_occurrence
    latest, soon = calendar.latest_due(role, now), _next_due(facts, calendar)
    rest = Due(elapsed=False, reason="", due_at=_whole(soon), ended=soon is None)
    follows = f"; next is {exact(soon)}" if soon is not None else "; none is to come"
    if latest is None:
        return rest._replace(reason=f"no occurrence of {calendar.words} was due yet{follows}")
    said = f"the occurrence {exact(latest)} of {calendar.words}"
    if newest is not None and latest <= newest:
        ahead = elapsed_ms(now, newest) > 0
        return rest._replace(
            reason=f"{said} was swept: a sweep stands for {exact(newest)}{follows}",
            warning=f"a sweep stands for the occurrence {exact(newest)}, which is later than this "
            f"clock's {iso(now)}: one of the two clocks is wrong" if ahead else None,
        )  # fmt: skip
    since = facts.timing_since
    if since is not None and latest <= since.at:
        return rest._replace(
            reason=f"{said} is older than the schedule, which stands as it does since "
            f"{iso(since.at)} (commit {since.commit}){follows}"
        )
    due_at = calendar.due_at(role, latest)
    if calendar.missed(role, latest, now):
        return rest._replace(
            reason=f"{said} was due at {exact(due_at)} and is missed (catchup: skip_missed)"
            f"{follows}"
        )
    return Due(elapsed=True, reason=f"{said} is due since {exact(due_at)}", due_at=due_at)


def _whole(at: datetime | None) -> datetime | None:
    """The first whole second not before `at`: clocks here have no others."""
    if at is None or at.microsecond == 0:
        return at
    return later(at.replace(microsecond=0), 1000)


def _next_due(facts: RoleFacts, calendar: "Calendar") -> datetime | None:
    """When the first occurrence is due that is neither due already nor on a day with a sweep."""
    for found in _coming(facts, calendar):
        return calendar.due_at(facts.role, found)
    return None


def _coming(facts: RoleFacts, calendar: "Calendar") -> Iterator[datetime]:
    """The occurrences to come, in their order."""
    latest = calendar.latest_due(facts.role, facts.now)
    floors = [latest, facts.newest_occurrence, facts.timing_since and facts.timing_since.at]
    after = max((f for f in floors if f is not None), default=None)
    found = calendar.after(after) if after is not None else calendar.first(facts.now)
    used = {b.sweep for b in facts.branches}
    used |= {facts.last.sweep} if isinstance(facts.last, MergedSweep) else set()
    used |= {facts.today} if facts.today_merged else set()
    for _ in range(_DAYS_AHEAD):
        if found is None:
            return
        if SweepName.on(facts.role, found) not in used:
            yield found
            found = calendar.after(found)
            continue
        midnight = next_midnight(found)
        found = calendar.after(midnight.astimezone(UTC) - _TICK) if midnight is not None else None


def _every(every: Every, last: MergedSweep | None, now: datetime) -> Due:
    """Elapsed means `now - at >= every`, in absolute time: time zones and DST do not matter."""
    if last is None:
        return Due(elapsed=True, reason="it never swept: no marker is on the default branch")
    at, slug = iso(last.at), last.sweep.slug
    gone = elapsed_ms(last.at, now)
    due_at = later(last.at, every.ms)
    when = iso(due_at) if due_at is not None else "beyond the calendar"
    if gone < 0:
        return Due(
            elapsed=False,
            reason=f"the last merged sweep, {slug}, is dated in the future ({at})",
            due_at=due_at,
            warning=f"{slug} says it was dispatched at {at}, which is later than this clock's "
            f"{iso(now)}: one of the two clocks is wrong",
        )
    if gone < every.ms:
        return Due(
            elapsed=False,
            reason=f"{slug} was dispatched at {at}, and every {every.text} makes the next due "
            f"at {when}",
            due_at=due_at,
        )
    return Due(
        elapsed=True,
        reason=f"{slug} was dispatched at {at}; every {every.text} elapsed at {when}",
        due_at=due_at,
    )
