"""What `pause`, `resume` and `schedule` share: propose an edit of the policy, for review."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of
from orchestrator.policyedit import Edit, propose, publish
from orchestrator.site import open_site

_F = TypeVar("_F", bound=Callable[..., Any])


def printing(command: _F) -> _F:
    """The option `--print`."""
    help_text = "Show the change and write nothing."
    return click.option("--print", "show", is_flag=True, help=help_text)(command)


def carry_out(run: Invocation, edit: Edit, *, show: bool) -> int:
    """Print the change, or commit it on a branch and push that; nobody's branch is moved."""
    site = open_site(settings_of(run), fetch=not show)
    now = run.clock()
    proposal = propose(site, edit, now)
    if show:
        run.console.out(proposal.diff)
        return 0
    commit = publish(site, proposal, now)
    where = f"pushed to {site.remote_name}" if site.remote_name else "in this repository"
    if run.json:
        import json

        document = {"version": 1, "branch": proposal.branch, "commit": commit}
        run.console.out(json.dumps(document, indent=2) + "\n")
    elif not run.quiet:
        run.console.out(
            f"{proposal.diff}\n{proposal.branch} is {where}; it counts once it is merged into "
            f"{site.default_branch}\n"
        )
    return 0
