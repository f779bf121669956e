"""The small words of every report: how long until then, what it cost, which object."""

import re
from collections.abc import Iterable
from datetime import datetime

from orchestrator.model.config import Config
from orchestrator.model.problem import Problem
from orchestrator.model.timing import elapsed_ms, iso
from orchestrator.report.layout import GLUE
from orchestrator.rules.facts import SweepState
from orchestrator.text import printable

SHORT_OID = 9
_OID = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000

STATE_WORDS = {
    SweepState.IN_FLIGHT: "in flight",
    SweepState.AWAITING_REVIEW: "awaiting review",
    SweepState.FAILED: "failed",
    SweepState.UNPUBLISHED: "unpublished",
}


def clean(text: object) -> str:
    """Anything that came from outside, safe on a terminal and on one line."""
    return printable(str(text), one_line=True)


def role_word(role: str) -> str:
    """A role's name, which may be anything that somebody wrote as a key."""
    return clean(role) or '""'


def short(oid: str) -> str:
    """An object id as people see it."""
    return oid[:SHORT_OID]


def at_commit(place: str, commit: str | None) -> str:
    """`orchestrator.yaml:3 @ 3f2c1a9d0`, kept on one line."""
    return f"{clean(place)}{GLUE}@{GLUE}{short(commit)}" if commit else clean(place)


def shorten(text: str) -> str:
    """A sentence with its full object ids cut to what people see."""
    return _OID.sub(lambda m: short(m[0]), clean(text))


def span(ms: int) -> str:
    """A duration in its two largest units, rounded down: `5 d 23 h`, `40 min`."""
    if ms < _MINUTE:
        return "less than a minute"
    days, rest = divmod(ms, _DAY)
    hours, minutes = rest // _HOUR, rest % _HOUR // _MINUTE
    if days:
        parts = [f"{days:,} d", f"{hours} h" if hours else ""]
    else:
        parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(p for p in parts if p)


def relative(at: datetime, now: datetime) -> str:
    """`in 5 d 23 h`, `3 h ago` or `now`."""
    ms = elapsed_ms(now, at)
    if ms == 0:
        return "now"
    return f"in {span(ms)}" if ms > 0 else f"{span(-ms)} ago"


def instant(at: datetime, now: datetime) -> str:
    """An instant both ways: `2026-12-01T02:00:00Z, in 23 h`."""
    return f"{iso(at)}, {relative(at, now)}"


def tokens(tokens_in: int | None, tokens_out: int | None) -> str:
    """`1,234 in / 56 out`; a question mark where nobody said."""
    return f"{_count(tokens_in)} in / {_count(tokens_out)} out"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def dollars(amount: float | None) -> str:
    """`$0.0123`, `$12.50`, `$0`; `$?` where nobody said."""
    if amount is None:
        return "$?"
    if amount == 0:
        return "$0"
    return f"${amount:,.4f}" if abs(amount) < 1 else f"${amount:,.2f}"


def counted(number: int, noun: str) -> str:
    """`1 schedule`, `2 schedules`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def place_of(problem: Problem) -> str:
    """`orchestrator.yaml:3:12 @ 3f2c1a9d0`, as far as it is known."""
    if not problem.place:
        return ""
    return at_commit(problem.place, problem.commit)


def split_problems(
    config: Config, shown: Iterable[Problem] = ()
) -> tuple[tuple[Problem, ...], dict[str, tuple[Problem, ...]]]:
    """The file's problems: those of the whole file, and those of single scheduled roles.

    Keys are read longest role first, because a role's name may contain dots. `shown` are the
    verdicts' own errors: they are already said where they belong.
    """
    whole: list[Problem] = []
    of_role: dict[str, tuple[Problem, ...]] = {}
    roles = sorted(config.schedules, key=len, reverse=True)
    already = tuple(shown)
    for problem in config.problems:
        if problem in already:
            continue
        role = next((r for r in roles if _is_about(problem.key, r)), None)
        if role is None:
            whole.append(problem)
        else:
            of_role[role] = (*of_role.get(role, ()), problem)
    return tuple(whole), of_role


def _is_about(key: str | None, role: str) -> bool:
    if key is None:
        return False
    keys = (f"schedules.{role}", f"roles.{role}")
    return any(key == k or key.startswith((k + ".", k + "[")) for k in keys)
