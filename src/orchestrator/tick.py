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
from typing import TYPE_CHECKING

from orchestrator.errors import CannotLookError, OrchestratorError
from orchestrator.git.reader import Reader
from orchestrator.leftovers import is_anything_left
from orchestrator.locks import clone_lock_path, held
from orchestrator.model.names import SweepName
from orchestrator.model.timing import iso
from orchestrator.observe import Snapshot, chosen_roles, observe
from orchestrator.outcome import DispatchStarted, Evaluation, Event, RoleOutcome, Withdrawn
from orchestrator.rules.engine import evaluate
from orchestrator.rules.facts import SweepState
from orchestrator.rules.verdict import Action, Code
from orchestrator.site import Settings, Site, open_site
from orchestrator.stop import StopFlag

if TYPE_CHECKING:
    from orchestrator.attempt import Won

LOCK_WAIT_SECONDS = 30.0


@dataclass(slots=True)
class _Progress:
    """What is known so far; a tick's only mutable state."""

    outcomes: list[RoleOutcome] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    saw_failure: bool = False
    snapshot: Snapshot | None = None
    pending: tuple[str, ...] | None = None


def tick(
    settings: Settings,
    clock: Callable[[], datetime],
    *,
    roles: Sequence[str] = (),
    fetch: bool = True,
    by_hand: bool = False,
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
        by_hand: a person asks for these roles' sweeps now, due or not, paused or not.
        stop: set by signal handlers; the running agent is then ended and its sweep closed.
        on_event: told when an agent is about to be launched.
        lock_wait_s: how long to wait for another tick of this clone, seconds.

    Raises:
        CannotLookError: nothing was evaluated.
        UsageError: a role was asked for that has no schedule.
    """
    stop = stop or StopFlag()
    return _Tick(settings, clock, roles, fetch, stop, on_event, lock_wait_s, by_hand).run()


@dataclass(slots=True)
class _Tick:
    settings: Settings
    clock: Callable[[], datetime]
    roles: Sequence[str]
    fetch: bool
    stop: StopFlag
    on_event: Callable[[Event], None]
    lock_wait_s: float
    by_hand: bool = False
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

    def _look_and_claim(self) -> "Won | None":
        """Under the clone's lock. None when no role is due, or another tick holds the lock."""
        reader = Reader.open(self.settings.path, self.settings.environ)
        lock_path = clone_lock_path(reader.common_dir)
        with held(lock_path, self.lock_wait_s) as lock:
            if lock is None:
                self._all_busy(reader)
                return None
            site = open_site(self.settings, fetch=self.fetch, reader=reader)
            if site.remote is not None:
                broken = site.remote.broken_locks
                self.progress.mended += (
                    f"removed a stale lock left by a crash: {p}" for p in broken
                )
            self._remember(self._mended(site, self.clock()))
            return self._first_won()

    def _mended(self, site: Site, now: datetime) -> Snapshot:
        """A look at the repository, after what a crash left has been put right."""
        snapshot = observe(site, now, by_hand=self.by_hand)
        if not is_anything_left(snapshot):
            return snapshot
        # Most ticks find nothing to mend and nothing due; what only others need is not imported.
        from orchestrator.orphans import close_orphans
        from orchestrator.recover import Mender, is_waiting, publish_pending

        mender = Mender.of(site, now)
        self.progress.mended += publish_pending(mender)
        before = observe(site, now)
        self.progress.mended += close_orphans(mender, before.facts)
        after = observe(site, now, by_hand=self.by_hand)
        # Whoever sees a sweep fail says so; later ticks rest on it. A closing commit that the
        # remote does not take stays a person's to look at.
        failed = bool(_failed_sweeps(after) - _failed_sweeps(before))
        self.progress.saw_failure |= failed or (site.fetched and is_waiting(site))
        return after

    def _remember(self, snapshot: Snapshot) -> None:
        progress = self.progress
        chosen = chosen_roles(snapshot.config, self.roles)
        if progress.pending is None:
            progress.pending = chosen
            progress.notes += (*snapshot.site.reader.notes, *snapshot.strays)
        progress.pending = tuple(r for r in progress.pending if r in chosen)
        progress.snapshot = snapshot

    def _first_won(self) -> "Won | None":
        """Take the pending roles in order up to the first claim that is won."""
        snapshot = self.progress.snapshot
        assert snapshot is not None  # noqa: S101 - set by the look that precedes this
        for role in self.progress.pending or ():
            facts = snapshot.facts[role]
            verdict = evaluate(facts)
            self._done(role)
            if verdict.action is Action.DISPATCH:
                from orchestrator.attempt import Won, attempt

                tried = attempt(snapshot.site, facts, verdict, self.clock, self.stop)
                if isinstance(tried, Won):
                    self._note(tried.note)
                    return tried
                verdict = tried
            self.progress.outcomes.append(RoleOutcome(verdict, facts))
        return None

    def _note(self, note: str | None) -> None:
        if note is not None and note not in self.progress.notes:
            self.progress.notes.append(note)

    def _done(self, role: str) -> None:
        self.progress.pending = tuple(r for r in self.progress.pending or () if r != role)

    def _dispatch(self, won: "Won") -> None:
        """Without the clone's lock: run the agent, close the sweep."""
        result = None
        try:
            # From here on the sweep counts as started: whatever happens, it is never started again.
            won.lock.sign(won.claim.dispatch_id, launched=True)
            registration = won.dispatcher.registration
            self.on_event(
                DispatchStarted(won.claim.sweep, registration.adapter, registration.timeout_s)
            )
            result = won.dispatcher.run(won.claim)
        finally:
            # What is not closed is signed for: the next tick of this clone closes it.
            done = isinstance(result, Withdrawn) or (
                result is not None and result.closing is not None
            )
            won.lock.release(remove=done)
        if isinstance(result, Withdrawn):
            verdict = won.verdict.turned(
                Action.ERROR, Code.AGENT_UNAVAILABLE, result.reason, unblock=result.hint
            )._replace(due_at=result.retry_at)
            self.progress.outcomes.append(RoleOutcome(verdict, won.facts))
            return
        self.progress.outcomes.append(RoleOutcome(won.verdict, won.facts, result))

    def _all_busy(self, reader: Reader) -> None:
        """Another tick of this clone is at it: every role still to come rests, and says so."""
        site = open_site(self.settings, fetch=False, reader=reader)
        snapshot = observe(site, self.clock(), by_hand=self.by_hand)
        self._remember(snapshot)
        reason = "another tick of this clone is fetching or claiming"
        for role in self.progress.pending or ():
            facts = snapshot.facts[role]
            rests = evaluate(facts).resting(Code.BUSY, reason, "the next tick looks again")
            self.progress.outcomes.append(RoleOutcome(rests, facts))
        self.progress.pending = ()

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
            saw_failure=progress.saw_failure,
        )


def _failed_sweeps(snapshot: Snapshot) -> set[SweepName]:
    branches = (b for facts in snapshot.facts.values() for b in facts.open_branches)
    return {b.sweep for b in branches if b.state is SweepState.FAILED}
