"""The protocol, step by step, in orders nobody thought of: a stateful test on real repositories.

Three instances (two of them share a clone) each look, claim, launch and close, one step at a time;
between any two steps others tick, crash, lose the remote, and people review, delete, push and force
whatever they like, by clocks that disagree. Only the agent is not real: a launch is a line in a
list, and every launch that completes has a usage of its own, by which it is found again.
"""

import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pygit2
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orchestrator.attempt import Won, attempt
from orchestrator.claim import Claim
from orchestrator.closing import Finished
from orchestrator.dispatch import Dispatcher
from orchestrator.errors import OrchestratorError, RemoteUnreachableError
from orchestrator.git.porcelain import trailers
from orchestrator.locks import FileLock, acquire, clone_lock_path
from orchestrator.model.names import RUNS_FOLDER, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import CostSource, Usage
from orchestrator.observe import Snapshot, observe
from orchestrator.outcome import Evaluation, SweepResult, Withdrawn
from orchestrator.rules.engine import evaluate
from orchestrator.rules.verdict import Action
from orchestrator.site import open_site
from orchestrator.stop import StopFlag
from orchestrator.tick import tick
from orchestrator.withdrawal import settle
from tests.support import repos
from tests.support.world import World

pytestmark = pytest.mark.long

ROLE = "historian"
POLICIES = {
    "daily": f"schedules:\n  {ROLE}:\n    every: 1d\n",
    "hourly": f"schedules:\n  {ROLE}:\n    every: 1h\n",
    "disabled": f"schedules:\n  {ROLE}:\n    every: 1d\n    enabled: false\n",
}
MERGES = {
    "merge": repos.merge_commit,
    "squash": repos.squash,
    "rebase": repos.rebase,
    "fast-forward": repos.fast_forward,
}
HEADS = "refs/heads/run/"
PASSES = 4
ORDERS = st.lists(st.integers(0, 2), min_size=6, max_size=12)
"""Whose next step (look, claim, launch, close) comes when."""
ENDINGS = st.sampled_from(["ok", "ok", "fail", "auth"])


def tokens_of(dispatch_id: str) -> int:
    """What the agent of this dispatch uses: a number that tells whose it is."""
    return zlib.crc32(dispatch_id.encode())


@dataclass
class Instance:
    """One process that ticks, stopped between two steps. Its clone's lock, then its sweep's."""

    clone: Path
    lock: FileLock | None = None
    look: Snapshot | None = None
    won: Won | None = None
    launched: bool = False

    def crash(self) -> None:
        """What the kernel does for a process that is killed: its locks go, its files stay."""
        if self.lock is not None:
            self.lock.release()
        if self.won is not None:
            self.won.lock.release()
        self.lock, self.look, self.won, self.launched = None, None, None, False


