"""Ticks as processes: forked from a driver that has everything imported, each its own session.

That saves the start of an interpreter a tick, so that thousands are affordable; what runs in the
child is the product's own `tick`. Killing one is SIGKILL, either of the tick alone (its git
children live on, as after a crash) or of it and everything below it (as when a machine stops).
"""

import json
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from orchestrator.errors import OrchestratorError
from orchestrator.outcome import Evaluation, Event
from orchestrator.tick import tick
from tests.support.soak.arena import Arena

# What only some ticks need is imported here once, not in every child.
for _name in ("attempt", "launch", "recover", "orphans", "adapters.process", "git.workcopy"):
    import_module(f"orchestrator.{_name}")

KillKind = Literal["alone", "tree"]
_TICK_LIMIT_S = 120.0
_POLL_S = 0.003
_SERVER_SIDE = (b"receive-pack", b"upload-pack", b"http-backend", b"sshd")

Sabotage = Callable[[Arena, int], None]
"""Run in the child before its tick: makes a negative control of it."""


@dataclass(frozen=True)
class Job:
    """One tick to start: where, with which clock, how long after the others, how patient."""

    number: int
    clone: Path
    now: datetime
    delay_s: float = 0.0
    lock_wait_s: float = 30.0


@dataclass
class Ran:
    """What became of one tick.

    Attributes:
        launched: the slugs whose agents it launched.
        codes: each role's code at its end; empty when it did not come to one.
        error: the error it ended with, by class, or None.
        crash: a traceback, when something unforeseen was raised.
    """

    job: Job
    killed: KillKind | None = None
    launched: list[str] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    mended: list[str] = field(default_factory=list)
    error: str | None = None
    words: str = ""
    crash: str | None = None


@dataclass(frozen=True)
class Kill:
    """Kill a tick that is alive `after_s` seconds after the start; or, `aimed`, one that launched
    an agent, so many seconds after it did.
    """

    after_s: float
    kind: KillKind
    aimed: bool = False


def run_ticks(
    arena: Arena,
    jobs: Sequence[Job],
    *,
    kills: Sequence[Kill] = (),
    chance: random.Random | None = None,
    meanwhile: Callable[[float], None] = lambda _: None,
    sabotage: Sabotage | None = None,
) -> list[Ran]:
    """Run these ticks at once and wait for all; `meanwhile` is called with the seconds passed."""
    notes = arena.root / "notes"
    notes.write_bytes(b"")
    started = time.monotonic() + 0.02
    alive = {_fork(arena, job, notes, started, sabotage): Ran(job) for job in jobs}
    everything = dict(alive)
    killer = _Killer(kills, chance or random.Random(0), notes)
    while alive:
        passed = time.monotonic() - started
        meanwhile(passed)
        killer.look(passed, alive)
        for pid in list(alive):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del alive[pid]
        if passed > _TICK_LIMIT_S:
            for pid in alive:
                _kill(pid, "tree")
            raise AssertionError(f"a tick took longer than {_TICK_LIMIT_S:g} s")
        time.sleep(_POLL_S)
    return _read_notes(notes, list(everything.values()))


class _Killer:
    """Who is killed when, while ticks run."""

    def __init__(self, kills: Sequence[Kill], chance: random.Random, notes: Path) -> None:
        self._blind = sorted((k for k in kills if not k.aimed), key=lambda k: k.after_s)
        self._aimed = [k for k in kills if k.aimed]
        self._due: list[tuple[float, int, Kill]] = []
        self._chance = chance
        self._notes = notes
        self._size = 0
        self._launched: set[int] = set()

    def look(self, passed: float, alive: dict[int, Ran]) -> None:
        while self._blind and passed >= self._blind[0].after_s:
            kill = self._blind.pop(0)
            victims = sorted(pid for pid, one in alive.items() if one.killed is None)
            if victims:
                self._strike(self._chance.choice(victims), kill, alive)
        if self._aimed and self._notes.stat().st_size != self._size:
            self._aim(passed, alive)
        for due in [d for d in self._due if passed >= d[0]]:
            self._due.remove(due)
            if due[1] in alive:
                self._strike(due[1], due[2], alive)

    def _aim(self, passed: float, alive: dict[int, Ran]) -> None:
        text = self._notes.read_text()
        self._size = len(text)
        said = [json.loads(line) for line in text.splitlines() if '"launch"' in line]
        for number in {s["tick"] for s in said} - self._launched:
            self._launched.add(number)
            pid = next((p for p, one in alive.items() if one.job.number == number), None)
            if pid is not None and self._aimed:
                kill = self._aimed.pop()
                self._due.append((passed + kill.after_s, pid, kill))

    def _strike(self, pid: int, kill: Kill, alive: dict[int, Ran]) -> None:
        if alive[pid].killed is None:
            alive[pid].killed = kill.kind
            _kill(pid, kill.kind)


