"""`orchestrator pause`: a change of the policy, proposed for review."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.policy import carry_out, printing
from orchestrator.policyedit import Edit


@click.command("pause", context_settings=SETTINGS)
@click.argument("role")
@printing
@common
@click.pass_obj
def command(run: Invocation, role: str, show: bool) -> int:
    """Propose to pause ROLE: `enabled: false`, as a branch for review.

    The schedule rests once the branch is merged. Pausing leaves no backlog: a resumed calendar
    schedule starts with its next occurrence.
    """
    return carry_out(run, Edit("pause", role, {"enabled": False}), show=show)
