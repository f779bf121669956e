"""One tick: fetch, mend, decide, dispatch. What cron calls, on any number of machines.

    with the clone's lock:   fetch; mend what a crash left; look once; decide; claim the first due
    without it:              launch the claimed sweep's agent and close the sweep
    again                    for the roles still to come, on a new look

The lock is short: an agent that runs for an hour never holds up another tick of this clone. What
keeps two agents off one sweep is the claim, and a lock of the sweep's own while its agent runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from orchestrator.claim import Claim, Claimant, NotClaimed, claim
from orchestrator.dispatch import Dispatcher, probe
from orchestrator.errors import CannotLookError, OrchestratorError, WriteFailedError
from orchestrator.git.reader import Reader
from orchestrator.git.writer import Writer
from orchestrator.locks import FileLock, acquire, clone_lock_path, held, sweep_lock_path
from orchestrator.model.config import Registration
from orchestrator.model.timing import iso
from orchestrator.observe import Snapshot, chosen_roles, evaluate_repository, observe
from orchestrator.outcome import DispatchStarted, Evaluation, Event, RoleOutcome
from orchestrator.recover import Mender, close_orphans, publish_pending
from orchestrator.rules.engine import evaluate
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.verdict import Action, Code, Verdict
from orchestrator.site import Settings, open_site
from orchestrator.stop import StopFlag

LOCK_WAIT_SECONDS = 30.0
_FALLBACK_NOTE = (
    "no committer identity is set, so commits are by {name} <{email}>; "
    "set one with: git config user.name NAME && git config user.email EMAIL"
)


@dataclass(frozen=True, slots=True)
class _Won:
    """A claim that was won, and what its dispatch needs."""

    facts: RoleFacts
    verdict: Verdict
    claim: Claim
    dispatcher: Dispatcher
    lock: FileLock


@dataclass(slots=True)
class _Progress:
    """What is known so far; a tick's only mutable state."""

    outcomes: list[RoleOutcome] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    snapshot: Snapshot | None = None
    pending: tuple[str, ...] | None = None


def tick(
    settings: Settings,
    clock: Callable[[], datetime],
    *,
    roles: Sequence[str] = (),
    fetch: bool = True,
    stop: StopFlag | None = None,
    on_event: Callable[[Event], None] = lambda _: None,
    lock_wait_s: float = LOCK_WAIT_SECONDS,
) -> Evaluation:
    """Run one tick and say, for every role, what happened and why.

    Args:
        settings: where to look.
        clock: the time, aware, whole seconds; read once a look and once at a closing.
        roles: the roles to consider; none considers all.
        fetch: ask the remote first; False is for offline use.
        stop: set by signal handlers; the running agent is then ended and its sweep closed.
        on_event: told when an agent is about to be launched.
        lock_wait_s: how long to wait for another tick of this clone, seconds.

    Raises:
        CannotLookError: nothing was evaluated.
        UsageError: a role was asked for that has no schedule.
    """
    return _Tick(settings, clock, roles, fetch, stop or StopFlag(), on_event, lock_wait_s).run()