def _fork(arena: Arena, job: Job, notes: Path, start: float, sabotage: Sabotage | None) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        time.sleep(max(0.0, start + job.delay_s - time.monotonic()))
        code = _child(arena, job, notes, sabotage)
    finally:
        os._exit(code)


def _child(arena: Arena, job: Job, notes: Path, sabotage: Sabotage | None) -> int:
    handle = os.open(notes, os.O_WRONLY | os.O_APPEND)

    def note(kind: str, **what: object) -> None:
        os.write(handle, json.dumps({"tick": job.number, "kind": kind, **what}).encode() + b"\n")

    def event(said: Event) -> None:
        note("launch", slug=said.sweep.slug)

    try:
        if sabotage is not None:
            sabotage(arena, job.number)
        seen = tick(
            arena.settings(job.clone),
            lambda: job.now,
            lock_wait_s=job.lock_wait_s,
            on_event=event,
        )
        note("end", **_summary(seen))
    except OrchestratorError as error:
        note("error", error=type(error).__name__, words=f"{error.message} ({error.hint})")
    except BaseException:  # noqa: BLE001 - a crash is what is looked for
        note("crash", crash=traceback.format_exc())
    return 0


def _summary(seen: Evaluation) -> dict[str, object]:
    failure = seen.failure
    return {
        "codes": {o.verdict.role: _code(o) for o in seen.outcomes},
        "mended": list(seen.mended),
        "error": type(failure).__name__ if failure is not None else None,
        "words": " | ".join(
            [o.verdict.reason for o in seen.outcomes if o.verdict.code.value == "refused"]
            + [f"{failure.message} ({failure.hint})" if failure is not None else ""]
        ),
    }


def _code(outcome: Any) -> str:
    return str(outcome.verdict.code.value)


def _read_notes(notes: Path, ran: list[Ran]) -> list[Ran]:
    by_number = {r.job.number: r for r in ran}
    for line in notes.read_text().splitlines():
        said = json.loads(line)
        one = by_number[said.pop("tick")]
        kind = said.pop("kind")
        if kind == "launch":
            one.launched.append(said["slug"])
            continue
        for key, value in said.items():
            setattr(one, key, value)
    for one in ran:
        if one.killed is None and not one.codes and one.error is None and one.crash is None:
            one.crash = "it ended without a word"
    return ran


def _kill(pid: int, kind: KillKind) -> None:
    """SIGKILL, with the descendants if asked. Servers are other machines: they are spared."""
    victims = [pid]
    if kind == "tree":
        os.kill(pid, signal.SIGSTOP)  # it must not start more while we look
        victims += _below(pid)
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _below(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [root]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if not any(word in _read(pid, "cmdline") for word in _SERVER_SIDE):
                found.append(pid)
                todo.append(pid)
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _read(int(name), "stat")
            if stat:
                yield int(name), int(stat.rpartition(b")")[2].split()[1])


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def still_running(arena: Arena) -> list[int]:
    """Processes that work for this soak's ticks: agents, and what was started in a clone."""
    mark, here = b"ORCHESTRATOR_DISPATCH=", os.fsencode(arena.root)
    found = []
    for pid, _ in _parents():
        environ = _read(pid, "environ")
        ours = mark in environ and here in environ + _cwd(pid)
        if ours or b"--git-dir=" + here in _read(pid, "cmdline"):
            found.append(pid)
    return found


def _cwd(pid: int) -> bytes:
    try:
        return os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return b""


def settle(arena: Arena, limit_s: float = 20.0) -> list[int]:
    """Wait until what killed ticks left has ended; what has not."""
    deadline = time.monotonic() + limit_s
    while (left := still_running(arena)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left
