"""Several processes that want to create the same ref at the same instant, round after round.

`by_pygit2` is the negative control: the obvious call, which lets two of them win now and then
(in up to 5 rounds of 100). A soak script can show it; a test cannot rely on it, and uses
`by_lock_alone` to know that the harness would notice.
"""

import multiprocessing
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pygit2

from orchestrator.git.reader import Reader
from orchestrator.git.writer import Writer
from orchestrator.model.names import Oid, Ref
from tests.support import repos

Attempt = Callable[[Ref, Oid], bool]
Creator = Callable[[str], Attempt]
"""Opens the repository at a path and gives a function that tries to create a ref."""

_HEAD_START_S = 0.0007


def by_writer(path: str) -> Attempt:
    writer = Writer(Reader.open(path, dict(os.environ)))
    return lambda ref, oid: writer.create_ref(ref, oid, "race")


def by_move(path: str) -> Attempt:
    """Moves a ref that was there before, from main's tip."""
    reader = Reader.open(path, dict(os.environ))
    writer = Writer(reader)
    tip = reader.resolve(Ref("refs/heads/main"))
    assert tip is not None
    base = tip

    def attempt(ref: Ref, oid: Oid) -> bool:
        writer.create_ref(ref, base, "start")
        return writer.move_ref(ref, oid, base, "race")

    return attempt


def by_git(path: str) -> Attempt:
    """What a person or another tool does."""

    def attempt(ref: Ref, oid: Oid) -> bool:
        argv = ["git", "-C", path, "update-ref", ref, oid, "0" * 40]
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    return attempt


def by_pygit2(path: str) -> Attempt:
    """The obvious call, which is not atomic."""
    repo = pygit2.Repository(path)

    def attempt(ref: Ref, oid: Oid) -> bool:
        try:
            repo.references.create(ref, pygit2.Oid(hex=oid))
        except (pygit2.GitError, ValueError, OSError):
            return False
        return True

    return attempt


def by_lock_alone(path: str) -> Attempt:
    """Takes the lock but does not look under it: wrong in about half of the rounds."""
    repo = pygit2.Repository(path)

    def attempt(ref: Ref, oid: Oid) -> bool:
        try:
            with repo.transaction() as transaction:
                transaction.lock_ref(ref)
                transaction.set_target(ref, oid, message="race")
        except pygit2.GitError:
            return False
        return True

    return attempt


@dataclass(frozen=True)
class RaceResult:
    """What came of the rounds.

    Attributes:
        winners: how many rounds had 0, 1, 2 … processes that were told they had won.
        overwritten: rounds in which a winner's commit is not where the ref points in the end.
    """

    winners: dict[int, int]
    overwritten: int


def race_to_create(path: Path, creators: Sequence[Creator], rounds: int) -> RaceResult:
    """Let one process per creator race for `rounds` refs, each with a commit of its own."""
    repos.make_repo(path, {"a": "a"})
    commits = [
        repos.commit_files(path, {"n": str(n)}, branch=f"own/{n}", start="main")
        for n in range(len(creators))
    ]
    context = multiprocessing.get_context("fork")
    barrier, instant = context.Barrier(len(creators)), context.Value("d", 0.0)
    results: Any = context.SimpleQueue()
    children = [
        context.Process(
            target=_race, args=(str(path), make, n, commits[n], rounds, barrier, instant, results)
        )
        for n, make in enumerate(creators)
    ]
    for child in children:
        child.start()
    won: dict[int, list[bool] | str] = dict(results.get() for _ in children)
    for child in children:
        child.join()
    broken = [words for words in won.values() if isinstance(words, str)]
    assert not broken, broken
    wins = {me: told for me, told in won.items() if not isinstance(told, str)}
    return _judge(path, wins, commits, rounds)


def _race(
    path: str,
    make: Creator,
    me: int,
    oid: Oid,
    rounds: int,
    barrier: Any,
    instant: Any,
    results: Any,
) -> None:
    try:
        attempt, wins = make(path), []
        for n in range(rounds):
            if barrier.wait(30) == 0:
                instant.value = time.monotonic() + _HEAD_START_S
            barrier.wait(30)
            while time.monotonic() < instant.value:
                pass
            wins.append(attempt(_ref(n), oid))
            barrier.wait(30)
        results.put((me, wins))
    except BaseException as error:
        barrier.abort()
        results.put((me, repr(error)))
        raise


def _ref(n: int) -> Ref:
    return Ref(f"refs/heads/run/race-{n:05d}")


def _judge(
    path: Path, won: dict[int, list[bool]], commits: Sequence[Oid], rounds: int
) -> RaceResult:
    final = repos.refs(path)
    winners: Counter[int] = Counter()
    overwritten = 0
    for n in range(rounds):
        told = [me for me, wins in won.items() if wins[n]]
        winners[len(told)] += 1
        overwritten += any(final.get(_ref(n)) != commits[me] for me in told)
    return RaceResult(dict(winners), overwritten)
