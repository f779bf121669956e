"""`explain` for people: one headline a role, every rule asked, and what would change the answer.

    historian rests: not due until 2026-12-01T02:00:00Z, in 23 h  (S2)

      S0  disabled?      no   on by default
      S1  sweep open?    no   no run/historian-<date> branch is unmerged
    > S2  not due yet?   yes  historian-2026-11-24 was dispatched at ...
                              runs/historian-2026-11-24/sweep.yaml @ 3f2c1a9d0
      To change it: time alone does, at 2026-12-01T02:00:00Z (in 23 h)

The deciding rule has a mark and the one accent; its evidence is dim. Nothing depends on colour.
"""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.model.problem import Problem, Severity
from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.report.evidence import evidence_lines
from orchestrator.report.headline import headline
from orchestrator.report.layout import Look, columns, pad, wrap
from orchestrator.report.words import (
    at_commit,
    clean,
    instant,
    place_of,
    role_word,
    short,
    shorten,
    split_problems,
)
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.table import TABLE
from orchestrator.rules.verdict import Action, Check, Code, Verdict
from orchestrator.text import printable

_QUESTIONS = {rule.id: rule.question for rule in TABLE}
_QUESTION_WIDTH = max(len(q) for q in _QUESTIONS.values())


def explain_text(
    evaluation: Evaluation, look: Look, *, verbose: bool = False, uncommitted: bool = False
) -> str:
    """The whole answer.

    Args:
        evaluation: what was found.
        look: width and colour.
        verbose: show the evidence of every rule, not only of the deciding one.
        uncommitted: the working tree has a policy file that the default branch lacks.
    """
    whole, of_role = split_problems(
        evaluation.config, [o.verdict.error for o in evaluation.outcomes if o.verdict.error]
    )
    blocks = [header(evaluation, look)]
    blocks += [problem_lines(p, look) for p in whole]
    blocks += [nothing_scheduled(evaluation, look, uncommitted=uncommitted)]
    for outcome in evaluation.outcomes:
        more = of_role.get(outcome.verdict.role, ())
        blocks.append(role_block(outcome, more, look, verbose=verbose))
    blocks += [note_lines(evaluation.notes, look)]
    return "\n\n".join("\n".join(b) for b in blocks if b) + "\n"


def headlines_text(evaluation: Evaluation, look: Look) -> str:
    """The headlines alone."""
    lines: list[str] = []
    for problem in split_problems(evaluation.config)[0]:
        lines += problem_lines(problem, look)
    for outcome in evaluation.outcomes:
        lines += _headline_lines(outcome.verdict, outcome.facts, look)
    return "".join(line + "\n" for line in lines)


def header(evaluation: Evaluation, look: Look) -> list[str]:
    """Which repository, when; where the policy came from, and the default-branch tip."""
    repository, config = evaluation.repository, evaluation.config
    tip = at_commit(repository.tip_name, repository.tip)
    path = clean(config.path)
    policy = f"{path} from {tip}" if config.present else f"no {path} on {tip}"
    if config.commit is not None and config.commit != repository.tip:
        policy = f"{at_commit(config.path, config.commit)}, which is not the tip: {tip}"
    lines = wrap(f"{clean(repository.path)}, {evaluation.now}", look.width, rest="  ")
    return [look.dim(line) for line in (*lines, *wrap(policy, look.width, rest="  "))]


def nothing_scheduled(
    evaluation: Evaluation, look: Look, *, uncommitted: bool = False
) -> list[str]:
    """Why there is no role to talk about; empty when there is one, or when errors say it."""
    config = evaluation.config
    if evaluation.outcomes or config.errors:
        return []
    where = clean(evaluation.repository.tip_name)
    if config.commit is not None and config.commit != evaluation.repository.tip:
        where = short(config.commit)
    if config.present:
        said = f"{clean(config.path)} on {where} schedules nothing, so nothing runs."
        hint = "add a role under schedules; `orchestrator init --print` shows an example"
    else:
        said = f"No {clean(config.path)} on {where}, so nothing is scheduled and nothing runs."
        hint = "`orchestrator init` writes one; commit it and merge it into the default branch"
        if uncommitted:
            hint = (
                f"your working tree has {clean(config.path)}: commit it and merge it into "
                "the default branch; only that one counts"
            )
    return [*wrap(said, look.width), *wrap(hint, look.width, first="hint: ")]


