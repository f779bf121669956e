"""The parts of README.md that are generated, so that they cannot drift from the program."""

import ast
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import click

import orchestrator.errors
from orchestrator.cli.group import VERBS, program
from orchestrator.errors import ExitCode
from orchestrator.report.layout import Look
from orchestrator.report.text import explain_text
from orchestrator.rules.facts import SweepState
from orchestrator.rules.table import TABLE
from tests.report import samples

_COMMON = {p.name for p in program.params}
_ALL_WELL = "All well: every role rested, was dispatched, or lost a race."


def rules() -> str:
    rows = ["| rule | asks | holds when | then |", "| --- | --- | --- | --- |"]
    rows += [f"| {r.id} | {r.question} | {r.meaning} | {r.action} (`{r.code}`) |" for r in TABLE]
    return "\n".join(rows) + "\n"


def exit_codes() -> str:
    said = _enum_docs()
    rows = ["| code | meaning |", "| --- | --- |"]
    rows += [f"| {code.value} | {said.get(code.name, _ALL_WELL)} |" for code in ExitCode]
    return "\n".join(rows) + "\n"


def _enum_docs() -> dict[str, str]:
    """What stands below each member of `ExitCode` in its source."""
    source = Path(orchestrator.errors.__file__).read_text("utf-8")
    nodes = ast.walk(ast.parse(source))
    (body,) = (n.body for n in nodes if isinstance(n, ast.ClassDef) and n.name == "ExitCode")
    found = {}
    for node, after in pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr):
            name, text = node.targets[0], after.value
            if isinstance(name, ast.Name) and isinstance(text, ast.Constant):
                found[name.id] = str(text.value)
    return found


def commands() -> str:
    context = program.make_context("orchestrator", [], resilient_parsing=True, terminal_width=80)
    blocks = [program.get_help(context)]
    for verb in VERBS:
        command = program.get_command(context, verb)
        assert command is not None
        blocks.append(_verb(verb, command, context))
    return "```text\n" + "\n\n".join(blocks) + "\n```\n"


def _verb(verb: str, command: click.Command, above: click.Context) -> str:
    """The usage of one verb and its own options; the common ones stand once, above."""
    context = click.Context(command, above, info_name=verb, terminal_width=80)
    formatter = context.make_formatter()
    formatter.write_usage(f"orchestrator {verb}", " ".join(command.collect_usage_pieces(context)))
    own = [p for p in command.params if isinstance(p, click.Option) and p.name not in _COMMON]
    rows = [r for p in own if (r := p.get_help_record(context)) is not None]
    if rows:
        with formatter.indentation():
            formatter.write_dl(rows)
    return formatter.getvalue().rstrip("\n")


def explain() -> str:
    reviewed = samples.branch("scout", date(2026, 11, 29), SweepState.AWAITING_REVIEW)
    found = samples.evaluation(
        samples.facts("historian", last=samples.merged(ago=timedelta(days=1, hours=1))),
        samples.facts("scout", branches=(reviewed,)),
    )
    return "```text\n$ orchestrator explain\n" + explain_text(found, Look(80)) + "```\n"


PARTS: Mapping[str, Callable[[], str]] = {
    "rules": rules,
    "commands": commands,
    "exit-codes": exit_codes,
    "explain": explain,
}
