"""What a crash leaves is put right by the next tick, and by nobody too early."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from orchestrator.attempt import attempt
from orchestrator.availability import work_root
from orchestrator.closing import Finished
from orchestrator.locks import clone_lock_path, held, signed_slugs, sweep_lock_path
from orchestrator.model.status import Status
from orchestrator.model.usage import CostSource, Usage
from orchestrator.observe import observe
from orchestrator.orphans import close_orphans
from orchestrator.record import write_intent
from orchestrator.recover import Mender
from orchestrator.rules.engine import evaluate
from orchestrator.rules.facts import SweepState
from orchestrator.rules.verdict import Action, Code, Verdict
from orchestrator.site import open_site
from orchestrator.stop import StopFlag
from orchestrator.sweeps import instance_name, pending_ref
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
    assert evaluation.exit_code == 1
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


def branches(path: Path) -> list[str]:
    return [r for r in repos.refs(path) if r.startswith("refs/heads/run/")]


def test_a_claim_whose_agent_never_started_is_withdrawn_and_the_sweep_starts(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won(launched=False)
    evaluation = world.tick()
    assert evaluation.mended == (f"withdrew {made.sweep.branch}: its agent was never started",)
    (outcome,) = evaluation.outcomes
    assert outcome.sweep is not None
    assert outcome.sweep.failed is None
    assert branches(world.shared) == [made.sweep.local_ref]
    assert branches(world.home) == []


def test_a_claim_a_person_built_on_is_closed_and_not_withdrawn(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won(launched=False)
    theirs = repos.commit_files(world.shared, {"x.txt": "x"}, branch=made.sweep.branch)
    world.tick()
    assert repos.git(world.shared, "rev-parse", f"{made.sweep.branch}^") == theirs
    assert "interrupted" in failed(world, made.sweep.branch, made.sweep.marker_path)


def test_another_clone_that_calls_itself_the_same_closes_nothing(tmp_path: Path) -> None:
    """Two containers can share host name, path and configuration."""
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    for clone in (world.home, other):
        repos.git(clone, "config", "orchestrator.instance", "runner")
    made = Attempt(world).won()
    assert world.tick(other).mended == ()
    assert repos.tip(world.shared, made.sweep.branch) == made.intent
    assert len(world.tick().mended) == 1


def test_a_copy_of_the_clone_closes_nothing(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    shutil.copytree(world.home, tmp_path / "copy", symlinks=True)
    assert world.tick(tmp_path / "copy").mended == ()
    assert repos.tip(world.shared, made.sweep.branch) == made.intent


def test_a_moved_clone_still_knows_its_runs(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    world.home = world.home.rename(tmp_path / "moved")
    assert world.tick().mended == (f"closed {made.sweep.branch} as failed: interrupted",)


def test_a_run_that_ended_after_the_look_is_not_taken_for_an_orphan(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    site = open_site(world.settings(), fetch=True)
    stale = observe(site, world.now)
    closed = attempt.close(made, Finished(Status.OK, Usage(7, 8, 0.09, CostSource.REPORTED)))
    assert close_orphans(Mender.of(site, world.now), stale.facts) == ()
    assert repos.tip(world.shared, made.sweep.branch) == closed.commit


def test_giving_up_yields_to_the_closing_that_came_first(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    attempt = Attempt(world)
    made = attempt.won()
    world.wait(days=3)
    site = open_site(world.settings(other), fetch=True)
    facts = observe(site, world.now).facts
    closed = attempt.close(made, Finished(Status.OK, Usage(7, 8, 0.09, CostSource.REPORTED)))
    assert close_orphans(Mender.of(site, world.now), facts) == ()
    assert repos.tip(world.shared, made.sweep.branch) == closed.commit


def test_giving_up_does_not_make_a_deleted_branch_again(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    site = open_site(world.settings(), fetch=True)
    facts = observe(site, world.now).facts
    repos.git(world.shared, "update-ref", "-d", made.sweep.local_ref)
    assert close_orphans(Mender.of(site, world.now), facts) == ()
    assert branches(world.shared) == []
    world.tick()
    assert branches(world.home) == []


def test_a_reviewers_copy_of_a_sweep_the_remote_lost_is_not_dropped(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    made = Attempt(world).won()
    repos.git(other, "fetch", "--quiet", "origin", f"{made.sweep.branch}:{made.sweep.branch}")
    repos.git(world.shared, "update-ref", "-d", made.sweep.local_ref)
    evaluation = world.tick(other)
    assert evaluation.mended == ()
    assert evaluation.outcomes[0].verdict.state is SweepState.UNPUBLISHED
    assert branches(other) == [made.sweep.local_ref]


def test_an_old_lock_on_a_pin_does_not_stop_the_mending(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won()
    lock = world.home / ".git" / f"{pending_ref(made.sweep)}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (1, 1))
    packed = world.home / ".git" / "packed-refs.lock"
    packed.touch()
    os.utime(packed, (1, 1))
    mended = " ".join(world.tick().mended)
    assert "removed a stale lock" in mended
    assert f"closed {made.sweep.branch}" in mended
    assert not lock.exists()
    assert not packed.exists()


def test_a_ref_somebody_has_locked_just_now_leaves_the_other_roles_alone(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    made = Attempt(world).won()
    lock = world.home / ".git" / f"{made.sweep.local_ref}.lock"
    lock.touch()
    evaluation = world.tick()
    assert f"{made.sweep.branch} waits" in evaluation.mended[0]
    assert evaluation.outcomes[0].verdict.state is SweepState.IN_FLIGHT
    lock.unlink()
    assert world.tick().mended == (f"closed {made.sweep.branch} as failed: interrupted",)


def test_without_a_remote_a_pinned_closing_lands_with_its_usage(tmp_path: Path) -> None:
    """Killed between the pin and the branch: the agent's report is not thrown away."""
    world = World.alone(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    attempt.close(made, Finished(Status.OK, Usage(7, 8, 0.09, CostSource.REPORTED)))
    closing = repos.tip(world.home, made.sweep.branch)
    repos.git(world.home, "update-ref", made.sweep.local_ref, made.intent)
    repos.git(world.home, "update-ref", pending_ref(made.sweep), closing)
    assert "published the closing commit" in world.tick().mended[0]
    assert repos.tip(world.home, made.sweep.branch) == closing
    assert pending_ref(made.sweep) not in repos.refs(world.home)


def test_a_pinned_closing_that_was_merged_and_deleted_is_not_published_again(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    closed = attempt.close(made, Finished(Status.OK, Usage(7, 8, 0.09, CostSource.REPORTED)))
    repos.git(world.home, "update-ref", pending_ref(made.sweep), closed.commit)
    repos.git(world.home, "update-ref", made.sweep.local_ref, closed.commit)
    world.merge(made.sweep, how="squash", keep=False)
    world.tick()
    assert branches(world.shared) == branches(world.home) == []
    assert pending_ref(made.sweep) not in repos.refs(world.home)


def test_the_working_copy_of_a_killed_run_is_removed(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    name = f"{made.sweep.slug}-{made.dispatch_id}"
    folder = Path(work_root(attempt.claimant.site)) / name / "tree"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    world.tick()
    assert not folder.parent.exists()


def test_the_tick_that_closes_an_interrupted_sweep_exits_1_and_later_ones_rest(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    Attempt(world).won()
    world.wait(days=3)
    assert world.tick(other).exit_code == 1
    assert world.tick(other).exit_code == 0


def test_an_open_sweep_of_a_role_that_is_not_scheduled_any_more_is_named(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    world.only()
    repos.commit_files(world.shared, {"orchestrator.yaml": "schedules: {}\n"})
    (note,) = world.tick().notes
    assert "run/historian-2026-11-30 is open (awaiting_review)" in note
    assert "git push origin --delete run/historian-2026-11-30" in note


def test_a_push_that_arrives_after_its_tick_was_killed_and_mended_is_still_ours(
    tmp_path: Path,
) -> None:
    """The git child of a killed tick lives on; the next tick can look before its push lands."""
    world = World.with_remote(tmp_path)
    made = Attempt(world).won(launched=False)
    repos.git(world.shared, "update-ref", "-d", made.sweep.local_ref)
    site = open_site(world.settings(), fetch=True)
    close_orphans(Mender.of(site, world.now), observe(site, world.now).facts)
    assert branches(world.home) == []
    late = Attempt(world)
    repos.git(world.home, "push", "--quiet", "origin", f"{made.intent}:{made.sweep.local_ref}")
    tried = attempt(
        late.claimant.site, late.facts, evaluate(late.facts), lambda: world.now, StopFlag()
    )
    assert isinstance(tried, Verdict)
    assert tried.code is Code.LOST_RACE
    evaluation = world.tick()
    assert evaluation.mended == (f"withdrew {made.sweep.branch}: its agent was never started",)
    assert evaluation.outcomes[0].sweep is not None


def test_a_signature_nothing_came_of_goes_in_time(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).won(launched=False)
    repos.git(world.shared, "update-ref", "-d", made.sweep.local_ref)
    site = open_site(world.settings(), fetch=True)
    facts = observe(site, world.now).facts
    close_orphans(Mender.of(site, world.now), facts)
    assert signed_slugs(common(world)) == (made.sweep.slug,)
    lock = Path(sweep_lock_path(common(world), made.sweep.slug))
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - 601))
    close_orphans(Mender.of(site, world.now), facts)
    assert signed_slugs(common(world)) == ()
