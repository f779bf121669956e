"""`orchestrator tick`: do what is due."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import click

from orchestrator.cli.edge import error_text
from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.looking import settings_of
from orchestrator.errors import OrchestratorError
from orchestrator.outcome import Evaluation, Event
from orchestrator.stop import StopFlag

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@click.command("tick", context_settings=SETTINGS)
@click.argument("roles", nargs=-1, metavar="[ROLE]...")
@click.option("--no-fetch", is_flag=True, help="Do not ask the remote first (offline).")
@click.option(
    "--metrics", metavar="FILE", help="Write what was found to FILE, for Prometheus' node_exporter."
)
@common
@click.pass_obj
def command(run: Invocation, roles: tuple[str, ...], no_fetch: bool, metrics: str | None) -> int:
    """Dispatch every sweep that is due, and say in one line a role why the others rest.

    Fetches, mends what a crash left, decides, and dispatches: commit, claim, launch, close. Call
    it as often as you like, from as many machines as you like.

    A first SIGTERM, SIGINT or SIGHUP ends the running agent and closes its sweep as failed, a
    second one does so at once. Exits 1 when something needs a person, 3 when it could not look;
    stopped by signal N with nothing else to say, 128+N.
    """
    from orchestrator.tick import tick

    stop = StopFlag()
    with stopped_by_signals(stop):
        found = tick(
            settings_of(run),
            run.clock,
            roles=roles,
            fetch=not no_fetch,
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
    if metrics is not None:
        _write_metrics(metrics, found, run)
    if found.failure is not None:
        run.console.err(error_text(found.failure, run.console.error_look))
    if found.exit_code == 0 and stop.signal is not None:
        return 128 + stop.signal
    return int(found.exit_code)


def _write_metrics(path: str, found: Evaluation, run: Invocation) -> None:
    """Replace the file in one step: whoever reads it sees the old one or the new one, whole.

    Raises:
        OrchestratorError: it cannot be written; the tick itself is done.
    """
    from orchestrator.report.metrics import metrics_text

    half = f"{path}.{os.getpid()}.tmp"  # the collector reads names that end in .prom
    try:
        with open(half, "w", encoding="utf-8", newline="\n") as file:
            file.write(metrics_text(found, run.clock()))
        os.replace(half, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(half)
        raise OrchestratorError(f"{path} cannot be written: {error.strerror}") from error


def tell(run: Invocation, event: Event) -> None:
    """Progress is for people who watch; a log gets its one line at the end."""
    stderr = run.console.stderr
    watched = stderr is not None and stderr.isatty() and not run.quiet
    if watched or run.verbose:
        from orchestrator.report.lines import event_line

        run.console.err(event_line(event) + "\n")


@contextmanager
def stopped_by_signals(stop: StopFlag) -> Iterator[None]:
    """Count requests to stop instead of dying of them; what the caller ignores stays ignored."""

    def handle(number: int, _: FrameType | None) -> None:
        stop.set(number)

    before = {}
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            try:
                before[number] = signal.signal(number, handle)
            except ValueError:  # not the main thread, so signals are somebody else's here
                break
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
