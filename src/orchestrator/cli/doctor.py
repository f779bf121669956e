"""`orchestrator doctor`: would a tick work here?"""

import click

from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of


@click.command("doctor", context_settings=SETTINGS)
@common
@click.pass_obj
def command(run: Invocation) -> int:
    """Try out everything a tick needs on this machine, without spending a cent.

    Reads the remote; creates and deletes a branch run/probe-ID there; looks at the identity, the
    clock and the policy; asks each scheduled role's agent program for its version and flags, and
    whether its credentials and the price of its model are known.

    Exits 1 when something has to be mended, 3 when the repository or remote cannot be read.
    """
    from orchestrator.doctor import Level, examine
    from orchestrator.report.doctor import doctor_json, doctor_text

    examined = examine(settings_of(run), run.clock())
    if run.json:
        run.console.out(doctor_json(examined.findings, int(examined.exit_code)))
    else:
        shown = [f for f in examined.findings if not run.quiet or f.level is not Level.OK]
        run.console.out(doctor_text(shown, run.console.look))
    return int(examined.exit_code)
