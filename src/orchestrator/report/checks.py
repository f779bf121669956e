"""`check` for people: one clickable line a problem, its way out below, and a sum at the end."""

from collections.abc import Sequence

from orchestrator.model.config import Config
from orchestrator.model.problem import Problem, Severity
from orchestrator.report.layout import UNBROKEN, Look, wrap
from orchestrator.report.lines import said_at
from orchestrator.report.text import hint_lines
from orchestrator.report.words import clean, counted


def check_text(
    config: Config,
    problems: Sequence[Problem],
    where: str,
    look: Look,
    *,
    notes: Sequence[str] = (),
    quiet: bool = False,
) -> str:
    """The whole report.

    Args:
        config: what was checked.
        problems: everything that is wrong, in the order to show it.
        where: the file as people name it.
        look: colour, and the width of the notes; a problem's line is never broken.
        notes: sentences that are no problems.
        quiet: only the problems.
    """
    lines: list[str] = []
    for problem in problems:
        lines.append(said_at(clean(problem.place), problem, look))
        if problem.hint is not None:
            lines += hint_lines(problem.hint, UNBROKEN, "    hint: ")
    if not quiet:
        for note in notes:
            lines += wrap(clean(note), look.width, first="note: ", rest="  ")
        lines.append(f"{clean(where)}: {_sum(config, problems)}")
        if not config.present:
            lines += ["hint: `orchestrator init` writes one; commit it and merge it"]
    return "".join(line + "\n" for line in lines)


def _sum(config: Config, problems: Sequence[Problem]) -> str:
    if not config.present:
        return "there is no such file, so nothing is scheduled"
    said = [counted(len(config.schedules), "schedule")]
    errors = sum(p.severity is Severity.ERROR for p in problems)
    if errors:
        said.append(counted(errors, "error"))
    if warnings := len(problems) - errors:
        said.append(counted(warnings, "warning"))
    return ", ".join(said if problems else [*said, "no problems"])