class Protocol(RuleBasedStateMachine):
    """The world, and what is known to have happened in it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        files = {"orchestrator.yaml": POLICIES["daily"], "README.md": "# App\n"}
        self.world = World.with_remote(root, files)
        other = repos.clone(self.world.shared, root / "other")
        self.clones = (self.world.home, other)
        self.instances = [Instance(self.clones[n]) for n in (0, 0, 1)]
        self.skew = timedelta()
        self.edits = 0
        self.launches: Counter[str] = Counter()
        self.released: Counter[str] = Counter()  # given up by a person, or given back
        self.meddled: set[str] = set()  # deleted or forced by a person, once
        self.used: dict[str, str] = {}  # completed dispatches, and their slugs
        self.seen: set[str] = set()
        self.recorded: dict[str, set[int | None]] = {}
        self.patch = pytest.MonkeyPatch()
        agent = self._agent

        def run(dispatcher: Dispatcher, claimed: Claim) -> SweepResult:
            return agent(dispatcher, claimed)

        self.patch.setattr(Dispatcher, "run", run)

    # -- instances ---------------------------------------------------------------------------------

    @initialize(hours=st.sampled_from([-25, -3, 0]), order=ORDERS)
    def all_begin(self, hours: int, order: list[int]) -> None:
        self.skew = timedelta(hours=hours)
        self._steps(order, "ok")

    @rule(order=ORDERS, ending=ENDINGS)
    def all_go_on(self, order: list[int], ending: str) -> None:
        self._steps(order, ending)

    @rule(number=st.integers(0, 2), steps=st.integers(1, 4), ending=ENDINGS)
    def one_goes_on(self, number: int, steps: int, ending: str) -> None:
        self._steps([number] * steps, ending)

    @rule(number=st.integers(0, 2), at=st.sampled_from(["claim", "close"]), ending=ENDINGS)
    def one_loses_the_remote(self, number: int, at: str, ending: str) -> None:
        one = self.instances[number]
        for _ in range(3):
            if one.launched or (at == "claim" and one.look is not None):
                break
            self._step(one, "ok")
        with self._unreachable():
            self._step(one, ending)

    @rule(number=st.integers(0, 2))
    def crash(self, number: int) -> None:
        self.instances[number].crash()

    @rule(number=st.integers(0, 1))
    def tick(self, number: int) -> None:
        self._tick(self.clones[number])

    def _steps(self, order: Sequence[int], ending: str) -> None:
        for number in order:
            self._step(self.instances[number], ending)

    def _step(self, one: Instance, ending: str) -> None:
        if one.won is not None:
            if one.launched:
                self._close(one, one.won, ending)
            else:
                one.won.lock.sign(one.won.claim.dispatch_id, launched=True)
                self._launch(one.won.claim)
                one.launched = True
        elif one.look is not None:
            self._claim(one, one.look)
        else:
            self._look(one)

    def _look(self, one: Instance) -> None:
        lock = acquire(clone_lock_path(str(one.clone / ".git")))
        if lock is None:
            return
        try:
            site = open_site(self.world.settings(one.clone), fetch=True)
        except RemoteUnreachableError:
            lock.release()
            return
        one.lock, one.look = lock, observe(site, self._now(one.clone))

    def _claim(self, one: Instance, look: Snapshot) -> None:
        facts, made = look.facts[ROLE], None
        verdict = evaluate(facts)
        try:
            if verdict.action is Action.DISPATCH:
                made = attempt(look.site, facts, verdict, lambda: self._now(one.clone), StopFlag())
        except RemoteUnreachableError:
            pass
        assert one.lock is not None
        one.lock.release()
        one.lock, one.look = None, None
        one.won = made if isinstance(made, Won) else None

    def _close(self, one: Instance, won: Won, ending: str) -> None:
        if ending == "auth":
            finished = Finished(Status.AUTH, failed="auth: the key was refused")
        else:
            finished = self._finished(won.claim, ok=ending == "ok")
        now, registration = self._now(one.clone), won.dispatcher.registration
        result = settle(won.dispatcher.claimant, won.claim, registration, finished, now)
        if isinstance(result, Withdrawn):
            self.released[won.claim.sweep.slug] += 1
        else:
            closed = won.dispatcher._close(won.claim, finished, None)
            assert closed.closing is not None
            if ending != "auth":
                self.used[won.claim.dispatch_id] = won.claim.sweep.slug
        won.lock.release(remove=True)
        one.won, one.launched = None, False

    def _agent(self, dispatcher: Dispatcher, claimed: Claim) -> SweepResult:
        """Instead of `Dispatcher.run`, for whole ticks."""
        self._launch(claimed)
        result = dispatcher._close(claimed, self._finished(claimed, ok=True), None)
        self.used[claimed.dispatch_id] = claimed.sweep.slug
        return result

    def _finished(self, claimed: Claim, *, ok: bool) -> Finished:
        usage = Usage(tokens_of(claimed.dispatch_id), 1, 0.01, CostSource.REPORTED)
        return Finished(Status.OK, usage) if ok else Finished(Status.FAILED, usage, "failed: no")

    def _launch(self, claimed: Claim) -> None:
        self.launches[claimed.sweep.slug] += 1

    def _tick(self, clone: Path) -> Evaluation | None:
        where = self.world.settings(clone)
        try:
            return tick(where, lambda: self._now(clone), lock_wait_s=0.0)
        except OrchestratorError:
            return None

    @contextmanager
    def _unreachable(self) -> Iterator[None]:
        away = self.world.shared.with_name("away.git")
        self.world.shared.rename(away)
        try:
            yield
        finally:
            away.rename(self.world.shared)

    def _now(self, clone: Path) -> datetime:
        return self.world.now + (self.skew if clone == self.clones[1] else timedelta())

    # -- people and clocks -------------------------------------------------------------------------

    @precondition(lambda self: bool(self._branches()))
    @rule(
        what=st.sampled_from(["merge", "merge", "delete", "push", "reword", "restart"]),
        how=st.sampled_from(sorted(MERGES)),
        keep=st.booleans(),
        which=st.integers(0, 5),
    )
    def person(self, what: str, how: str, keep: bool, which: int) -> None:
        branches = sorted(self._branches().items())
        slug, tip = branches[which % len(branches)]
        if what == "merge":
            self._merge(slug, tip, how)
            if not keep:
                self._delete(slug, tip)
        elif what == "delete":
            self._delete(slug, tip)
        else:
            self._push(slug, tip, what)

    @rule(hours=st.sampled_from([1, 12, 24, 50]), policy=st.sampled_from([None, *POLICIES]))
    def time_passes(self, hours: int, policy: str | None) -> None:
        self.world.wait(hours=hours)
        if policy is not None:
            self._set_policy(policy)

    @rule(hours=st.sampled_from([-25, -3, 0, 3, 25]))
    def a_clock_is_set(self, hours: int) -> None:
        self.skew = timedelta(hours=hours)

    def _set_policy(self, policy: str) -> None:
        repos.commit_files(self.world.shared, {"orchestrator.yaml": POLICIES[policy]})

    def _merge(self, slug: str, tip: str, how: str) -> None:
        repo, main = repos.opened(self.world.shared), repos.tip(self.world.shared)
        ahead = repo.walk(tip)
        ahead.hide(main)
        commits = list(ahead)
        if not commits:
            return
        if how == "fast-forward" and not repo.descendant_of(tip, main):
            how = "squash"
        if how == "rebase" and any(len(c.parents) != 1 for c in commits):
            how = "merge"
        MERGES[how](self.world.shared, f"run/{slug}")

    def _delete(self, slug: str, tip: str) -> None:
        self.meddled.add(slug)
        if not self._is_merged(slug):
            self.released[slug] += 1
        repos.git(self.world.shared, "update-ref", "-d", HEADS + slug, tip)

    def _push(self, slug: str, tip: str, what: str) -> None:
        repo = repos.opened(self.world.shared)
        commit = repo[tip].peel(pygit2.Commit)
        main = repo[repos.tip(self.world.shared)].peel(pygit2.Commit)
        self.edits += 1
        files = {f"notes/{self.edits}.md": "Mine.\n"}
        if what == "push":
            tree, parents = repos.tree_with(repo, commit.tree, files, {}), [commit.id]
        elif what == "reword":
            tree, parents = commit.tree.id, list(commit.parent_ids)
        else:
            tree, parents = repos.tree_with(repo, main.tree, files, {}), [main.id]
        if what != "push":
            self.meddled.add(slug)
        oid = repos.store_commit(repo, tree, parents, f"A person's {what} {self.edits}")
        repos.git(self.world.shared, "update-ref", HEADS + slug, oid, tip)

    # -- looking -----------------------------------------------------------------------------------

    def _branches(self) -> dict[str, str]:
        found = repos.refs(self.world.shared).items()
        return {ref.removeprefix(HEADS): oid for ref, oid in found if ref.startswith(HEADS)}

    def _is_merged(self, slug: str) -> bool:
        repo = repos.opened(self.world.shared)
        main = repo.references["refs/heads/main"].peel(pygit2.Commit)
        if f"{RUNS_FOLDER}/{slug}/sweep.yaml" in main.tree:
            return True
        tip = self._branches().get(slug)
        return tip is not None and (tip == str(main.id) or repo.descendant_of(main.id, tip))

    def _open(self) -> list[str]:
        return [slug for slug in self._branches() if not self._is_merged(slug)]

    def _record(self) -> None:
        """Enter every closing commit that is on the remote now, as the people there saw it."""
        repo = repos.opened(self.world.shared)
        for tip in repos.refs(self.world.shared).values():
            for commit in repo.walk(tip):
                if str(commit.id) not in self.seen:
                    self.seen.add(str(commit.id))
                    self._enter(commit)

    def _enter(self, commit: pygit2.Commit) -> None:
        said = trailers(commit.message)
        if said.get("Sweep-Phase") != "closing" or "Dispatch-Id" not in said:
            return
        text = (commit.tree / f"{RUNS_FOLDER}/{said['Sweep']}/sweep.yaml").peel(pygit2.Blob).data
        line = next(x for x in text.decode().splitlines() if x.startswith("tokens_in: "))
        number = line.removeprefix("tokens_in: ")
        tokens = int(number) if number.isdigit() else None
        self.recorded.setdefault(said["Dispatch-Id"], set()).add(tokens)

    def _pinned(self) -> set[str]:
        """The dispatches whose closings are pinned in a clone."""
        found = set()
        for clone in self.clones:
            repo = repos.opened(clone)
            for ref, oid in repos.refs(clone).items():
                if ref.startswith("refs/orchestrator/closing/"):
                    message = repo[oid].peel(pygit2.Commit).message
                    found.add(trailers(message).get("Dispatch-Id", ""))
        return found

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def no_slug_is_launched_twice_unless_given_up(self) -> None:
        for slug, count in self.launches.items():
            assert count <= 1 + self.released[slug], (slug, count)

    @invariant()
    def one_launched_sweep_of_the_role_is_open_at_most(self) -> None:
        both = [s for s in self._open() if self.launches[s] and s not in self.meddled]
        assert len(both) <= 1, both

    @invariant()
    def no_usage_is_lost(self) -> None:
        self._record()
        pinned = self._pinned()
        for dispatch, slug in self.used.items():
            kept = tokens_of(dispatch) in self.recorded.get(dispatch, ())
            assert kept or dispatch in pinned, (slug, dispatch)

    def teardown(self) -> None:
        try:
            self._converge()
            self._go_on_from_there()
        finally:
            for one in self.instances:
                one.crash()
            self.patch.undo()
            self.folder.cleanup()

    def _converge(self) -> None:
        """Everybody crashes; then ordinary ticks put everything right."""
        for one in self.instances:
            one.crash()
        self.skew = timedelta()
        self.world.wait(days=3)
        for _ in range(PASSES):
            self.world.wait(minutes=15)
            said = [self._tick(clone) for clone in self.clones]
            assert all(e is not None and e.failure is None for e in said)
            if not any(e.mended for e in said if e is not None):
                break
        else:
            raise AssertionError([e.mended for e in said if e is not None])
        self.no_slug_is_launched_twice_unless_given_up()
        self.one_launched_sweep_of_the_role_is_open_at_most()
        self.no_usage_is_lost()
        assert self._pinned() == set()
        for clone in self.clones:
            kept = [r for r in repos.refs(clone) if r.startswith(("refs/heads/run", "refs/orch"))]
            assert kept == [], kept
        for path in (*self.clones, self.world.shared):
            assert repos.git(path, "fsck", "--no-dangling", "--connectivity-only") == ""

    def _go_on_from_there(self) -> None:
        """People settle what is open, and the next sweep starts."""
        for number, slug in enumerate(sorted(self._open())):
            tip = self._branches()[slug]
            if number % 2 or self.launches[slug] % 2:
                self._merge(slug, tip, "squash")
            if not self._is_merged(slug):  # also a branch that was forced, and has no marker now
                self._delete(slug, tip)
        self._set_policy("daily")
        self.world.wait(days=9)
        before = self.launches.copy()
        for clone in self.clones:
            self._tick(clone)
        today = SweepName.on(ROLE, self.world.now).slug
        assert self.launches - before == Counter([today])
        self.no_usage_is_lost()


Protocol.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=18,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)


TestProtocol = Protocol.TestCase
