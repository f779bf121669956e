"""The program and its options; each verb is a module, imported when it is called."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import click

from orchestrator import __version__
from orchestrator.cli.invocation import Invocation

VERBS = {
    "tick": "Dispatch every sweep that is due, and say why the others rest.",
    "explain": "Say for every role what a tick would do, and why. Changes nothing.",
    "status": "Show where every role stands. Changes nothing.",
    "next": "Show the coming occurrences of every schedule. Changes nothing.",
    "check": "Check orchestrator.yaml. Changes nothing.",
    "trigger": "Sweep one role now, due or not, paused or not.",
    "pause": "Propose to pause a role, as a branch for review.",
    "resume": "Propose to resume a role, as a branch for review.",
    "schedule": "Propose another change of a schedule, as a branch for review.",
    "init": "Write a first orchestrator.yaml, or print a scheduler's file.",
    "doctor": "Try out what a tick needs on this machine; spends nothing.",
    "prompt": "Print what a role's agent would be told. Changes nothing.",
    "schema": "Print the JSON Schema of a file or of a command's output.",
}
"""The verbs in the order of the help, which must not import them."""

_F = TypeVar("_F", bound=Callable[..., Any])
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


def run_of(context: click.Context) -> Invocation:
    """The run this context belongs to."""
    run = context.find_object(Invocation)
    if run is None:
        raise RuntimeError("the program was not started by main()")
    return run


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:  # noqa: ANN401 - click's
    if value not in (None, False) and parameter.name is not None:
        setattr(run_of(context), parameter.name, value)


def _version(context: click.Context, _: click.Parameter, value: Any) -> None:  # noqa: ANN401 - click's
    if value and not context.resilient_parsing:
        run_of(context).console.out(f"orchestrator {__version__}\n")
        context.exit()


def common(command: _F) -> _F:
    """The options every verb takes; they may stand before the verb as well."""
    kept: dict[str, Any] = {"expose_value": False, "callback": _remember}
    flag: dict[str, Any] = {**kept, "is_flag": True}
    options = (
        click.option("-C", "path", metavar="PATH", help="Look at the repository in PATH.", **kept),
        click.option(
            "--remote", metavar="NAME", help="The remote that arbitrates (default: origin).", **kept
        ),
        click.option(
            "--default-branch",
            metavar="NAME",
            help="The branch that holds the policy (default: the remote's HEAD).",
            **kept,
        ),
        click.option(
            "--format",
            "format",
            type=click.Choice(["text", "json"]),
            help="What to print (default: text).",
            **kept,
        ),
        click.option("--quiet", help="Print only dispatches and problems.", **flag),
        click.option("--verbose", help="Print more: every check, every trace.", **flag),
        click.option(
            "--version",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Print the version and leave.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


class _Program(click.Group):
    """Finds a verb's module by its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"orchestrator.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the verb that was probably meant, which older clicks do not."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from orchestrator.cli.edge import unknown_command

            raise unknown_command(args[0], VERBS)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Program,
    context_settings=SETTINGS,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    epilog="Exit codes: 0 all well, 1 something needs a person, 2 wrong usage, 3 could not look.",
)
@common
@click.pass_context
def program(context: click.Context) -> int | None:
    """Start repository agents when their sweep is due, and explain every non-run.

    A sweep is a branch run/ROLE-DATE that people review and merge. What is due follows from
    orchestrator.yaml and the markers on the default branch, never from a checkout.
    """
    if context.invoked_subcommand is not None:
        return None
    run = run_of(context)
    run.console.err(context.get_help() + "\n")
    return 2
