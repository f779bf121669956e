"""`next`: the coming occurrences of every role, in UTC and as the schedule's own clock shows them.

historian  active  cron "0 2 * * *" Europe/Berlin
  2026-12-01T01:00:00Z  2026-12-01 02:00+01:00  in 23 h
"""

from datetime import UTC, datetime

from orchestrator.model.config import ScheduleEntry
from orchestrator.model.occurrence import exact
from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.report.layout import Look, columns, pad, table
from orchestrator.report.text import problem_lines
from orchestrator.report.timingwords import words_of
from orchestrator.report.words import clean, relative
from orchestrator.rules.coming import Coming, ScheduleState, coming, schedule_state


def next_text(evaluation: Evaluation, look: Look, count: int) -> str:
    """All roles, each with its occurrences.

    Args:
        evaluation: what was found.
        look: width and colour.
        count: how many occurrences of each role, at most.
    """
    lines: list[str] = []
    for problem in evaluation.config.errors:
        lines += problem_lines(problem, look)
    width = max((columns(clean(o.verdict.role)) for o in evaluation.outcomes), default=0)
    for outcome in evaluation.outcomes:
        lines += _role(outcome, look, width, count)
    return "".join(line + "\n" for line in lines)


def _role(outcome: RoleOutcome, look: Look, width: int, count: int) -> list[str]:
    facts, verdict = outcome.facts, outcome.verdict
    state = schedule_state(facts, verdict)
    role = pad(clean(verdict.role), width)
    shown = look.error(state.value) if state is ScheduleState.ERROR else state.value
    lines = [f"{look.strong(role)}  {shown}  {words_of(outcome)}"]
    found = coming(facts, verdict, count)
    rows = [_cells(one, outcome, facts.now) for one in found]
    lines += ["  " + line for line in table(rows)]
    entry = facts.entry
    often = isinstance(entry, ScheduleEntry) and entry.calendar is not None and entry.calendar.often
    if often and rows:
        lines.append("  (a day, in UTC, has one sweep: the first occurrence that is due)")
    if not rows:
        lines.append(f"  {_why_none(outcome, state)}")
    return lines


def _cells(one: Coming, outcome: RoleOutcome, now: datetime) -> tuple[str, ...]:
    entry = outcome.facts.entry
    calendar = entry.calendar if isinstance(entry, ScheduleEntry) else None
    cells = [exact(one.occurrence)]
    if calendar is not None and calendar.zone.rules is not UTC:
        cells.append(one.occurrence.astimezone(calendar.zone.rules).isoformat(" ", "minutes"))
    if calendar is not None and calendar.jitter is not None:
        cells.append(f"due {exact(one.due_at)}")
    return (*cells, relative(one.due_at, now))


def _why_none(outcome: RoleOutcome, state: ScheduleState) -> str:
    entry = outcome.facts.entry
    if state is ScheduleState.PAUSED:
        return "nothing comes while it is paused"
    if state is ScheduleState.ENDED:
        return "no occurrence is to come"
    if state is ScheduleState.ERROR:
        return "orchestrator explain says what is wrong"
    if isinstance(entry, ScheduleEntry) and entry.calendar is not None:
        return "no occurrence is to come after the one that is due"
    return "it is due, or waits for its open sweep: orchestrator explain says"
