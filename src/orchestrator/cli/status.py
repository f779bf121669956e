"""`orchestrator status`: where every role stands."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of


@click.command("status", context_settings=SETTINGS)
@click.argument("roles", nargs=-1, metavar="[ROLE]...")
@click.option("--fetch", is_flag=True, help="Ask the remote first.")
@common
@click.pass_obj
def command(run: Invocation, roles: tuple[str, ...], fetch: bool) -> int:
    """Show where every role stands: its state, its last merged sweep, when the next is due.

    Nothing is written. Without --fetch the answer is about what was fetched last.

    Exits 1 on configuration and marker errors.
    """
    from orchestrator.observe import evaluate_repository

    found = evaluate_repository(settings_of(run), run.clock(), roles=roles, fetch=fetch)
    if run.json:
        from orchestrator.report.json import status_json

        run.console.out(status_json(found))
    else:
        from orchestrator.report.status import status_text

        text = status_text(found, run.console.look, quiet=run.quiet, verbose=run.verbose)
        run.console.out(text)
    return int(found.explain_exit_code)
