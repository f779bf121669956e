"""What a tick did, as values: what `report` prints and what the exit code is taken from."""

from datetime import datetime
from typing import NamedTuple

from orchestrator.errors import ExitCode, OrchestratorError
from orchestrator.model.config import Config
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, Usage
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.verdict import Action, Verdict


class RepositoryInfo(NamedTuple):
    """Which repository was looked at, and where its policy lives.

    Attributes:
        remote: the remote's name; None when everything happens in this repository.
        tip_name: the default branch as people write it: `origin/main`, or `main` with no remote.
    """

    path: str
    remote: str | None
    default_branch: str
    tip: Oid
    tip_name: str


class SweepResult(NamedTuple):
    """One dispatched sweep.

    Attributes:
        closing: the closing commit; None when it could not even be written here.
        failed: the marker's `failed` line; None when it completed.
        left_out: paths the agent changed that may not come back, with the reason of each.
        published: whether the closing commit is on the remote (true when there is none).
        note: one sentence about the closing that people should know.
        transcript: folder on this machine that holds what the agent printed, if kept.
    """

    sweep: SweepName
    intent: Oid
    closing: Oid | None
    status: Status
    usage: Usage = UNKNOWN_USAGE
    failed: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    published: bool = True
    note: str | None = None
    transcript: str | None = None


class Withdrawn(NamedTuple):
    """A claim that was given back: the agent's service could not be used, nothing was spent.

    Attributes:
        reason: one sentence, secrets masked.
        hint: the way out.
        retry_at: when this clone tries again.
    """

    sweep: SweepName
    status: Status
    reason: str
    hint: str
    retry_at: datetime


class RoleOutcome(NamedTuple):
    """One role in one tick: the verdict as it stood at the end, and the sweep if one ran."""

    verdict: Verdict
    facts: RoleFacts
    sweep: SweepResult | None = None

    @property
    def needs_person(self) -> bool:
        """Whether this outcome makes a tick exit 1."""
        if self.verdict.action in (Action.ERROR, Action.SKIP):
            return True
        return self.sweep is not None and (
            self.sweep.failed is not None or not self.sweep.published
        )


class Evaluation(NamedTuple):
    """Every role's outcome on one repository, by `tick` or by `explain`.

    Attributes:
        notes: sentences about this machine or clone, said once.
        mended: one sentence for each thing an earlier crash left that was put right.
        saw_failure: this tick closed a sweep as failed that a crash or another machine had left, or
            the remote does not take a closing commit.
        failure: what ended a tick half way, after at least one role had its outcome.
    """

    now: str
    repository: RepositoryInfo
    config: Config
    outcomes: tuple[RoleOutcome, ...]
    notes: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    failure: OrchestratorError | None = None
    saw_failure: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """1 when anything needs a person, else 0; a failure half way keeps its own code."""
        if self.failure is not None:
            return self.failure.exit_code
        needed = self.saw_failure or any(o.needs_person for o in self.outcomes)
        if self.config.errors or needed:
            return ExitCode.ATTENTION
        return ExitCode.OK

    @property
    def explain_exit_code(self) -> ExitCode:
        """`explain` changes nothing, so only configuration and marker errors make it exit 1."""
        broken = any(o.verdict.action is Action.ERROR for o in self.outcomes)
        return ExitCode.ATTENTION if self.config.errors or broken else ExitCode.OK


class DispatchStarted(NamedTuple):
    """An event: a claim was won and the agent is about to be launched."""

    sweep: SweepName
    adapter: str
    timeout_s: float


Event = DispatchStarted
"""What a tick tells while it runs; reports turn it into progress lines."""
