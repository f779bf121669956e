"""A role's timing in words."""

from orchestrator.model.config import ScheduleEntry
from orchestrator.outcome import RoleOutcome


def words_of(outcome: RoleOutcome) -> str:
    """`every 7d`, `cron "0 2 * * *" Europe/Berlin`; a dash when the entry cannot be read."""
    entry = outcome.facts.entry
    if not isinstance(entry, ScheduleEntry):
        return "-"
    return entry.calendar.words if entry.calendar is not None else f"every {entry.timing}"