def role_block(
    outcome: RoleOutcome, more: Sequence[Problem], look: Look, *, verbose: bool
) -> list[str]:
    """One role: headline, the rules asked, what would change the answer, warnings."""
    verdict, facts = outcome.verdict, outcome.facts
    lines = _headline_lines(verdict, facts, look)
    if verdict.checks:
        lines.append("")
    for check in verdict.checks:
        deciding = check is verdict.checks[-1] and check.rule == verdict.rule
        lines += _check_lines(check, facts, look, deciding=deciding, evidence=deciding or verbose)
    if verdict.error is not None:
        lines += ["", *problem_lines(verdict.error, look, indent="  ")]
    for problem in more:
        lines += ["", *problem_lines(problem, look, indent="  ")]
    change = _what_changes_it(verdict, facts.now)
    if change:
        label = "Next: " if verdict.action is Action.DISPATCH else "To change it: "
        lines += ["", *_labelled(label, change, look)]
    for warning in verdict.warnings:
        lines += ["", *wrap(shorten(warning), look.width, first="  warning: ")]
    return lines


def _headline_lines(verdict: Verdict, facts: RoleFacts, look: Look) -> list[str]:
    text = headline(verdict, facts)
    tag = f"({verdict.rule or verdict.code})"
    lines = wrap(f"{text}  {tag}", look.width, rest="  ")
    role = role_word(verdict.role)
    if not look.color:
        return lines
    if verdict.action is Action.ERROR:
        return [look.error(line) for line in lines]
    if lines[0].startswith(role):
        lines[0] = look.strong(role) + lines[0][len(role) :]
    if lines[-1].endswith(tag):
        lines[-1] = lines[-1][: -len(tag)] + look.accent(tag)
    return lines


def _check_lines(
    check: Check, facts: RoleFacts, look: Look, *, deciding: bool, evidence: bool
) -> list[str]:
    answer = "error" if check.problem is not None else "yes" if check.holds else "no"
    mark = ">" if deciding else " "
    question = pad(_QUESTIONS[check.rule], _QUESTION_WIDTH)
    prefix = f"{mark} {check.rule}  {question}  {pad(answer, 3)}  "
    reason = shorten(check.reason).removeprefix("no: ").removeprefix("due: ")
    if check.problem is not None:
        reason, evidence = "it cannot be told; the error is below", False
    lines = wrap(reason, look.width, first=prefix, rest=" " * columns(prefix))
    if deciding:
        paint = look.error if check.problem is not None else look.accent
        lines[0] = paint(prefix.rstrip()) + lines[0][len(prefix.rstrip()) :]
    if evidence:
        hanging = " " * columns(prefix)
        for said in evidence_lines(check, facts):
            wrapped = wrap(said, look.width, first=hanging, rest=hanging + "  ")
            lines += [look.dim(line) for line in wrapped]
    return lines


def _what_changes_it(verdict: Verdict, now: datetime) -> list[str]:
    if verdict.error is not None:
        return []  # its hint says it
    if verdict.action is Action.DISPATCH:
        return ["a tick claims it and starts its agent"]
    said = []
    waits = (Code.NOT_DUE, Code.ALREADY_TODAY, Code.AGENT_UNAVAILABLE)
    if verdict.due_at is not None and verdict.code in waits:
        said.append(f"time alone does, at {instant(verdict.due_at, now)}")
    elif verdict.code is Code.NOT_DUE and verdict.unblock is None:
        said.append("only a shorter `every` does: the interval ends beyond the calendar")
    if verdict.unblock is not None:
        said += verdict.unblock.split("; ")
    return [clean(s) for s in said]


def _labelled(label: str, said: Sequence[str], look: Look) -> list[str]:
    first, rest = "  " + label, " " * (len(label) + 2)
    lines: list[str] = []
    for n, one in enumerate(said):
        prefix = rest if n else first
        lines += wrap(one, look.width, first=prefix, rest=rest + "  ", break_words=False)
    return lines


def problem_lines(problem: Problem, look: Look, *, indent: str = "") -> list[str]:
    """One problem as a block: where, what was expected, the way out."""
    warning = problem.severity is Severity.WARNING
    word = "warning:" if warning else "error:"
    label = pad(word, len("warning: ") if warning else len("error: "))
    key = f" ({clean(problem.key)})" if problem.key else ""
    lines = wrap(shorten(problem.message) + key, look.width, first=indent + label)
    if not warning:
        lines[0] = indent + look.error(word) + lines[0][len(indent + word) :]
    place = place_of(problem)
    if place:
        lines += wrap(place, look.width, first=indent + pad("at:", len(label)))
    if problem.hint is not None:
        lines += hint_lines(problem.hint, look, indent + pad("hint:", len(label)))
    return lines


def hint_lines(hint: str, look: Look, first: str) -> list[str]:
    """A way out. Its first line is prose and wrapped; what follows is an example, kept as it is."""
    prose, *example = printable(hint).splitlines() or [""]
    lines = wrap(prose, look.width, first=first, break_words=False)
    return lines + [" " * len(first) + line if line else "" for line in example]


def note_lines(notes: Sequence[str], look: Look) -> list[str]:
    """Sentences about this machine or clone."""
    lines: list[str] = []
    for note in notes:
        lines += wrap(clean(note), look.width, first="note: ", rest="  ")
    return lines
