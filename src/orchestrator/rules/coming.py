"""What is to come of a role, without deciding anything: its schedule's state and next occurrences.

The occurrences come from the calendar that decides; there is no second way to compute them.
"""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from orchestrator.model.config import ScheduleEntry
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.verdict import Code, Verdict


class ScheduleState(StrEnum):
    """How a role's schedule stands, whatever its sweeps do."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"
    """No occurrence is to come, and none is due."""
    ERROR = "error"
    """The entry cannot be read, or its last marker cannot be used."""


class Coming(NamedTuple):
    """One occurrence: its nominal time, and when it is due with its jitter."""

    occurrence: datetime
    due_at: datetime


def schedule_state(facts: RoleFacts, verdict: Verdict) -> ScheduleState:
    """The state at the verdict's instant."""
    entry = facts.entry
    if not isinstance(entry, ScheduleEntry) or verdict.code in (
        Code.CONFIG_ERROR,
        Code.MARKER_ERROR,
        Code.UNKNOWN_ROLE,
        Code.NO_ESTIMATE,
    ):
        return ScheduleState.ERROR
    if not entry.enabled:
        return ScheduleState.PAUSED
    over = entry.calendar is not None and entry.calendar.after(facts.now) is None
    waits = verdict.due_at is not None or verdict.code is not Code.NOT_DUE
    return ScheduleState.ENDED if over and not waits else ScheduleState.ACTIVE


def coming(facts: RoleFacts, verdict: Verdict, count: int) -> tuple[Coming, ...]:
    """The next occurrences strictly after the facts' instant, at most `count`.

    A paused schedule has none. An `every` has no occurrences: the one thing known of its future is
    when its interval has passed.
    """
    entry, state = facts.entry, schedule_state(facts, verdict)
    if not isinstance(entry, ScheduleEntry) or state is not ScheduleState.ACTIVE:
        return ()
    if entry.calendar is None:
        due_at = verdict.due_at
        return (Coming(due_at, due_at),) if due_at is not None and due_at > facts.now else ()
    found: list[Coming] = []
    at: datetime | None = entry.calendar.after(facts.now)
    while at is not None and len(found) < count:
        found.append(Coming(at, entry.calendar.due_at(facts.role, at)))
        at = entry.calendar.after(at)
    return tuple(found)
