"""A disk that is full at any moment of a dispatch, and what must be on disk before the next step.

The faults are the kernel's own answers, put in by strace: see `tests.support.strace`.
"""

import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import repos, strace
from tests.support.strace import Call
from tests.support.world import START
from tests.test_crash import BRANCH, ROOT, Scene, check_invariants, copy_of, template

pytestmark = pytest.mark.long
Ended = subprocess.CompletedProcess[str]

SEED = 20261130
POINTS = 12
WORKERS = 2
SLUG = BRANCH.removeprefix("run/")
NEVER_OPENED = (
    "orchestrator/tick.lock",
    f"orchestrator/running/{SLUG}.lock",
    f"refs/heads/{BRANCH}.lock",
    f"refs/orchestrator/closing/{SLUG}.lock",
)
"""Files a dispatch makes, below the repository's own folder; on a full disk it cannot."""


def tick_under(scene: Scene, strace_: Sequence[str], path: str = os.environ["PATH"]) -> Ended:
    """One real tick, by the command line, beneath strace."""
    environ = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(scene.root),
        "XDG_CACHE_HOME": str(scene.root / "cache"),
    }
    at = [sys.executable, str(ROOT / "scripts" / "_at.py"), START.isoformat()]
    return subprocess.run(
        [*strace_, *at, "tick", "-C", str(scene.home)],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def recorded(scene: Scene) -> list[Call]:
    """The calls of a tick on which nothing goes wrong."""
    out = scene.root / "calls"
    done = tick_under(scene, strace.recorded(out))
    assert done.returncode == 0, done.stdout + done.stderr
    return strace.read(out)


def check_on_full_disk(scene: Scene, done: Ended, name: str) -> None:
    """What the tick left while there is no room."""
    said = f"{name}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode in (0, 1, 3), said
    assert "Traceback" not in done.stderr, said
    assert "this is a bug" not in done.stderr, said
    for path in (scene.home, scene.shared):
        assert repos.git(path, "fsck", "--connectivity-only", "--no-dangling") == "", said
    check_no_launch_without_intent(scene, said)


def check_no_launch_without_intent(scene: Scene, said: str) -> None:
    launched = {line.split()[1] for line in scene.log("start")}
    if launched:
        messages = repos.git(scene.shared, "log", "--format=%B", f"main..{BRANCH}")
        intents = [m for m in messages.split("Sweep: ") if "Sweep-Phase: intent" in m]
        on_branch = set(re.findall(r"Dispatch-Id: (\S+)", "\n".join(intents)))
        assert launched == on_branch, said


def sampled(count: int, sample: int) -> list[int]:
    """Points spread over a range, one out of each part of it, by a fixed seed."""
    chance = random.Random(SEED)
    edges = [count * n // sample for n in range(sample + 1)]
    return [chance.randrange(a, b) for a, b in pairwise(edges) if a < b]


@pytest.mark.parametrize("remote", [False, True], ids=["alone", "remote"])
def test_a_disk_that_is_full_from_any_moment_of_a_dispatch_on_costs_nothing_but_time(
    remote: bool, tmp_path: Path
) -> None:
    start = template(tmp_path / "template", remote=remote)
    moments = strace.moments(recorded(copy_of(start, tmp_path / "record")))
    assert len(moments) > 100

    def one(number: int) -> int:
        moment = moments[number]
        scene = copy_of(start, tmp_path / f"at-{number}")
        shim = moment.shim(scene.root / "bin")
        done = tick_under(scene, moment.full(), f"{shim}:{os.environ['PATH']}")
        name = f"full from call {number} on: {moment.call.name}({moment.call.arguments[:100]})"
        check_on_full_disk(scene, done, name)
        check_invariants(scene, name)  # there is room again
        check_no_launch_without_intent(scene, name)
        return done.returncode

    with ThreadPoolExecutor(WORKERS) as pool:
        codes = list(pool.map(one, sampled(len(moments), POINTS)))
    # Which of 1 and 3 depends on where the sample falls; a machine's own calls move it.
    assert any(codes), "the faults were not put in"


@pytest.mark.parametrize("remote", [False, True], ids=["alone", "remote"])
def test_a_file_there_is_no_room_to_create_costs_nothing_but_time(
    remote: bool, tmp_path: Path
) -> None:
    start = template(tmp_path / "template", remote=remote)

    def one(number: int) -> None:
        scene = copy_of(start, tmp_path / f"file-{number}")
        name = f"no room for {NEVER_OPENED[number]}"
        done = tick_under(scene, strace.unopenable([scene.home / ".git" / NEVER_OPENED[number]]))
        check_on_full_disk(scene, done, name)
        check_invariants(scene, name)
        check_no_launch_without_intent(scene, name)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(len(NEVER_OPENED))))


