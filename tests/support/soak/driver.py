"""Rounds of a soak: instances tick at once, some are killed, connections drop, people review.

A round is a day (every second day, because clocks at midnight belong to two). What must hold:

    no role and slug is ever launched twice, unless a person gave the first one up
    of the open sweeps of a role at most one was launched
    a round without faults, clocks agreeing, launches exactly one sweep
    every agent that came to its end has its usage on the remote, or its tick was killed
    after the last round ordinary ticks put everything right: nothing is left for a person
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.support import repos
from tests.support.soak.arena import START, Arena, tokens_of
from tests.support.soak.people import People, lock_files, signed_locks
from tests.support.soak.ticking import Job, Kill, Ran, run_ticks, settle, still_running

_CONVERGE_PASSES = 5
_OLD_S = 3600.0


class Violation(Exception):  # noqa: N818 - what a soak looks for, not an error of its own
    """Something that must never be, was."""


@dataclass(frozen=True)
class Plan:
    """What to run. The seed fixes who ticks when and which faults come when (not the kernel's
    scheduling, so a violation may take a few runs of its seed to come back).
    """

    seed: int
    instances: int = 6
    rounds: int = 20
    kills: int = 10
    drops: int = 5
    edits: int = 4


@dataclass
class Tally:
    """What happened, for the table."""

    rounds: int = 0
    ticks: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    drops: int = 0
    edits: int = 0
    clean_rounds: int = 0
    midnight_rounds: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)
    per_slug: Counter[int] = field(default_factory=Counter)
    finished: int = 0
    interrupted: int = 0
    seconds: float = 0.0


class Soak:
    """Runs a plan in an arena; raises Violation at the first thing that must not be."""

    def __init__(
        self, arena: Arena, plan: Plan, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.arena, self.plan, self._say = arena, plan, say
        self.people = People(arena, random.Random(f"{plan.seed}-people"))
        self.tally = Tally()
        self._chance = random.Random(plan.seed)
        self._kill_rounds = Counter(self._chance.choices(range(plan.rounds), k=plan.kills))
        self._drop_rounds = Counter(self._chance.choices(range(plan.rounds), k=plan.drops))
        self._edit_rounds = set(self._chance.choices(range(plan.rounds), k=plan.edits))
        self._launched_by: dict[str, list[Ran]] = {}
        self._number = 0
        self._settled = True
        self._missed = 0  # kills that found nobody alive any more: the next round has them

    def run(self) -> Tally:
        """All rounds, then the settling, then every check."""
        started = time.monotonic()
        for number in range(self.plan.rounds):
            self._round(number)
            if number % 100 == 99:  # a sign of life
                self._say(f"  {number + 1} rounds, {time.monotonic() - started:.0f} s")
        self._converge(START + timedelta(days=2 * self.plan.rounds))
        self._check_usage()
        self._check_leftovers()
        self.tally.seconds = time.monotonic() - started
        return self.tally

    # -- a round -----------------------------------------------------------------------------------

    def _round(self, number: int) -> None:
        chance = random.Random(f"{self.plan.seed}-{number}")
        midnight = chance.random() < 0.3
        base = START + timedelta(days=2 * number, hours=12 if midnight else 0)
        spread = chance.choice((0.0, 0.05, 0.5))
        jobs = [
            self._job(base + timedelta(seconds=chance.randint(-3, 3)), chance, spread, i)
            for i in range(self.plan.instances)
        ]
        kills = [
            Kill(chance.uniform(0, 1.2), chance.choice(("alone", "tree")), chance.random() < 0.5)
            for _ in range(self._kill_rounds[number] + self._missed)
        ]
        self._arm(self._drop_rounds[number], chance)
        faults = bool(kills or self._drop_rounds[number])
        clean = self._settled and not faults and not any(self._open("scribe"))
        edit_at = chance.uniform(0.1, 1.0) if number in self._edit_rounds else None
        ran = self._ticks(jobs, kills, chance, edit_at)
        self.tally.rounds += 1
        self.tally.midnight_rounds += midnight
        self._disarm()
        self._missed = len(kills) - sum(r.killed is not None for r in ran)
        if kills:
            self._settle()
        self._check_launches(number)
        if clean and not midnight:
            self.tally.clean_rounds += 1
            slugs = [s for r in ran for s in r.launched if s.startswith("scribe-")]
            if len(slugs) != 1:
                self._fail(f"round {number}: no fault, but launched {slugs or 'nothing'}", ran)
        stuck = [s.slug for s in self.people.sweeps() if not s.closed]
        # A claim that is withdrawn at midnight stays where a person has built on it at once.
        if stuck and self._settled and not faults and edit_at is None:
            self._fail(f"round {number}: no fault, but left in flight: {stuck}", ran)
        self._settled = not faults and not stuck
        if self.people.overwritten:
            self._fail(f"round {number}: overwritten usage: {self.people.overwritten}", ran)
        self.people.review()

    def _job(self, now: datetime, chance: random.Random, spread: float, instance: int) -> Job:
        self._number += 1
        clones = self.arena.clones
        patience = 0.05 if instance >= len(clones) and chance.random() < 0.3 else 30.0
        clone = clones[instance % len(clones)]
        return Job(self._number, clone, now, chance.uniform(0, spread), patience)

    def _ticks(
        self,
        jobs: Sequence[Job],
        kills: Sequence[Kill],
        chance: random.Random,
        edit_at: float | None,
    ) -> list[Ran]:
        edits = [edit_at] if edit_at is not None else []

        def meanwhile(passed: float) -> None:
            if edits and passed >= edits[0] and self.people.push_to_one():
                edits.pop()
                self.tally.edits += 1

        ran = run_ticks(self.arena, jobs, kills=kills, chance=chance, meanwhile=meanwhile)
        for one in ran:
            self._count(one)
        return ran

    def _count(self, one: Ran) -> None:
        self.tally.ticks += 1
        if one.killed is not None:
            self.tally.kills[one.killed] += 1
        if one.crash is not None:
            self._fail("a tick crashed", [one])
        if one.error is not None:
            self.tally.errors[one.error] += 1
        self.tally.codes.update(one.codes.values())
        self.tally.mended.update(_kind(sentence) for sentence in one.mended)
        for slug in one.launched:
            self._launched_by.setdefault(slug, []).append(one)

    def _arm(self, count: int, chance: random.Random) -> None:
        for _ in range(count):
            if self.arena.dropper is not None:
                if chance.random() < 0.5:
                    self.arena.drop_flag.touch()
                else:
                    self.arena.dropper.arm(chance.choice(("before", "after")))

    def _disarm(self) -> None:
        if self.arena.dropper is not None:
            self.tally.drops += self.arena.dropper.dropped()
            self.tally.drops += self._flag_was_used()

    def _flag_was_used(self) -> bool:
        if self.arena.drop_flag.exists():
            self.arena.drop_flag.unlink()
            return False
        return bool(self._drop_rounds[self.tally.rounds - 1])

    def _open(self, role: str) -> list[str]:
        return [s.slug for s in self.people.sweeps() if s.role == role and not s.merged]

    def _settle(self) -> None:
        left = settle(self.arena)
        if left:
            self._fail(f"processes were left running: {left}")
        # The next round is two days later; so are the files that were left, once nobody has them.
        for clone in self.arena.clones:
            for path in (*lock_files(clone), *signed_locks(clone)):
                old = time.time() - _OLD_S
                os.utime(path, (old, old), follow_symlinks=False)

    # -- what must hold ----------------------------------------------------------------------------

    def _check_launches(self, number: int) -> None:
        begun = Counter(a.slug for a in self.arena.agent_lines() if a.what == "begin")
        released = self.people.released
        for slug, count in begun.items():
            if count > 1 + released.get(slug, 0):
                who = self._launched_by.get(slug, [])
                self._fail(f"round {number}: {slug} was launched {count} times", who)
        if self.people.overwritten:
            self._fail(f"round {number}: overwritten usage: {self.people.overwritten}")
        for role in ("scribe", "tester"):
            both = [slug for slug in self._open(role) if slug in begun]
            if len(both) > 1:
                self._fail(f"round {number}: launched and open at once: {both}")

    def _check_usage(self) -> None:
        for line in self.arena.agent_lines():
            if line.what != "end":
                continue
            self.tally.finished += 1
            closings = self.people.ledger.get(line.dispatch_id, [])
            if any(c.tokens_in == tokens_of(line.dispatch_id) for c in closings):
                continue
            by = self._launched_by.get(line.slug, [])
            killed = any(r.killed is not None for r in by)
            said = any((c.failed or "").startswith(("interrupted", "abandoned")) for c in closings)
            given_up = line.slug in self.people.released or line.slug in self.people.early
            if not killed or not (said or given_up):
                self._fail(f"the usage of {line.slug} is lost; its closings: {closings}", by)
            self.tally.interrupted += 1
        begun = Counter(a.slug for a in self.arena.agent_lines() if a.what == "begin")
        self.tally.per_slug = Counter(begun.values())

    def _converge(self, now: datetime) -> None:
        """Ordinary ticks, one after the other, until nothing is left to put right."""
        self._settle()
        for _ in range(_CONVERGE_PASSES):
            now += timedelta(minutes=15)
            ran = []
            for index in range(len(self.arena.clones)):
                job = self._job(now, self._chance, 0.0, index)
                ran += self._ticks([job], (), self._chance, None)
            self._check_launches(self.plan.rounds)
            self.people.sweeps()
            if not any(r.mended or r.error for r in ran):
                break
        else:
            self._fail(f"not settled after {_CONVERGE_PASSES} passes", ran)
        if stuck := [s for s in self.people.sweeps() if not s.closed and not s.merged]:
            self._fail(f"in flight with nobody at work: {[s.slug for s in stuck]}", ran)
        self.people.review(thorough=True)
        now += timedelta(days=12)
        ran = [
            r
            for i in range(len(self.arena.clones))
            for r in self._ticks([self._job(now, self._chance, 0.0, i)], (), self._chance, None)
        ]
        slugs = Counter(s[:-11] for r in ran for s in r.launched)
        if slugs != {"scribe": 1, "tester": 1}:
            self._fail(f"12 days after the last review, launched: {dict(slugs)}", ran)
        self.people.review(thorough=True)

    def _check_leftovers(self) -> None:
        if left := still_running(self.arena):
            self._fail(f"processes are left: {left}")
        for place in (self.arena.shared, *self.arena.clones):
            if locks := lock_files(place):
                self._fail(f"lock files are left in {place}: {locks}")
            if signed := signed_locks(place):
                self._fail(f"signed locks are left in {place}: {signed}")
            ours = [r for r in repos.refs(place) if r.startswith("refs/orchestrator/")]
            if ours:
                self._fail(f"pinned commits are left in {place}: {ours}")
            local = [r for r in repos.refs(place) if r.startswith("refs/heads/run/")]
            if local and place != self.arena.shared:
                self._fail(f"local branches are left in {place}: {local}")
            repos.git(place, "fsck", "--no-dangling", "--no-progress", "--connectivity-only")
        folders = list(self.arena.work.iterdir()) if self.arena.work.exists() else []
        if folders:
            self._fail(f"working copies are left: {[p.name for p in folders]}")

    def _fail(self, words: str, ran: Sequence[Ran] = ()) -> None:
        lines = [f"seed {self.plan.seed}: {words}", *(f"  {r}" for r in ran)]
        raise Violation("\n".join(lines))


def _kind(sentence: str) -> str:
    for kind in ("interrupted", "abandoned", "dropped", "withdrew", "published", "stale lock"):
        if kind in sentence:
            return kind
    return sentence


def table(plan: Plan, tally: Tally) -> str:
    """The figures of one soak, as text."""
    histogram = ", ".join(f"{n}: {c}" for n, c in sorted(tally.per_slug.items()))
    rows = [
        ("rounds", str(tally.rounds)),
        ("without any fault", f"{tally.clean_rounds}, each launched exactly one"),
        ("at midnight", str(tally.midnight_rounds)),
        ("ticks", f"{tally.ticks} of {plan.instances} instances, {tally.seconds:.0f} s"),
        ("kills", _counted(tally.kills)),
        ("dropped connections", str(tally.drops)),
        ("people's pushes meanwhile", str(tally.edits)),
        ("dispatches a role and day", f"{histogram} (never 2)" if histogram else "none"),
        ("agents that finished", f"{tally.finished}, usage lost to a kill {tally.interrupted}"),
        ("outcomes", _counted(tally.codes)),
        ("errors (exit 3)", _counted(tally.errors)),
        ("mended", _counted(tally.mended)),
    ]
    return "\n".join(f"  {name:<26} {value}" for name, value in rows)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{n} {c}" for n, c in sorted(counter.items())) or "0"


def root_of(base: Path, name: str) -> Path:
    """A fresh folder for one soak."""
    path = base / name
    path.mkdir(parents=True)
    return path
