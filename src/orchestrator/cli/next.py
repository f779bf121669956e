"""`orchestrator next`: what is to come."""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import instant_of, settings_of

_MOST = 1000


@click.command("next", context_settings=SETTINGS)
@click.argument("roles", nargs=-1, metavar="[ROLE]...")
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, _MOST),
    default=5,
    show_default=True,
    metavar="N",
    help="How many occurrences of each role.",
)
@click.option("--at", metavar="TIME", help="Those after TIME, such as 2026-12-01T02:00:00Z.")
@click.option(
    "--config-ref", metavar="REV", help="Read the policy from REV, for one not merged yet."
)
@click.option("--fetch", is_flag=True, help="Ask the remote first.")
@common
@click.pass_obj
def command(
    run: Invocation,
    roles: tuple[str, ...],
    count: int,
    at: str | None,
    config_ref: str | None,
    fetch: bool,
) -> int:
    """Show the coming occurrences of every schedule, in UTC and in its own time zone.

    They are computed by what decides at a tick. With jitter, the time it is due stands beside the
    nominal one. Nothing is written.

    Exits 1 on configuration and marker errors.
    """
    from orchestrator.observe import evaluate_repository

    now = instant_of("--at", at) if at is not None else run.clock()
    found = evaluate_repository(
        settings_of(run), now, roles=roles, fetch=fetch, config_ref=config_ref
    )
    if run.json:
        from orchestrator.report.json import next_json

        run.console.out(next_json(found, count))
    else:
        from orchestrator.report.upcoming import next_text

        run.console.out(next_text(found, run.console.look, count))
    return int(found.explain_exit_code)
