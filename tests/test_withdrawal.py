"""An agent whose service cannot be used: no sweep, no branch, and another try later."""

from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.backoff import path_of
from orchestrator.model.status import Status
from orchestrator.outcome import RoleOutcome
from orchestrator.rules.verdict import Action, Code
from tests.support import repos
from tests.support.world import FILES, World

DOWN = '{"status": "unavailable", "error": "connection refused", "tokens_in": 0, "cost_usd": 0}'
POLICY = (
    "schedules:\n  scout:\n    every: 1d\n"
    "roles:\n  scout:\n    adapter: command\n    command: [scripts/agent]\n    writes: ['**']\n"
)


def world_of(root: Path, *lines: str, remote: bool = True) -> World:
    """A repository whose agent runs those lines of shell."""
    make = World.with_remote if remote else World.alone
    world = make(root, {**FILES, "orchestrator.yaml": POLICY})
    agent(world, *lines)
    repos.git(world.home, "config", "--add", "orchestrator.allowCommand", "*")
    return world


def agent(world: World, *lines: str) -> None:
    script = "\n".join(["#!/bin/sh", *lines, ""])
    repos.commit_files(world.shared, {"scripts/agent": script}, modes={"scripts/agent": 0o100755})


def branches(world: World) -> list[str]:
    refs = [*repos.refs(world.shared), *repos.refs(world.home)]
    return [ref for ref in refs if "/run/" in ref]


def memory(world: World) -> Path:
    git_dir = repos.git(world.home, "rev-parse", "--absolute-git-dir")
    return Path(path_of(git_dir, "scout"))


def said(status: str) -> tuple[str, ...]:
    return (f"echo '{DOWN.replace('unavailable', status)}'", "exit 1")


@pytest.mark.parametrize("status", [Status.AUTH, Status.RATE_LIMITED, Status.UNAVAILABLE])
@pytest.mark.parametrize("remote", [True, False], ids=["remote", "alone"])
def test_the_branch_is_withdrawn_and_the_tick_says_why(
    status: Status, *, remote: bool, tmp_path: Path
) -> None:
    world = world_of(tmp_path, *said(status), remote=remote)
    evaluation = world.tick()
    (outcome,) = evaluation.outcomes
    assert outcome.sweep is None
    verdict = outcome.verdict
    assert (verdict.action, verdict.code) == (Action.ERROR, Code.AGENT_UNAVAILABLE)
    assert f"{status}: connection refused" in verdict.reason
    assert evaluation.exit_code == 1
    assert branches(world) == []
    assert verdict.due_at == world.now + timedelta(minutes=15)
    assert str(memory(world)) in (verdict.unblock or "")


def test_it_rests_until_the_time_is_up_and_each_wait_is_twice_as_long(tmp_path: Path) -> None:
    world = world_of(tmp_path, *said("unavailable"))
    waits = []
    for _ in range(9):
        start = world.now
        assert world.only().verdict.action is Action.ERROR
        rests = explained(world)
        assert (rests.verdict.action, rests.verdict.code) == (Action.REST, Code.AGENT_UNAVAILABLE)
        assert rests.verdict.checks[-1].evidence["failed"] == "unavailable: connection refused"
        assert world.tick().exit_code == 0, "the tick that saw it has said so"
        assert rests.verdict.due_at is not None
        waits.append((rests.verdict.due_at - start) / timedelta(minutes=1))
        world.now = rests.verdict.due_at
    assert waits == [15, 30, 60, 120, 240, 480, 960, 1440, 1440]


def explained(world: World) -> RoleOutcome:
    before = memory(world).read_bytes()
    found = world.explain()
    assert memory(world).read_bytes() == before
    return found


def test_a_run_that_gets_through_ends_the_waiting(tmp_path: Path) -> None:
    world = world_of(tmp_path, *said("auth"))
    world.tick()
    agent(world, "echo new > docs/new.md")
    world.wait(minutes=15)
    outcome = world.only()
    assert outcome.sweep is not None
    assert outcome.sweep.status is Status.OK
    assert not memory(world).exists()


def test_whoever_mended_it_may_delete_the_memory(tmp_path: Path) -> None:
    world = world_of(tmp_path, *said("auth"))
    world.tick()
    agent(world, "echo new > docs/new.md")
    memory(world).unlink()
    assert world.only().sweep is not None


def test_another_clone_may_try_at_once(tmp_path: Path) -> None:
    world = world_of(tmp_path, *said("auth"))
    world.tick()
    assert world.upstream is not None
    other = repos.clone(world.upstream, tmp_path / "other")
    repos.git(other, "config", "--add", "orchestrator.allowCommand", "*")
    agent(world, "echo new > docs/new.md")
    assert world.only(other).sweep is not None


@pytest.mark.parametrize(
    "line",
    [
        'echo \'{"status": "unavailable", "tokens_in": 5}\'',
        'echo \'{"status": "rate_limited", "cost_usd": 0.01}\'',
        'echo new > docs/new.md; echo \'{"status": "auth"}\'',
        'mkdir -p .github/workflows; echo x > orchestrator.yaml; echo \'{"status": "auth"}\'',
        'echo \'{"status": "failed"}\'',
    ],
    ids=["tokens", "dollars", "changes", "left-out", "failed"],
)
def test_what_was_spent_or_done_is_a_sweep_and_stays(line: str, tmp_path: Path) -> None:
    world = world_of(tmp_path, line, "exit 1")
    outcome = world.only()
    assert outcome.sweep is not None
    assert outcome.sweep.failed is not None
    assert branches(world)
    assert not memory(world).exists()


def test_a_person_who_built_on_the_branch_keeps_it(tmp_path: Path) -> None:
    """The lease: the branch is not what we made any more, so the sweep is closed as usual."""
    upstream = tmp_path / "upstream.git"
    world = world_of(
        tmp_path,
        f"tip=$(git --git-dir={upstream} rev-parse refs/heads/run/scout-2026-11-30)",
        f"new=$(git --git-dir={upstream} -c user.name=p -c user.email=p@x "
        "commit-tree -p $tip -m theirs $tip^{tree})",
        f"git --git-dir={upstream} update-ref refs/heads/run/scout-2026-11-30 $new",
        *said("unavailable"),
    )
    outcome = world.only()
    assert outcome.sweep is not None
    assert outcome.sweep.status is Status.UNAVAILABLE
    log = repos.git(world.shared, "log", "--format=%s", outcome.sweep.sweep.branch)
    assert "theirs" in log
    assert "Close failed sweep" in log


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1 2\n",
        "nan 1\ncommand\nwhy\n",
        "99999999999999999999 1\ncommand\nwhy\n",
        "1 1\n\n\n",
    ],
)
def test_a_memory_that_makes_no_sense_is_passed_over(text: str, tmp_path: Path) -> None:
    world = world_of(tmp_path, "echo new > docs/new.md")
    memory(world).parent.mkdir(parents=True)
    memory(world).write_text(text)
    assert world.only().sweep is not None


def test_another_agent_and_a_wrong_clock_do_not_wait(tmp_path: Path) -> None:
    world = world_of(tmp_path, *said("auth"))
    world.tick()
    kept = memory(world).read_text("utf-8")
    memory(world).write_text(kept.replace("\ncommand\n", "\ncodex gpt-5\n"))
    assert world.explain(fetch=False).verdict.action is Action.DISPATCH
    memory(world).write_text(kept)
    world.wait(days=-3)
    assert world.explain(fetch=False).verdict.action is Action.DISPATCH
