"""One sweep, in this order, so that a crash at any point is safe: claim, launch, close.

    claim    The intent commit is stored and wins the branch. Until then nothing has happened; from
             then on no other instance starts this sweep. (`orchestrator.claim`)
    launch   The agent runs in a private working copy with its own HOME, under a time limit, and is
             ended with everything it started. What it changed is harvested as plain data.
             (this file, `orchestrator.adapters.process`, `orchestrator.git.harvest`)
    close    A work commit holds what came back, a closing commit what it cost; both land on the
             branch whatever happened to it meanwhile. (`orchestrator.closing`)

Dying before the claim leaves nothing. Dying between claim and close leaves an intent without a
closing commit, which the next tick of this clone finds and closes as `failed: interrupted`
(`orchestrator.recover`). Dying while closing leaves a pinned commit, which is pushed again.
Nothing is ever launched twice, because the intent is on the branch before anything starts.

The three steps are functions with plain values between them: a claim made on one machine could be
launched on another.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from orchestrator.adapters.base import Probe
from orchestrator.claim import Claim, Claimant
from orchestrator.closing import Closed, Closer, Finished, Opened
from orchestrator.errors import OrchestratorError, WriteFailedError
from orchestrator.model.config import Registration
from orchestrator.model.status import Status
from orchestrator.outcome import SweepResult, Withdrawn
from orchestrator.stop import StopFlag
from orchestrator.text import safe_line
from orchestrator.withdrawal import settle

FAILED_LENGTH = 200
"""The `failed` line's limit, characters."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Launches and closes one claimed sweep."""

    claimant: Claimant
    registration: Registration
    probe: Probe
    clock: Callable[[], datetime]
    stop: StopFlag

    def run(self, claimed: Claim) -> SweepResult | Withdrawn:
        """Launch the agent and close the sweep, whatever comes of it.

        Where the agent's service could not be used at all, the claim is given back instead.

        An error of ours on the way still closes the sweep as failed, and is raised after that.
        """
        from orchestrator.launch import Launcher  # only when an agent is really started

        launcher = Launcher(self.claimant, self.registration, self.probe, self.stop)
        unforeseen: Exception | None = None
        try:
            finished = launcher.launch(claimed)
        except OrchestratorError as error:
            finished = Finished(Status.FAILED, failed=self._line(error.message))
        except OSError as error:  # without its path: that is this machine's, and the line is not
            words = f"the run could not be set up: {error.strerror or type(error).__name__}"
            finished = Finished(Status.FAILED, failed=self._line(words))
        except Exception as error:  # noqa: BLE001 - the sweep is closed first, then it is raised
            unforeseen = error
            finished = Finished(Status.FAILED, failed=f"internal error: {type(error).__name__}")
        if unforeseen is None:
            given_back = settle(self.claimant, claimed, self.registration, finished, self.clock())
            if given_back is not None:
                return given_back
        result = self._close(claimed, finished, launcher.transcript)
        if unforeseen is not None:
            raise unforeseen
        return result

    def _line(self, text: str) -> str:
        return failed_line(text, self.claimant.site.settings.environ)

    def _close(self, claimed: Claim, finished: Finished, transcript: str | None) -> SweepResult:
        opened = Opened(claimed.marker, claimed.intent, claimed.dispatch_id, claimed.instance)
        closed: Closed | None = None
        with suppress(WriteFailedError):  # a full disk: the branch stays in flight, mended later
            closed = Closer(
                self.claimant.site,
                self.claimant.writer,
                opened,
                self.claimant.identity,
                self.clock(),
            ).close(finished)
        return SweepResult(
            sweep=claimed.sweep,
            intent=claimed.intent,
            closing=closed.commit if closed is not None else None,
            status=finished.status,
            usage=finished.usage,
            failed=finished.failed,
            left_out=tuple(finished.left_out),
            published=closed is not None and closed.published,
            note=_note(claimed, finished, closed),
            transcript=transcript,
        )


def _note(claimed: Claim, finished: Finished, closed: Closed | None) -> str | None:
    """What people should know beside status and usage."""
    if closed is None:
        return "the closing commit could not be stored"
    cap, cost = claimed.marker.cost_limit_usd, finished.usage.cost_usd
    over = (
        f"over the cap of ${cap:g}" if cap is not None and cost is not None and cost > cap else ""
    )
    return "; ".join(words for words in (over, closed.note) if words) or None


def failed_line(text: str, environ: Mapping[str, str]) -> str:
    """An error as the marker's `failed` holds it: one line, secrets masked before it is cut."""
    return safe_line(text, environ, FAILED_LENGTH) or "it did not say why"
