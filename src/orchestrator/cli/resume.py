"""`orchestrator resume`: a change of the policy, proposed for review."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.policy import carry_out, printing
from orchestrator.policyedit import Edit


@click.command("resume", context_settings=SETTINGS)
@click.argument("role")
@printing
@common
@click.pass_obj
def command(run: Invocation, role: str, show: bool) -> int:
    """Propose to resume ROLE: `enabled: true`, as a branch for review.

    A calendar schedule starts with its next occurrence after the merge.
    """
    return carry_out(run, Edit("resume", role, {"enabled": True}), show=show)
