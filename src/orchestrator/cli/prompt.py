"""`orchestrator prompt`: what would an agent be told?"""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of
from orchestrator.errors import OrchestratorError, UsageError


@click.command("prompt", context_settings=SETTINGS)
@click.argument("role", metavar="ROLE")
@click.option("--fetch", is_flag=True, help="Ask the remote first.")
@common
@click.pass_obj
def command(run: Invocation, role: str, fetch: bool) -> int:
    """Print what ROLE's agent would be told by a sweep dispatched now. Changes nothing.

    The findings, which are computed when a sweep starts, are left out.
    """
    from orchestrator.claim import planned_marker
    from orchestrator.model.config import Registration, ScheduleEntry
    from orchestrator.observe import chosen_roles, observe
    from orchestrator.prompt import build, instructions
    from orchestrator.site import open_site

    site = open_site(settings_of(run), fetch=fetch)
    seen = observe(site, run.clock())
    if role not in chosen_roles(seen.config, [role]):
        raise UsageError(f"no role {role} is scheduled")
    facts = seen.facts[role]
    for known in (facts.entry, facts.registration):
        if not isinstance(known, ScheduleEntry | Registration):
            raise OrchestratorError(known.message, known.hint)
    assert isinstance(facts.registration, Registration)  # noqa: S101 - the loop has seen it
    text = instructions(site.reader, facts.registration, site.tip)
    marker = planned_marker(facts, run.clock())
    findings = "(computed when a sweep starts)"
    run.console.out(build(text, marker, facts.registration.writes, findings))
    return 0
