"""Killed before and after every step of a dispatch, and of what mends it: the promise holds."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import repos
from tests.support.world import FILES, START, World

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
AGENT = """#!/bin/sh
cat > /dev/null
echo "start $ORCHESTRATOR_DISPATCH" >> "$TMPDIR/agent.log"
mkdir -p docs
echo "A sentence." >> docs/guide.md
echo "end $ORCHESTRATOR_DISPATCH" >> "$TMPDIR/agent.log"
echo '{"status": "ok", "tokens_in": 11, "tokens_out": 2, "cost_usd": 0.5}'
"""
POLICY = """schedules:
  scout:
    every: 1d
roles:
  scout:
    adapter: command
    command: [scripts/agent]
    writes: ["docs/**"]
"""
BRANCH = "run/scout-2026-11-30"
WORKERS = 2


@dataclass(frozen=True)
class Scene:
    """One copy of the world, in which one tick is killed."""

    root: Path
    remote: bool

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def shared(self) -> Path:
        return self.root / "upstream.git" if self.remote else self.home

    def tick(self, step: int = 0) -> subprocess.CompletedProcess[str]:
        environ = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "TMPDIR": str(self.root),
            "XDG_CACHE_HOME": str(self.root / "cache"),
        }
        command = [sys.executable, "-m", "tests.support.crash", str(self.home), START.isoformat()]
        return subprocess.run(
            [*command, str(step)], env=environ, capture_output=True, text=True, check=False
        )

    def log(self, word: str) -> list[str]:
        path = self.root / "agent.log"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(word)]


def template(root: Path, *, remote: bool) -> Scene:
    files = {**FILES, "orchestrator.yaml": POLICY}
    world = World.with_remote(root, files) if remote else World.alone(root, files)
    repos.commit_files(world.shared, {"scripts/agent": AGENT}, modes={"scripts/agent": 0o100755})
    repos.git(world.home, "config", "orchestrator.allowCommand", "scripts/agent")
    repos.git(world.home, "config", "orchestrator.instance", "this-one")
    return Scene(root, remote)


def copy_of(scene: Scene, root: Path) -> Scene:
    shutil.copytree(scene.root, root, symlinks=True)
    config = root / "home" / ".git" / "config"
    config.write_text(config.read_text("utf-8").replace(str(scene.root), str(root)), "utf-8")
    # A copied clone is nobody's proof that its runs ended; here the copy shall be the clone itself.
    for lock in (root / "home" / ".git" / "orchestrator" / "running").glob("*.lock"):
        words = lock.read_text("utf-8").split(" ")
        lock.write_text(" ".join([*words[:2], f"{lock.stat().st_ino}\n"]), "utf-8")
    return Scene(root, scene.remote)


def names_of_steps(scene: Scene) -> list[str]:
    done = scene.tick()
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def kill_at(scene: Scene, step: int) -> None:
    done = scene.tick(step)
    assert done.returncode == -signal.SIGKILL, (step, done.returncode, done.stderr)


def check_invariants(scene: Scene, name: str) -> None:
    """After a crash: the next tick converges, nothing is launched twice, nothing needs a person."""
    for _ in range(2):
        done = scene.tick()
        assert done.returncode in (0, 1), (name, done.stderr)
        assert "Traceback" not in done.stderr, (name, done.stderr)
    assert len(scene.log("start")) <= 1, (name, "launched twice")
    branches = [r for r in repos.refs(scene.shared) if r.startswith("refs/heads/run/")]
    assert branches == [f"refs/heads/{BRANCH}"], (name, branches)
    marker = repos.read(scene.shared, f"{BRANCH}:runs/scout-2026-11-30/sweep.yaml")
    message = repos.git(scene.shared, "show", "-s", "--format=%B", BRANCH)
    assert "Sweep-Phase: closing" in message, (name, message)
    whole = "cost_usd: 0.5\n" in marker and "failed" not in marker
    assert whole or "failed: " in marker, (name, marker)
    if whole:
        assert "A sentence." in repos.read(scene.shared, f"{BRANCH}:docs/guide.md"), name
    check_nothing_left(scene, name)


def check_nothing_left(scene: Scene, name: str) -> None:
    if scene.remote:
        kept = [r for r in repos.refs(scene.home) if r.startswith(("refs/heads/run", "refs/orch"))]
        assert kept == [], (name, kept)
    for path in (scene.home, scene.shared):
        folder = Path(repos.opened(path).path)
        locks = [p for p in folder.rglob("*.lock") if "orchestrator" not in p.parts]
        assert locks == [], (name, locks)  # our own are the kernel's: the file means nothing
        assert repos.git(path, "fsck", "--no-dangling") == "", name
    for dispatch in {line.split()[1] for line in scene.log("start")}:
        assert running(dispatch) == [], name


def running(dispatch: str) -> list[int]:
    return [pid for pid, environ in _environments() if dispatch.encode() in environ]


def _environments() -> Iterator[tuple[int, bytes]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                yield int(folder.name), (folder / "environ").read_bytes()
            except OSError:
                continue


@pytest.mark.parametrize("remote", [False, True], ids=["alone", "remote"])
def test_a_tick_killed_at_any_step_is_mended_by_the_next(remote: bool, tmp_path: Path) -> None:
    start = template(tmp_path / "template", remote=remote)
    steps = names_of_steps(copy_of(start, tmp_path / "count"))
    assert len(steps) > 40
    assert {"before Writer.commit", "after RefWriter.create_ref"} <= set(steps)

    def one(number: int) -> None:
        scene = copy_of(start, tmp_path / f"at-{number}")
        kill_at(scene, number)
        check_invariants(scene, f"step {number}, {steps[number - 1]}")

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(1, len(steps) + 1)))


@pytest.mark.parametrize("cut", ["after Remote.create", "before Remote.update"])
def test_a_tick_killed_while_it_mends_is_mended_by_the_next(cut: str, tmp_path: Path) -> None:
    start = template(tmp_path / "template", remote=True)
    steps = names_of_steps(copy_of(start, tmp_path / "count"))
    broken = copy_of(start, tmp_path / "broken")
    kill_at(broken, steps.index(cut) + 1)
    mending = names_of_steps(copy_of(broken, tmp_path / "count-mending"))

    def one(number: int) -> None:
        scene = copy_of(broken, tmp_path / f"at-{number}")
        kill_at(scene, number)
        check_invariants(scene, f"{cut}, then step {number}, {mending[number - 1]}")

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(1, len(mending) + 1)))
