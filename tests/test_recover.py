"""What a crash leaves is put right by the next tick, and by nobody too early."""

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.closing import Finished
from orchestrator.locks import clone_lock_path, held, sweep_lock_path
from orchestrator.model.status import Status
from orchestrator.model.usage import CostSource, Usage
from orchestrator.record import write_intent
from orchestrator.rules.facts import SweepState
from orchestrator.rules.verdict import Action, Code
from orchestrator.sweeps import instance_name
from tests.support import repos
from tests.support.claims import Attempt
from tests.support.world import World


def common(world: World) -> str:
    return str(world.home / ".git")


def failed(world: World, sweep_branch: str, path: str) -> str:
    text = repos.read(world.shared, f"{sweep_branch}:{path}")
    return text.partition("failed: ")[2].strip()


def test_a_sweep_whose_tick_was_killed_is_closed_as_interrupted(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    verdict = world.explain().verdict
    assert verdict.state is SweepState.IN_FLIGHT
    assert "no agent runs here" in verdict.reason
    evaluation = world.tick()
    assert evaluation.mended == (f"closed {made.sweep.branch} as failed: interrupted",)
    assert evaluation.outcomes[0].verdict.state is SweepState.FAILED
    assert evaluation.exit_code == 0
    assert "interrupted" in failed(world, made.sweep.branch, made.sweep.marker_path)
    assert world.tick().mended == ()


def test_without_a_remote_it_is_closed_as_interrupted_too(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    made = Attempt(world).won()
    world.tick()
    assert "interrupted" in failed(world, made.sweep.branch, made.sweep.marker_path)


def test_a_kill_between_the_push_and_the_local_branch_is_found_by_its_signature(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    repos.git(world.home, "update-ref", "-d", made.sweep.local_ref)
    world.tick()
    assert "interrupted" in failed(world, made.sweep.branch, made.sweep.marker_path)


def test_an_intent_that_never_reached_the_remote_is_dropped_and_the_sweep_starts(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    site, writer, identity = (getattr(attempt.claimant, n) for n in ("site", "writer", "identity"))
    gone = world.shared.rename(tmp_path / "gone.git")
    made = Attempt(World.alone(tmp_path / "model")).won()
    intent = write_intent(
        writer,
        made.marker,
        site.tip,
        dispatch_id="d" * 8,
        instance=instance_name(site.reader),
        identity=identity,
        now=world.now,
    )
    writer.create_ref(made.sweep.local_ref, intent, "sweep: begin")
    assert world.explain().verdict.state is SweepState.UNPUBLISHED
    gone.rename(tmp_path / "upstream.git")
    evaluation = world.tick()
    assert "dropped" in evaluation.mended[0]
    assert evaluation.outcomes[0].sweep is not None
    assert evaluation.outcomes[0].sweep.failed is None


def test_a_sweep_at_work_in_this_clone_is_left_alone(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    with held(sweep_lock_path(common(world), made.sweep.slug)) as lock:
        assert lock is not None
        assert world.tick().mended == ()
        verdict = world.explain().verdict
        assert verdict.state is SweepState.IN_FLIGHT
        assert "running here" in verdict.reason


def test_another_machines_sweep_is_abandoned_only_a_day_after_its_time_limit(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    made = Attempt(world).won()
    world.wait(hours=25)
    evaluation = world.tick(other)
    assert evaluation.mended == ()
    assert evaluation.outcomes[0].verdict.state is SweepState.IN_FLIGHT
    assert "in flight since 2026-11-30T02:00:00Z" in evaluation.outcomes[0].verdict.reason
    world.wait(minutes=1)
    evaluation = world.tick(other)
    assert evaluation.mended == (f"closed {made.sweep.branch} as failed: abandoned",)
    assert "abandoned" in failed(world, made.sweep.branch, made.sweep.marker_path)


def test_an_agent_that_finishes_after_it_was_given_up_replaces_that_with_its_usage(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    attempt = Attempt(world)
    made = attempt.won()
    world.wait(days=3)
    world.tick(other)
    usage = Usage(7, 8, 0.09, CostSource.REPORTED)
    attempt.close(
        made, Finished(Status.OK, usage, None, attempt.changes({"docs/guide.md": "late\n"}))
    )
    branch = made.sweep.branch
    marker = repos.read(world.shared, f"{branch}:{made.sweep.marker_path}")
    assert "tokens_in: 7\n" in marker
    assert "failed" not in marker
    assert repos.read(world.shared, f"{branch}:docs/guide.md") == "late\n"


def test_old_lock_files_of_our_refs_are_removed_and_fresh_or_foreign_ones_are_not(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    world.only()
    refs = world.home / ".git" / "refs"
    old = refs / "remotes" / "origin" / f"{world.today().branch}.lock"
    fresh = refs / "remotes" / "origin" / "main.lock"
    foreign = refs / "heads" / "topic.lock"
    for lock in (old, fresh, foreign):
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    for lock in (old, foreign):
        os.utime(lock, (1, 1))
    fresh_time = fresh.stat().st_mtime
    world.tick(fetch=False)
    assert not old.exists()
    assert foreign.exists()
    assert fresh.stat().st_mtime == fresh_time


def test_an_old_lock_on_todays_branch_does_not_stop_the_claim(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    lock = world.home / ".git" / f"{world.today().local_ref}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (1, 1))
    assert world.only().sweep is not None


def test_a_second_tick_of_one_clone_waits_and_then_rests_as_busy(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    from orchestrator.tick import tick

    with held(clone_lock_path(common(world))) as lock:
        assert lock is not None
        evaluation = tick(world.settings(), lambda: world.now, lock_wait_s=0.2)
    (outcome,) = evaluation.outcomes
    assert (outcome.verdict.action, outcome.verdict.code) == (Action.REST, Code.BUSY)
    assert evaluation.exit_code == 0


def test_what_a_killed_tick_left_running_is_ended(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    attempt.won()
    environ = {**os.environ, "ORCHESTRATOR_DISPATCH": attempt.claimant.dispatch_id}
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env=environ, start_new_session=True
    )
    try:
        world.tick()
        assert left.wait(10) < 0
    finally:
        left.kill()
        left.wait()
