"""One line a role: what it does and why, in plain words."""

from orchestrator.model.problem import Problem
from orchestrator.report.words import (
    at_commit,
    clean,
    dollars,
    instant,
    relative,
    role_word,
)
from orchestrator.rules.facts import RoleFacts, SweepState
from orchestrator.rules.verdict import Action, Code, Verdict

_ERROR_WORDS = {
    Code.CONFIG_ERROR: "is refused: its configuration is wrong",
    Code.MARKER_ERROR: "is held back: its last marker cannot be used",
    Code.UNKNOWN_ROLE: "is refused: nothing says how to run it",
    Code.NO_ESTIMATE: "is refused: it has a cap but no estimate",
    Code.REFUSED: "is held back: its sweep could not be claimed",
    Code.AGENT_UNAVAILABLE: "is due, but its agent cannot be started here",
}
_OPEN_WORDS = {
    SweepState.AWAITING_REVIEW: "awaits review",
    SweepState.FAILED: "failed and awaits a person",
    SweepState.UNPUBLISHED: "is in this clone only",
}


def headline(verdict: Verdict, facts: RoleFacts) -> str:
    """`historian rests: not due until 2026-12-01T02:00:00Z, in 23 h`."""
    role = role_word(verdict.role)
    if verdict.action is Action.ERROR:
        return f"{role} {_ERROR_WORDS.get(verdict.code, 'is held back')}"
    if verdict.action is Action.DISPATCH:
        return f"{role} is due: {facts.today.branch}"
    verb = "is skipped" if verdict.action is Action.SKIP else "rests"
    return f"{role} {verb}: {brief(verdict, facts)}"


def brief(verdict: Verdict, facts: RoleFacts) -> str:
    """Why a role rests or is skipped, in at most one line's words."""
    match verdict.code:
        case Code.DISABLED:
            return f"switched off at {_place(facts)}"
        case Code.SWEEP_OPEN:
            return open_words(facts) if facts.open_branches else "a sweep is open"
        case Code.NOT_DUE if verdict.due_at is not None:
            return f"not due until {instant(verdict.due_at, facts.now)}"
        case Code.NOT_DUE:
            calendar = not isinstance(facts.entry, Problem) and facts.entry.calendar is not None
            return "no occurrence is to come" if calendar else "not due within the calendar"
        case Code.ALREADY_TODAY:
            return f"it swept today already ({facts.today.slug})"
        case Code.OVER_CAP:
            return _over_cap(facts)
        case _:
            return clean(verdict.reason)


def open_words(facts: RoleFacts) -> str:
    """`origin/run/historian-2026-11-23 awaits review`: the newest open sweep."""
    branch = facts.open_branches[0]
    ref = clean(branch.shown_ref)
    if branch.state is SweepState.IN_FLIGHT:
        since = f", begun {relative(branch.since, facts.now)}" if branch.since is not None else ""
        gone = ", but no agent runs here" if branch.alive is False else ""
        return f"{ref} is in flight{since}{gone}"
    return f"{ref} {_OPEN_WORDS[branch.state or SweepState.AWAITING_REVIEW]}"


def _place(facts: RoleFacts) -> str:
    line = "" if isinstance(facts.entry, Problem) else f":{facts.entry.line_of('enabled')}"
    return at_commit(f"{facts.config_place}{line}", facts.config_commit)


def _over_cap(facts: RoleFacts) -> str:
    cap = None if isinstance(facts.entry, Problem) else facts.entry.cost_limit_usd
    return f"its estimate of {dollars(facts.estimate_usd)} is over its cap of {dollars(cap)}"