# -- what is on disk before what -----------------------------------------------------------------


class Order:
    """When each file of a recorded run was safe: synced under one name, then given its own."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = calls
        synced, self.safe = dict[str, int](), dict[str, int]()
        for index, call in enumerate(calls):
            if call.result != "0":
                continue
            paths = re.findall(r'"((?:[^"\\]|\\.)*)"', call.arguments)
            if call.name in ("fsync", "fdatasync"):
                synced[call.arguments.partition("<")[2].rstrip(">")] = index
            elif call.name.startswith(("link", "rename")) and paths[0] in synced:
                self.safe.setdefault(paths[1], index)
        self.synced = synced

    def first(self, *words: str) -> int:
        """When a program with these words in its command line was first started."""
        return self.all_of(*words)[0]

    def all_of(self, *words: str) -> list[int]:
        return [
            index
            for index, call in enumerate(self.calls)
            if call.name == "execve" and call.result == "0"
            if all(word in call.arguments for word in words)
        ]

    def synced_once(self, folder: Path) -> int:
        """When the names in a folder were first safe."""
        wanted = f"<{folder}>"
        return next(
            i
            for i, c in enumerate(self.calls)
            if c.name == "fsync" and c.result == "0" and c.arguments.endswith(wanted)
        )

    def check(self, before: int, git_dir: Path, objects: Sequence[str], *refs: str) -> None:
        """Objects and refs of this repository were safe before that call."""
        paths = [f"objects/{oid[:2]}/{oid[2:]}" for oid in objects]
        assert paths
        for path in (*paths, *refs):
            at = self.safe.get(str(git_dir / path))
            assert at is not None, f"{path} was never synced"
            assert at < before, f"{path} was synced too late"


def new_objects(scene: Scene, what: str, known: str) -> list[str]:
    listed = repos.git(scene.shared, "rev-list", "--objects", what, f"^{known}")
    return [line.split()[0] for line in listed.splitlines()]


@pytest.mark.parametrize("remote", [False, True], ids=["alone", "remote"])
def test_what_a_power_cut_must_not_take_is_synced_before_the_next_step(
    remote: bool, tmp_path: Path
) -> None:
    scene = template(tmp_path / "here", remote=remote)
    calls = recorded(scene)
    order, git_dir = Order(calls), scene.home / ".git"
    intent = repos.git(scene.shared, "rev-list", "--reverse", f"main..{BRANCH}").split()[0]
    agent = order.first("/tree/scripts/agent")

    claimed = () if remote else (f"refs/heads/{BRANCH}",)  # a remote's ref is the server's to sync
    order.check(agent, git_dir, new_objects(scene, intent, "main"), *claimed)
    lock = str(git_dir / "orchestrator" / "running" / f"{SLUG}.lock")
    signed = [i for i, c in enumerate(calls) if c.name == "pwrite64" and lock in c.arguments]
    synced = [i for i, c in enumerate(calls) if c.name == "fsync" and lock in c.arguments]
    assert len(signed) == 2  # that it claims, that it launches
    assert signed[0] < synced[0] < signed[1] < synced[1] < agent
    folders = (git_dir / "orchestrator" / "running", git_dir / "orchestrator", git_dir)
    assert all(order.synced_once(folder) < signed[1] for folder in folders)  # the lock's name
    if remote:
        push = order.first('"push"', f"{intent}:refs/heads/{BRANCH}")
        assert synced[0] < push
        assert all(order.synced_once(folder) < push for folder in folders)
        order.check(push, git_dir, new_objects(scene, intent, "main"))

    closing = repos.tip(scene.shared, BRANCH)
    pinned = f"refs/orchestrator/closing/{SLUG}"
    if remote:
        landed = order.first('"push"', f"{closing}:refs/heads/{BRANCH}")
    else:
        landed = _moved(calls, git_dir / f"refs/heads/{BRANCH}")
    order.check(landed, git_dir, new_objects(scene, closing, intent), pinned)


def _moved(calls: Sequence[Call], ref: Path) -> int:
    """When a branch that was there already was replaced."""
    return next(
        i
        for i, c in enumerate(calls)
        if c.name.startswith("rename") and c.arguments.endswith(f'"{ref}"')
    )
