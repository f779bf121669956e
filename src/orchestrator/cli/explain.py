"""`orchestrator explain`: what a tick would do, and why."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import instant_of, settings_of, uncommitted_config


@click.command("explain", context_settings=SETTINGS)
@click.argument("roles", nargs=-1, metavar="[ROLE]...")
@click.option("--at", metavar="TIME", help="Ask about another time, such as 2026-12-01T02:00:00Z.")
@click.option(
    "--config-ref", metavar="REV", help="Read the policy from REV, for one not merged yet."
)
@click.option("--fetch", is_flag=True, help="Ask the remote first.")
@common
@click.pass_obj
def command(
    run: Invocation, roles: tuple[str, ...], at: str | None, config_ref: str | None, fetch: bool
) -> int:
    """Say for every role what a tick would do, and why.

    Each rule is shown up to the one that decides, with what it rests on, and then what would
    change the answer and when. Nothing is written. Without --fetch the answer is about what was
    fetched last.

    Exits 1 on configuration and marker errors.
    """
    from orchestrator.observe import evaluate_repository

    now = instant_of("--at", at) if at is not None else run.clock()
    found = evaluate_repository(
        settings_of(run), now, roles=roles, fetch=fetch, config_ref=config_ref
    )
    if run.json:
        from orchestrator.report.json import explain_json

        run.console.out(explain_json(found))
    else:
        from orchestrator.report.text import explain_text, headlines_text

        look = run.console.look
        text = (
            headlines_text(found, look)
            if run.quiet
            else explain_text(
                found, look, verbose=run.verbose, uncommitted=uncommitted_config(found)
            )
        )
        run.console.out(text)
    return int(found.explain_exit_code)
