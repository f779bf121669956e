"""Negative controls: the same ticks with one safeguard taken out must show double winners.

Both meet at a gate just before the step that decides, so that what is rare by chance is frequent
here; `guarded` is the first control again with the safeguard back in, through the same gate.
"""

import mmap
import os
import random
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pygit2

from orchestrator import attempt, claim, tick
from orchestrator.claim import Claim
from orchestrator.dispatch import Dispatcher
from orchestrator.git.refwriter import RefWriter
from orchestrator.git.wire import Remote
from orchestrator.model.names import Oid, Ref
from orchestrator.model.status import Status
from orchestrator.outcome import SweepResult
from tests.support import repos
from tests.support.soak.arena import START, Arena, arena
from tests.support.soak.ticking import Job, Sabotage, run_ticks

_PROCESSES = 3
_ROLES = 2
_PACKED = 30_000
"""Other branches: libgit2 goes through them between its look and its lock."""
_ROUNDS = 400
_GATE_S = 0.2
_POLICY = "schedules:\n" + "".join(f"  r{n}: {{every: 1h}}\n" for n in range(_ROLES))
_POLICY += "roles:\n" + "".join(
    f"  r{n}: {{adapter: command, command: [tools/agent.sh], estimate_usd: 0}}\n"
    for n in range(_ROLES)
)
"""Many roles that are due at once: many races a round."""


class Found(NamedTuple):
    """What a control showed: how many launched each slug; it stops at the first double.

    Attributes:
        races: how many slugs somebody won.
        doubles: how many somebody else won as well.
    """

    races: int
    doubles: int
    histogram: str

    @property
    def caught(self) -> bool:
        return self.doubles > 0

    def __str__(self) -> str:
        said = "double winners, as it must" if self.caught else "NO DOUBLE WINNER: proves nothing"
        return f"{self.doubles} in {self.races} races ({said}); dispatches: {self.histogram}"


def naive_refs(root: Path, rounds: int = _ROUNDS) -> Found:
    """One repository, and `references.create` in the place of the locked transaction."""
    with arena(root, clones=1, transports=("file",), alone=True, policy=_POLICY) as made:
        return _race(made, rounds, _Gate(), _naive)


def guarded(root: Path, rounds: int = 15) -> Found:
    """`naive_refs` with the locked transaction: the gate alone must not make doubles."""
    with arena(root, clones=1, transports=("file",), alone=True, policy=_POLICY) as made:
        return _race(made, rounds, _Gate(), lambda gate, number: gate.before_refs(number))


def same_intent(root: Path, rounds: int = _ROUNDS) -> Found:
    """Clones of one remote that all make the identical intent commit."""
    with arena(root, clones=_PROCESSES, transports=("file",), policy=_POLICY) as made:
        return _race(made, rounds, _Gate(), _identical)


class _Gate:
    """Where the processes of a round wait for each other: one byte each, in shared memory."""

    def __init__(self) -> None:
        self._here = mmap.mmap(-1, _PROCESSES * _ROLES)

    def clear(self) -> None:
        self._here[:] = bytes(_PROCESSES * _ROLES)

    def meet(self, number: int, ref: Ref) -> None:
        """Wait until all are here that want this ref, or for a moment, whichever is shorter."""
        start = int(ref.removeprefix("refs/heads/run/r").partition("-")[0]) * _PROCESSES
        self._here[start + number % _PROCESSES] = 1
        deadline = time.monotonic() + _GATE_S
        while 0 in self._here[start : start + _PROCESSES] and time.monotonic() < deadline:
            pass

    def before_refs(self, number: int) -> None:
        real = RefWriter.create_ref

        def create(writer: RefWriter, ref: Ref, oid: Oid, reason: str) -> bool:
            self.meet(number, ref)
            return real(writer, ref, oid, reason)

        _put(RefWriter, "create_ref", create)


def _naive(gate: _Gate, number: int) -> None:
    def create(writer: RefWriter, ref: Ref, oid: Oid, reason: str) -> bool:
        repository = writer._repository
        gate.meet(number, ref)
        try:
            repository.references.create(ref, pygit2.Oid(hex=oid))
        except (pygit2.AlreadyExistsError, pygit2.GitError, ValueError):
            return False
        return True

    _put(RefWriter, "create_ref", create)


def _identical(gate: _Gate, number: int) -> None:
    _put(attempt, "uuid4", lambda: "00000000-0000-4000-8000-000000000000")
    _put(claim, "instance_name", lambda _: "same:000000")
    real = Remote.create

    def create(remote: Remote, oid: Oid, ref: Ref) -> object:
        gate.meet(number, ref)
        return real(remote, oid, ref)

    _put(Remote, "create", create)


def _race(made: Arena, rounds: int, gate: _Gate, change: Any) -> Found:
    """Rounds of ticks that launch nothing but write down that they would have."""
    won: Counter[str] = Counter()
    sabotage = _sabotage(gate, change)
    repos.pack_many_refs(made.clones[0], _PACKED, repos.tip(made.clones[0]))
    for number in range(rounds):
        gate.clear()
        now = START + timedelta(days=number)
        jobs = [Job(i, made.clones[i % len(made.clones)], now) for i in range(_PROCESSES)]
        run_ticks(made, jobs, sabotage=sabotage, chance=random.Random(number))
        _forget(made)
        won = Counter(line.slug for line in made.agent_lines())
        if any(count > 1 for count in won.values()):
            break
    histogram = Counter(won.values())
    doubles = sum(c for n, c in histogram.items() if n > 1)
    said = ", ".join(f"{n}: {c}" for n, c in sorted(histogram.items()))
    return Found(sum(histogram.values()), doubles, said)


def _sabotage(gate: _Gate, change: Any) -> Sabotage:
    def sabotage(made: Arena, number: int) -> None:
        # The clone's locks would hide what the refs do: here everybody has a lock of their own.
        private = str(made.root / "locks" / f"{os.getpid()}.lock")
        _put(tick, "clone_lock_path", lambda _: private)
        _put(attempt, "sweep_lock_path", lambda _common, slug: f"{private}-{slug}")
        _put(tick, "is_anything_left", lambda _: False)
        _put(Dispatcher, "run", _would_launch(made))
        change(gate, number)

    return sabotage


def _would_launch(made: Arena) -> Any:
    def run(_: Dispatcher, claimed: Claim) -> SweepResult:
        handle = os.open(made.agent_log, os.O_WRONLY | os.O_APPEND)
        line = f"begin {claimed.sweep.slug} {claimed.dispatch_id} {os.getpid()}\n"
        os.write(handle, line.encode())
        return SweepResult(claimed.sweep, claimed.intent, None, Status.OK)

    return run


def _forget(made: Arena) -> None:
    """The next round starts from nothing."""
    for place in {made.shared, *made.clones}:
        for ref in repos.refs(place):
            if "/run/" in ref:
                repos.git(place, "update-ref", "-d", ref)


def _put(owner: Any, name: str, value: object) -> None:
    """Replace a part of the product, in this child only."""
    setattr(owner, name, value)
