"""`tick` for people: one line a role, so that a log or a mail can be read at a glance.

historian  rests   S2 not due until 2026-12-07T02:00:00Z, in 6 d 23 h
historian  swept   run/historian-2026-11-30  ok  1,234 in / 56 out  $0.0123
"""

from orchestrator.model.problem import Problem, Severity
from orchestrator.outcome import Evaluation, Event, RoleOutcome, SweepResult
from orchestrator.report.evidence import evidence_lines
from orchestrator.report.headline import brief
from orchestrator.report.layout import GLUE, Look, columns, pad
from orchestrator.report.text import nothing_scheduled
from orchestrator.report.words import (
    clean,
    counted,
    dollars,
    place_of,
    role_word,
    shorten,
    span,
    split_problems,
    tokens,
)
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.verdict import Action, Verdict

_MAX_ROLE_WIDTH = 24
_WORD_WIDTH = len("skipped")


def tick_text(
    evaluation: Evaluation, look: Look, *, quiet: bool = False, verbose: bool = False
) -> str:
    """The whole tick.

    Args:
        evaluation: what happened.
        look: colour only; a line is never broken, so that it can be searched.
        quiet: only dispatches and problems; nothing at all when there are none.
        verbose: the outcome of every rule asked, and what a sweep left out.
    """
    width = _role_width(evaluation)
    lines = [f"mended: {clean(m)}" for m in evaluation.mended]
    errors = [o.verdict.error for o in evaluation.outcomes if o.verdict.error]
    whole, of_role = split_problems(evaluation.config, errors)
    problems = (*whole, *(p for some in of_role.values() for p in some))
    lines += [problem_line(p, look) for p in problems]
    for outcome in evaluation.outcomes:
        if quiet and outcome.sweep is None and not outcome.needs_person:
            continue
        lines.append(_role_line(outcome, look, width))
        if verbose:
            lines += _details(outcome, look)
        if not quiet:
            lines += [f"{'':{width}}  warning: {shorten(w)}" for w in outcome.verdict.warnings]
    if not quiet:
        lines += nothing_scheduled(evaluation, look)
        lines += [f"note: {clean(n)}" for n in evaluation.notes]
    return "".join(line + "\n" for line in lines)


def event_line(event: Event) -> str:
    """One progress line while a tick runs."""
    sweep, limit = event.sweep, span(int(event.timeout_s * 1000))
    return f"{sweep.role}: {clean(event.adapter)} starts on {sweep.branch}, for at most {limit}"


def problem_line(problem: Problem, look: Look) -> str:
    """A problem and its way out on one line, with the commit it was read from."""
    place = place_of(problem).replace(GLUE, " ")
    hint = f"; {clean(problem.hint)}" if problem.hint else ""
    return said_at(place, problem, look) + hint


def said_at(place: str, problem: Problem, look: Look) -> str:
    """`orchestrator.yaml:3:12: error: ... (key)`, as compilers write it: clickable."""
    word = f"{problem.severity.value}:"
    shown = look.error(word) if problem.severity is Severity.ERROR else word
    key = f" ({clean(problem.key)})" if problem.key else ""
    said = f"{shown} {shorten(problem.message)}{key}"
    return f"{place}: {said}" if place else said


def _role_width(evaluation: Evaluation) -> int:
    widths = [columns(role_word(o.verdict.role)) for o in evaluation.outcomes]
    return min(max(widths, default=0), _MAX_ROLE_WIDTH)


def _role_line(outcome: RoleOutcome, look: Look, width: int) -> str:
    verdict, sweep = outcome.verdict, outcome.sweep
    role = pad(role_word(verdict.role), width)
    if sweep is not None:
        word = "swept" if sweep.failed is None else "failed"
        said = _sweep_words(sweep)
    else:
        word = _WORDS[verdict.action]
        said = _rest_words(verdict, outcome.facts)
    shown = pad(word, _WORD_WIDTH)
    if word in ("failed", "error"):
        shown = look.error(word) + shown[len(word) :]
    elif word == "swept":
        shown = look.accent(word) + shown[len(word) :]
    return f"{role}  {shown}  {said}"


_WORDS = {
    Action.REST: "rests",
    Action.SKIP: "skipped",
    Action.ERROR: "error",
    Action.DISPATCH: "due",
}


def _rest_words(verdict: Verdict, facts: RoleFacts) -> str:
    if verdict.error is not None:
        place = place_of(verdict.error)
        said = f"{verdict.code}: {shorten(verdict.error.message)}"
        said += f" ({place})" if place and verdict.error.line is not None else ""
        hint = verdict.error.hint
    elif verdict.code.value in ("lost_race", "busy"):
        said, hint = f"{verdict.code}: {shorten(verdict.reason)}", None
    elif verdict.action is Action.DISPATCH:
        said, hint = f"{verdict.rule} {shorten(verdict.reason).removeprefix('due: ')}", None
    else:
        said = f"{verdict.rule} {brief(verdict, facts)}"
        hint = verdict.unblock if verdict.action is Action.SKIP else None
    return (said + (f"; {clean(hint)}" if hint else "")).replace(GLUE, " ")


def _sweep_words(sweep: SweepResult) -> str:
    usage = sweep.usage
    parts = [sweep.sweep.branch, clean(sweep.failed) if sweep.failed else sweep.status.value]
    if usage.tokens_in is None and usage.tokens_out is None and usage.cost_usd is None:
        parts.append("usage unknown")
    else:
        parts += [tokens(usage.tokens_in, usage.tokens_out), dollars(usage.cost_usd)]
    if sweep.left_out:
        parts.append(f"{counted(len(sweep.left_out), 'path')} left out")
    if sweep.closing is None:
        parts.append(f"in flight still: {clean(sweep.note or 'its closing was not stored')}")
    elif not sweep.published:
        parts.append("not on the remote yet: the next tick pushes it")
    if sweep.closing is not None and sweep.note is not None:
        parts.append(clean(sweep.note))
    if sweep.failed and sweep.transcript:
        parts.append(f"transcript: {clean(sweep.transcript)}")
    return "  ".join(parts)


def _details(outcome: RoleOutcome, look: Look) -> list[str]:
    lines = []
    for check in outcome.verdict.checks:
        answer = "error" if check.problem else "yes" if check.holds else "no"
        reason = shorten(check.reason).removeprefix("no: ").removeprefix("due: ")
        lines.append(f"    {check.rule} {answer}: {reason}")
        if check is outcome.verdict.checks[-1]:
            shown = (e.replace(GLUE, " ") for e in evidence_lines(check, outcome.facts))
            lines += [look.dim(f"       {line}") for line in shown]
    if outcome.sweep is not None:
        lines += [f"    left out: {clean(p)} ({clean(w)})" for p, w in outcome.sweep.left_out]
        if outcome.sweep.transcript:
            lines.append(f"    transcript: {clean(outcome.sweep.transcript)}")
    return lines
