"""`orchestrator trigger`: a sweep now, because a person asks for it."""

import click

from orchestrator.cli.edge import error_text
from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of
from orchestrator.cli.tick import stopped_by_signals, tell
from orchestrator.outcome import Evaluation
from orchestrator.stop import StopFlag


@click.command("trigger", context_settings=SETTINGS)
@click.argument("role")
@click.option("--no-fetch", is_flag=True, help="Do not ask the remote first (offline).")
@common
@click.pass_obj
def command(run: Invocation, role: str, no_fetch: bool) -> int:
    """Sweep ROLE now, due or not, also while it is paused.

    An open sweep, today's sweep and the cap hold it back as they hold a tick back. The marker says
    `trigger: manual`, and the schedule's timing does not move.

    Exits 1 when nothing was started.
    """
    from orchestrator.tick import tick

    stop = StopFlag()
    with stopped_by_signals(stop):
        found = tick(
            settings_of(run),
            run.clock,
            roles=(role,),
            fetch=not no_fetch,
            by_hand=True,
            stop=stop,
            on_event=lambda event: tell(run, event),
        )
    if run.json:
        from orchestrator.report.json import explain_json

        run.console.out(explain_json(found))
    else:
        from orchestrator.report.lines import tick_text

        text = tick_text(found, run.console.look, quiet=run.quiet, verbose=run.verbose)
        run.console.out(text)
        run.console.err(_not_started(found))
    if found.failure is not None:
        run.console.err(error_text(found.failure, run.console.error_look))
    if stop.signal is not None and found.exit_code == 0:
        return 128 + stop.signal
    started = any(o.sweep is not None for o in found.outcomes)
    return int(found.exit_code) if started else max(1, int(found.exit_code))


def _not_started(found: Evaluation) -> str:
    """One line when a person asked and nothing came of it."""
    from orchestrator.report.words import STATE_WORDS, clean
    from orchestrator.rules.facts import SweepState
    from orchestrator.rules.verdict import Code

    lines = ""
    for outcome in found.outcomes:
        verdict = outcome.verdict
        if outcome.sweep is not None:
            continue
        why = clean(verdict.reason)
        if verdict.code is Code.SWEEP_OPEN and verdict.state is not None:
            role, state = clean(verdict.role), STATE_WORDS[verdict.state]
            why = f"the previous sweep of {role} is open ({state}; overlap: skip)"
            if verdict.state is SweepState.IN_FLIGHT:
                why = f"the previous execution of {role} is still running (overlap: skip)"
        lines += f"not started: {why}\n"
    return lines