@dataclass(slots=True)
class _Tick:
    settings: Settings
    clock: Callable[[], datetime]
    roles: Sequence[str]
    fetch: bool
    stop: StopFlag
    on_event: Callable[[Event], None]
    lock_wait_s: float
    progress: _Progress = field(default_factory=_Progress)

    def run(self) -> Evaluation:
        progress = self.progress
        while progress.pending is None or progress.pending:
            try:
                won = self._look_and_claim()
                if won is not None:
                    self._dispatch(won)
            except OrchestratorError as error:
                if progress.snapshot is None or not progress.outcomes:
                    raise
                return self._evaluation(error)
        return self._evaluation(None)

    def _look_and_claim(self) -> _Won | None:
        """Under the clone's lock. None when no role is due, or another tick holds the lock."""
        reader = Reader.open(self.settings.path, self.settings.environ)
        lock_path = clone_lock_path(reader.common_dir)
        with held(lock_path, self.lock_wait_s) as lock:
            if lock is None:
                return self._all_busy("another tick of this clone is fetching or claiming")
            site = open_site(self.settings, fetch=self.fetch, reader=reader)
            now = self.clock()
            writer, identity = Writer(reader), reader.identity(self.settings.environ)
            snapshot = self._mended(Mender(site, writer, identity, now))
            self._remember(snapshot)
            claimant = Claimant(site, writer, identity, str(uuid4()))
            return self._first_won(snapshot, claimant)

    def _mended(self, mender: Mender) -> Snapshot:
        """A look at the repository after what a crash left has been put right."""
        self.progress.mended += publish_pending(mender)
        snapshot = observe(mender.site, mender.now)
        closed = close_orphans(mender, snapshot.facts)
        if not closed:
            return snapshot
        self.progress.mended += closed
        return observe(mender.site, mender.now)

    def _remember(self, snapshot: Snapshot) -> None:
        progress = self.progress
        chosen = chosen_roles(snapshot.config, self.roles)
        if progress.pending is None:
            progress.pending = chosen
            progress.notes += snapshot.site.reader.notes
        progress.pending = tuple(r for r in progress.pending if r in chosen)
        progress.snapshot = snapshot

    def _first_won(self, snapshot: Snapshot, claimant: Claimant) -> _Won | None:
        """Take the pending roles in order up to the first claim that is won."""
        for role in self.progress.pending or ():
            facts = snapshot.facts[role]
            verdict = evaluate(facts)
            won: _Won | Verdict = verdict
            if verdict.action is Action.DISPATCH:
                won = self._try(facts, verdict, claimant)
            self._done(role)
            if isinstance(won, _Won):
                return won
            self.progress.outcomes.append(RoleOutcome(won, facts))
        return None

    def _done(self, role: str) -> None:
        self.progress.pending = tuple(r for r in self.progress.pending or () if r != role)

    def _try(self, facts: RoleFacts, verdict: Verdict, claimant: Claimant) -> _Won | Verdict:
        """Probe, then claim: a branch is only made where an agent can be started."""
        if self.stop.is_set():
            return _rests(verdict, Code.BUSY, "this tick was asked to stop", None)
        registration = facts.registration
        assert isinstance(registration, Registration)  # noqa: S101 - S4 holds only with one
        found = probe(claimant.site, registration)
        if not found.ok:
            reason = found.reason or f"{registration.adapter} cannot be started here"
            return verdict.turned(Action.ERROR, Code.AGENT_UNAVAILABLE, reason, unblock=found.hint)
        lock = acquire(sweep_lock_path(claimant.site.reader.common_dir, facts.today.slug))
        if lock is None:
            reason = f"an agent of this clone is at work on {facts.today.slug} right now"
            return _rests(verdict, Code.BUSY, reason, None)
        try:
            claimed = claim(claimant, facts, facts.now)
        except WriteFailedError as error:
            lock.release(remove=True)
            return verdict.turned(Action.ERROR, Code.REFUSED, error.message, unblock=error.hint)
        except BaseException:
            lock.release(remove=True)
            raise
        if isinstance(claimed, NotClaimed):
            lock.release(remove=True)
            return _not_claimed(verdict, claimed)
        if claimant.identity.fallback:
            self._note_identity(claimant)
        dispatcher = Dispatcher(claimant, registration, found, self.clock, self.stop)
        return _Won(facts, verdict, claimed, dispatcher, lock)

    def _note_identity(self, claimant: Claimant) -> None:
        who = claimant.identity
        note = _FALLBACK_NOTE.format(name=who.name, email=who.email)
        if note not in self.progress.notes:
            self.progress.notes.append(note)

    def _dispatch(self, won: _Won) -> None:
        """Without the clone's lock: run the agent, close the sweep."""
        try:
            registration = won.dispatcher.registration
            self.on_event(
                DispatchStarted(won.claim.sweep, registration.adapter, registration.timeout_s)
            )
            result = won.dispatcher.run(won.claim)
        finally:
            won.lock.release(remove=True)
        self.progress.outcomes.append(RoleOutcome(won.verdict, won.facts, result))

    def _all_busy(self, reason: str) -> None:
        """Another tick of this clone is at it; every role still to come rests, with that reason."""
        now = self.clock()
        seen = evaluate_repository(self.settings, now, roles=self.roles)
        pending = self.progress.pending
        for outcome in seen.outcomes:
            verdict = outcome.verdict
            if pending is None or verdict.role in pending:
                rests = _rests(verdict, Code.BUSY, reason, "the next tick looks again")
                self.progress.outcomes.append(RoleOutcome(rests, outcome.facts))
        self.progress.pending = ()
        if self.progress.snapshot is None:
            site = open_site(self.settings, fetch=False)
            self.progress.snapshot = observe(site, now)

    def _evaluation(self, failure: OrchestratorError | None) -> Evaluation:
        progress = self.progress
        if progress.snapshot is None:
            raise failure or CannotLookError("nothing was evaluated")
        return Evaluation(
            now=iso(progress.snapshot.now),
            repository=progress.snapshot.site.info,
            config=progress.snapshot.config,
            outcomes=tuple(progress.outcomes),
            notes=tuple(progress.notes),
            mended=tuple(progress.mended),
            failure=failure,
        )


def _rests(verdict: Verdict, code: Code, reason: str, unblock: str | None) -> Verdict:
    return verdict.turned(Action.REST, code, reason, unblock=unblock, error=False)


def _not_claimed(verdict: Verdict, outcome: NotClaimed) -> Verdict:
    """A lost race and a busy clone are rests: nothing is wrong. A refusal needs a person."""
    if outcome.code in (Code.LOST_RACE, Code.BUSY):
        return _rests(verdict, outcome.code, outcome.reason, outcome.hint)
    return verdict.turned(Action.ERROR, outcome.code, outcome.reason, unblock=outcome.hint)
