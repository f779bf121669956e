"""Since when a role's timing stands as it does: read from the policy's first-parent history.

A calendar schedule that is new, changed or resumed starts with its next occurrence. There is no
database to note that moment in; it is the commit that brought the change to the default branch.
"""

from datetime import datetime, timedelta

from orchestrator.errors import MissingObjectError
from orchestrator.git.reader import Reader
from orchestrator.model.config import ScheduleEntry
from orchestrator.model.names import CONFIG_PATH, Oid
from orchestrator.model.timing import from_epoch
from orchestrator.policy import read_policy
from orchestrator.rules.facts import TimingSince

_SKEW = timedelta(days=1)
"""Commit times need not be in order; by this much they may disagree."""
_DEPTH = 200_000


def timing_since(
    reader: Reader, tip: Oid, entry: ScheduleEntry, occurrence: datetime
) -> TimingSince | None:
    """The commit that last changed the entry's times or `enabled`, if it may be as late as
    `occurrence`; None when it is surely older.

    Only commits as young as the occurrence are looked at, so the cost does not grow with the
    history. Where it ends (the first commit, a shallow clone's boundary) or cannot be read, the
    last commit that could be read counts: never due on doubt.
    """
    wanted, known = _times(entry), dict[Oid | None, object]()
    last: TimingSince | None = None
    for commit in reader.first_parents(tip, _DEPTH):
        at = from_epoch(commit.time)
        try:
            blob = reader.entry(commit.oid, CONFIG_PATH)
            key = blob.oid if blob is not None else None
            if key not in known:
                known[key] = _times(read_policy(reader, commit.oid).schedules.get(entry.role))
        except MissingObjectError:
            return last or TimingSince(commit.oid, at)
        if known[key] != wanted and last is not None:
            return last
        if at < occurrence - _SKEW:
            return None
        last = TimingSince(commit.oid, at)
    return last


def _times(entry: object) -> object:
    """What counts as the timing of an entry; None for one that is absent or cannot be read."""
    if not isinstance(entry, ScheduleEntry):
        return None
    calendar = entry.calendar.times if entry.calendar is not None else None
    return entry.every and entry.every.ms, calendar, entry.enabled
