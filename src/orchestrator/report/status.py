"""`status`: where every role stands, what its last sweep cost and when the next is due."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from orchestrator.model.config import ScheduleEntry
from orchestrator.model.timing import iso
from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.report.layout import GLUE, Look, columns, table, wrap
from orchestrator.report.text import header, note_lines, nothing_scheduled, problem_lines
from orchestrator.report.timingwords import words_of
from orchestrator.report.words import (
    STATE_WORDS,
    clean,
    dollars,
    place_of,
    relative,
    role_word,
    shorten,
    split_problems,
    tokens,
)
from orchestrator.rules.coming import schedule_state
from orchestrator.rules.facts import MergedSweep, SweepBranch
from orchestrator.rules.verdict import Action, Code

_MAX_ROLE_WIDTH = 20
_HEAD = ("ROLE", "STATE", "LAST MERGED", "TOKENS", "COST", "NEXT DUE")


class RoleState(StrEnum):
    """Where a role stands, in one word."""

    DISABLED = "disabled"
    RESTING = "resting"
    IN_FLIGHT = "in_flight"
    AWAITING_REVIEW = "awaiting_review"
    FAILED = "failed"
    UNPUBLISHED = "unpublished"
    OVER_CAP = "over_cap"
    DUE = "due"
    ERROR = "error"


class RoleStatus(NamedTuple):
    """One row: the role's state and what there is to know beside it.

    Attributes:
        open: its newest open sweep.
        last: its newest merged sweep.
        due_at: the earliest instant the next sweep could start, when time alone decides.
    """

    outcome: RoleOutcome
    state: RoleState
    open: SweepBranch | None
    last: MergedSweep | None
    due_at: datetime | None


def role_status(outcome: RoleOutcome) -> RoleStatus:
    """Sum one role up."""
    verdict, facts = outcome.verdict, outcome.facts
    still_open = facts.open_branches[0] if facts.open_branches else None
    last = facts.last if isinstance(facts.last, MergedSweep) else None
    match verdict.code:
        case Code.DISABLED:
            state = RoleState.DISABLED
        case Code.SWEEP_OPEN if verdict.state is not None:
            state = RoleState(verdict.state.value)
        case Code.OVER_CAP:
            state = RoleState.OVER_CAP
        case Code.DUE:
            state = RoleState.DUE
        case _:
            state = RoleState.ERROR if verdict.action is Action.ERROR else RoleState.RESTING
    return RoleStatus(outcome, state, still_open, last, verdict.due_at)


def status_text(
    evaluation: Evaluation, look: Look, *, quiet: bool = False, verbose: bool = False
) -> str:
    """The table, then a line for each sweep or problem that needs more words.

    Args:
        evaluation: what was found.
        look: width and colour.
        quiet: the table alone.
        verbose: a line for every role.
    """
    rows = [role_status(o) for o in evaluation.outcomes]
    if quiet:
        return "".join(line + "\n" for line in _table(rows, look)) if rows else ""
    whole, of_role = split_problems(
        evaluation.config, [o.verdict.error for o in evaluation.outcomes if o.verdict.error]
    )
    blocks = [header(evaluation, look)]
    problems = (*whole, *(p for some in of_role.values() for p in some))
    blocks += [problem_lines(p, look) for p in problems]
    blocks += [nothing_scheduled(evaluation, look)]
    if rows:
        blocks.append(_table(rows, look))
    details: list[str] = []
    for row in rows:
        details += _details(row, look, verbose=verbose)
    blocks += [details, note_lines(evaluation.notes, look)]
    return "\n\n".join("\n".join(b) for b in blocks if b) + "\n"


def _table(rows: list[RoleStatus], look: Look) -> list[str]:
    cells = [_HEAD, *(_cells(r) for r in rows)]
    # A very long name gets a line of its own, so that the other columns stay in sight.
    long = [columns(row[0]) > _MAX_ROLE_WIDTH for row in cells]
    lines = table(
        [("" if out else row[0], *row[1:]) for row, out in zip(cells, long, strict=True)],
        right=frozenset({3, 4}),
    )
    shown: list[str] = [look.dim(lines[0])]
    for row, line, out, status in zip(cells[1:], lines[1:], long[1:], rows, strict=True):
        shown += [row[0]] if out else []
        shown.append(look.error(line) if status.state is RoleState.ERROR else line)
    return shown


def _cells(row: RoleStatus) -> tuple[str, ...]:
    last, now = row.last, row.outcome.facts.now
    merged, used, cost = "never", "-", "-"
    if last is not None:
        merged = last.sweep.date.isoformat() + (" failed" if last.failed is not None else "")
        read = last.marker
        if read is not None and read.has_numbers:
            used = (
                tokens(read.tokens_in, read.tokens_out).replace(" in / ", "/").removesuffix(" out")
            )
            cost = dollars(read.cost_usd)
        else:
            used, cost = "?", "$?"
    elif row.outcome.facts.last is not None:
        merged = "unreadable"
    return (
        role_word(row.outcome.verdict.role),
        row.state.value.replace("_", " "),
        merged,
        used,
        cost,
        _next(row, now),
    )


def _next(row: RoleStatus, now: datetime) -> str:
    if row.state is RoleState.DUE:
        return "now"
    return relative(row.due_at, now) if row.due_at is not None else "-"


def _details(row: RoleStatus, look: Look, *, verbose: bool) -> list[str]:
    role, verdict = role_word(row.outcome.verdict.role), row.outcome.verdict
    lines = _timing_lines(row, look, verbose=verbose)
    if verdict.error is not None:
        place = place_of(verdict.error)
        said = shorten(verdict.error.message) + (f" ({place})" if place else "")
        lines += wrap(said, look.width, first=f"{role}: ", rest="  ")
    elif row.open is not None and verdict.code is Code.SWEEP_OPEN:
        lines += wrap(
            _open_words(row.open, row.outcome.facts.now), look.width, first=f"{role}: ", rest="  "
        )
    elif verbose:
        lines += wrap(shorten(verdict.reason), look.width, first=f"{role}: ", rest="  ")
    return lines


def _timing_lines(row: RoleStatus, look: Look, *, verbose: bool) -> list[str]:
    """The timing in words where it is more than an interval, and what people say about the role."""
    entry = row.outcome.facts.entry
    if not isinstance(entry, ScheduleEntry):
        return []
    if entry.calendar is None and entry.description is None and not verbose:
        return []
    state = schedule_state(row.outcome.facts, row.outcome.verdict)
    said = f"{state.value}, {words_of(row.outcome)}"
    if entry.description:
        said += f": {clean(entry.description)}"
    return wrap(said, look.width, first=f"{clean(row.outcome.verdict.role)}: ", rest="  ")


def _open_words(branch: SweepBranch, now: datetime) -> str:
    said = clean(branch.shown_ref)
    if branch.state is not None:
        said += f" {STATE_WORDS[branch.state]}"
    if branch.since is not None:
        ago = relative(branch.since, now).replace(" ", GLUE)
        said += f", begun {iso(branch.since)} ({ago})"
    if branch.instance:
        said += f" by {clean(branch.instance)}"
    if branch.alive is not None:
        said += ", its agent running here" if branch.alive else ", but no agent runs here"
    if branch.failed is not None:
        said += f": {clean(branch.failed)}"
    return said
