"""`orchestrator schedule set|delete`: changes of the policy, proposed for review."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.policy import carry_out, printing
from orchestrator.policyedit import Edit, parse_pairs


@click.group("schedule", context_settings=SETTINGS)
@common
def command() -> None:
    """Propose a change of one role's schedule, as a branch for review.

    The edit keeps the file's comments and order, and becomes one commit on a branch
    policy/<what>-<date>, pushed where there is a remote. It counts once people merged it.
    """


@command.command("set", context_settings=SETTINGS)
@click.argument("role")
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
@printing
@common
@click.pass_obj
def set_command(run: Invocation, role: str, pairs: tuple[str, ...], show: bool) -> int:
    """Set keys of ROLE's schedule, or make one: cron='0 2 * * *' timezone=Europe/Berlin.

    KEY= removes a key. Setting one of every, cron and interval removes the others.
    """
    return carry_out(run, Edit("set", role, parse_pairs(pairs)), show=show)


@command.command("delete", context_settings=SETTINGS)
@click.argument("role")
@printing
@common
@click.pass_obj
def delete_command(run: Invocation, role: str, show: bool) -> int:
    """Remove ROLE's schedule. Its sweeps stay what they are."""
    return carry_out(run, Edit("delete", role, {}, delete=True), show=show)
