"""`orchestrator check`: is the policy right?"""

import os
import sys
from datetime import UTC, datetime
from typing import NamedTuple

import click

from orchestrator.adapters.registry import resolve
from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of
from orchestrator.configfile import read_config
from orchestrator.errors import CannotLookError, UsageError
from orchestrator.model.config import Config, ScheduleEntry
from orchestrator.model.names import CONFIG_PATH, Oid
from orchestrator.model.problem import ErrorCode, Problem, Severity
from orchestrator.observe import observe
from orchestrator.rules.facts import BrokenMarker, RoleFacts
from orchestrator.rules.table import registered_or_problem
from orchestrator.site import open_site

_STDIN = "-"
_MORE_THAN_ALLOWED = 64 * 1024 + 1


class Checked(NamedTuple):
    """What was checked, and what came of it.

    Attributes:
        where: the file as people name it, with the commit it was read from.
        notes: sentences about the file that are no problems of it.
    """

    config: Config
    problems: tuple[Problem, ...]
    where: str
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(p.severity is Severity.ERROR for p in self.problems)


@click.command("check", context_settings=SETTINGS)
@click.argument("file", required=False)
@click.option("--ref", metavar="REV", help="Check the file at REV in place of the default branch.")
@click.option("--fetch", is_flag=True, help="Ask the remote first.")
@common
@click.pass_obj
def command(run: Invocation, file: str | None, ref: str | None, fetch: bool) -> int:
    """Check orchestrator.yaml: on the default branch, at REV, or in FILE (- is standard input).

    Every problem is one line with its place, FILE:LINE:COLUMN. A FILE needs no repository.

    Exits 1 when there are errors; warnings alone are no reason.
    """
    if file is not None and (ref is not None or fetch):
        raise UsageError("a FILE is checked as it is: --ref and --fetch do not go with it")
    checked = _file(file) if file is not None else _committed(run, ref, fetch=fetch)
    if run.json:
        from orchestrator.report.json import check_json

        run.console.out(check_json(checked.config, checked.problems, checked.notes))
    else:
        from orchestrator.report.checks import check_text

        run.console.out(
            check_text(
                checked.config,
                checked.problems,
                checked.where,
                run.console.look,
                notes=checked.notes,
                quiet=run.quiet,
            )
        )
    return 0 if checked.ok else 1


def _file(name: str) -> Checked:
    path = "<stdin>" if name == _STDIN else name
    try:
        if name == _STDIN:
            data = sys.stdin.buffer.read(_MORE_THAN_ALLOWED)
        else:
            with open(name, "rb") as file:
                data = file.read(_MORE_THAN_ALLOWED)
    except OSError as error:
        raise CannotLookError(f"{path} cannot be read: {error.strerror}") from error
    config = read_config(data, path=path)
    return Checked(config, _in_order(config, _beyond_the_file(config)), path)


def _committed(run: Invocation, ref: str | None, *, fetch: bool) -> Checked:
    site = open_site(settings_of(run), fetch=fetch)
    seen = observe(site, run.clock(), config_ref=ref)
    config = seen.config
    name = ref if ref is not None else site.tip_name
    where = f"{config.path} on {name} @ {(config.commit or site.tip)[:9]}"
    if not config.present and ref is None and site.reader.workdir is not None:
        here = os.path.join(site.reader.workdir, CONFIG_PATH)
        if os.path.isfile(here):
            note = (
                f"{CONFIG_PATH} is not on {site.tip_name} yet; this is the one in your working "
                "tree. Commit it and merge it: only then does it count"
            )
            checked = _file(here)
            return Checked(checked.config, checked.problems, here, (note,))
    broken = [f.last.problem for f in seen.facts.values() if isinstance(f.last, BrokenMarker)]
    return Checked(config, _in_order(config, [*_beyond_the_file(config), *broken]), where)


def _beyond_the_file(config: Config) -> list[Problem]:
    """What reading the file alone does not say: the registry's problems, and warnings."""
    often = [
        Problem(
            ErrorCode.CONFIG_ERROR,
            "it has several occurrences a day, of which the first that is due is swept; "
            "the others are skipped",
            path=config.path,
            commit=config.commit,
            line=entry.timing_line,
            key=f"schedules.{entry.role}",
            severity=Severity.WARNING,
        )
        for entry in config.schedules.values()
        if isinstance(entry, ScheduleEntry) and entry.calendar is not None and entry.calendar.often
    ]
    return [*_unregistered(config), *often]


def _unregistered(config: Config) -> list[Problem]:
    """What the role registry says about each scheduled role, the switched off ones included."""
    problems = []
    for entry in config.schedules.values():
        if isinstance(entry, ScheduleEntry):
            said = registered_or_problem(_facts(config, entry), entry)
            if isinstance(said, Problem) and said not in config.problems:
                problems.append(said)
    return problems


def _facts(config: Config, entry: ScheduleEntry) -> RoleFacts:
    """As much as a policy alone says about a role; the question asked needs no more."""
    found = resolve(entry, config.roles, path=config.path, commit=config.commit)
    return RoleFacts(
        role=entry.role,
        now=datetime.min.replace(tzinfo=UTC),
        entry=entry,
        registration=found,
        tip=config.commit or Oid(""),
        tip_name="",
        config_place=config.path,
        config_commit=config.commit,
        estimate_usd=None if isinstance(found, Problem) else found.estimate_usd,
    )


def _in_order(config: Config, more: list[Problem]) -> tuple[Problem, ...]:
    """All problems: those of the policy by line, then those of other files."""
    own = [*config.problems, *(p for p in more if p.path == config.path)]
    own.sort(key=lambda p: (p.line or 0, p.column or 0))
    return (*own, *(p for p in more if p.path != config.path))
