"""The closing lands whatever happened to the branch meanwhile, and nobody's work is dropped."""

from pathlib import Path

import pytest

from orchestrator.closing import Finished
from orchestrator.model.status import Status
from orchestrator.model.usage import CostSource, Usage
from orchestrator.rules.facts import SweepState
from orchestrator.rules.verdict import Code
from orchestrator.sweeps import pending_ref
from tests.support import repos
from tests.support.claims import Attempt
from tests.support.servers import decline_pushes
from tests.support.world import World

SPENT = Usage(1200, 34, 0.0567, CostSource.REPORTED)


def finished(attempt: Attempt, **files: str | None) -> Finished:
    named = {path.replace("__", "/") + ".md": text for path, text in files.items()}
    return Finished(Status.OK, SPENT, None, attempt.changes(named))


def log(path: Path, branch: str) -> str:
    return repos.git(path, "log", "--format=%s", "--first-parent", branch)


@pytest.mark.parametrize("place", ["alone", "with_remote"])
def test_work_and_closing_follow_the_intent(place: str, tmp_path: Path) -> None:
    world: World = getattr(World, place)(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    closed = attempt.close(made, finished(attempt, docs__guide="# Better\n"))
    assert closed.published
    branch = made.sweep.branch
    assert log(world.shared, branch).splitlines()[:3] == [
        "Close sweep historian-2026-11-30",
        "Sweep historian-2026-11-30: 1 file changed by historian",
        "Begin sweep historian-2026-11-30",
    ]
    assert repos.read(world.shared, f"{branch}:docs/guide.md") == "# Better\n"
    marker = repos.read(world.shared, f"{branch}:{made.sweep.marker_path}")
    assert "tokens_in: 1200\ntokens_out: 34\ncost_usd: 0.0567\n" in marker
    message = repos.git(world.shared, "show", "-s", "--format=%B", branch)
    assert "Sweep-Status: ok" in message
    assert "Cost-Source: reported" in message
    assert pending_ref(made.sweep) not in repos.refs(world.home)


def test_a_commit_a_person_pushed_meanwhile_stays_below_the_closing(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    theirs = repos.commit_files(world.shared, {"docs/note.md": "mine\n"}, branch=made.sweep.branch)
    closed = attempt.close(made, finished(attempt, docs__guide="# Better\n"))
    branch = made.sweep.branch
    assert closed.published
    assert repos.tip(world.shared, branch) == closed.commit
    assert repos.git(world.shared, "rev-parse", f"{branch}^1") == theirs
    assert repos.read(world.shared, f"{branch}:docs/note.md") == "mine\n"
    assert repos.read(world.shared, f"{branch}:docs/guide.md") == "# Better\n"
    assert not [r for r in repos.refs(world.home) if r.startswith(("refs/heads/run", "refs/orch"))]


def test_a_file_both_changed_keeps_theirs_and_both_versions_stay_in_the_history(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    repos.commit_files(world.shared, {"docs/guide.md": "theirs\n"}, branch=made.sweep.branch)
    attempt.close(made, finished(attempt, docs__guide="ours\n"))
    branch = made.sweep.branch
    assert repos.read(world.shared, f"{branch}:docs/guide.md") == "theirs\n"
    assert repos.read(world.shared, f"{branch}^2:docs/guide.md") == "ours\n"
    assert "docs/guide.md" in repos.git(world.shared, "show", "-s", "--format=%B", branch)


def test_a_branch_deleted_meanwhile_is_made_again_because_it_says_what_was_spent(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    repos.git(world.shared, "update-ref", "-d", made.sweep.local_ref)
    closed = attempt.close(made, finished(attempt))
    assert repos.tip(world.shared, made.sweep.branch) == closed.commit


def test_a_branch_force_pushed_elsewhere_gets_the_closing_on_top(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    repos.git(world.shared, "update-ref", made.sweep.local_ref, repos.tip(world.shared))
    theirs = repos.commit_files(world.shared, {"x.txt": "x"}, branch=made.sweep.branch)
    closed = attempt.close(made, finished(attempt, docs__guide="ours\n"))
    branch = made.sweep.branch
    assert repos.tip(world.shared, branch) == closed.commit
    assert repos.git(world.shared, "merge-base", "--is-ancestor", theirs, branch) == ""
    assert repos.read(world.shared, f"{branch}:docs/guide.md") == "ours\n"
    assert "1200" in repos.read(world.shared, f"{branch}:{made.sweep.marker_path}")


def test_a_person_who_merged_before_the_closing_is_told(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    world.merge(made.sweep)
    attempt.close(made, finished(attempt))
    world.wait(days=1)
    verdict = world.explain(fetch=True).verdict
    assert verdict.code is Code.NOT_DUE
    assert "before its closing commit" in " ".join(verdict.warnings)


def test_a_remote_that_went_away_keeps_the_closing_here_and_the_next_tick_publishes_it(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    gone = world.shared.rename(tmp_path / "gone.git")
    closed = attempt.close(made, finished(attempt, docs__guide="# Better\n"))
    assert not closed.published
    assert world.explain().verdict.state is SweepState.UNPUBLISHED
    gone.rename(tmp_path / "upstream.git")
    evaluation = world.tick()
    assert "published the closing commit" in " ".join(evaluation.mended)
    assert repos.tip(world.shared, made.sweep.branch) == closed.commit
    assert evaluation.outcomes[0].verdict.state is SweepState.AWAITING_REVIEW
    assert not [r for r in repos.refs(world.home) if r.startswith(("refs/heads/run", "refs/orch"))]


def test_a_server_that_refuses_the_closing_keeps_it_here(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    decline_pushes(world.shared, "closed for the night")
    closed = attempt.close(made, finished(attempt))
    assert not closed.published
    assert "closed for the night" in (closed.note or "")
    evaluation = world.tick()
    assert "closed for the night" in " ".join(evaluation.mended)
    assert evaluation.exit_code == 1
    (world.shared / "hooks" / "pre-receive").unlink()
    world.tick()
    assert repos.tip(world.shared, made.sweep.branch) == closed.commit


def test_an_unpublished_closing_goes_on_top_of_what_others_pushed_since(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    gone = world.shared.rename(tmp_path / "gone.git")
    attempt.close(made, finished(attempt, docs__guide="# Better\n"))
    gone.rename(tmp_path / "upstream.git")
    branch = made.sweep.branch
    theirs = repos.commit_files(world.shared, {"docs/note.md": "mine\n"}, branch=branch)
    world.tick()
    assert repos.git(world.shared, "rev-parse", f"{branch}^1") == theirs
    assert repos.read(world.shared, f"{branch}:docs/guide.md") == "# Better\n"
    assert "1200" in repos.read(world.shared, f"{branch}:{made.sweep.marker_path}")


def test_a_commit_made_locally_meanwhile_stays_below_the_closing(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    theirs = repos.commit_files(world.home, {"docs/note.md": "x\n"}, branch=made.sweep.branch)
    closed = attempt.close(made, finished(attempt, docs__guide="# Better\n"))
    assert repos.tip(world.home, made.sweep.branch) == closed.commit
    assert repos.git(world.home, "rev-parse", f"{made.sweep.branch}^1") == theirs


def test_a_branch_somebody_checked_out_here_is_not_moved_under_their_feet(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    repos.git(world.home, "checkout", "--quiet", made.sweep.branch)
    before = repos.snapshot_user_state(world.home)
    closed = attempt.close(made, finished(attempt, docs__guide="# Better\n"))
    assert closed.published
    assert repos.snapshot_user_state(world.home) == before
    assert repos.tip(world.home, made.sweep.branch) == made.intent


def test_a_failed_run_says_so_in_the_marker_and_keeps_unknown_usage_null(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    attempt.close(made, Finished(Status.TIMEOUT, failed="timeout: the time limit ended it"))
    marker = repos.read(world.home, f"{made.sweep.branch}:{made.sweep.marker_path}")
    assert "tokens_in: null\ntokens_out: null\ncost_usd: null\nfailed: " in marker
    verdict = world.explain().verdict
    assert verdict.state is SweepState.FAILED
    assert "the time limit ended it" in verdict.reason


def test_what_was_left_out_is_named(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    attempt.close(made, Finished(Status.OK, left_out=(("orchestrator.yaml", "the policy"),)))
    message = repos.git(world.home, "show", "-s", "--format=%B", made.sweep.branch)
    assert "orchestrator.yaml: the policy" in message


def test_giving_up_a_sweep_whose_closing_is_pinned_here_frees_the_role_for_good(
    tmp_path: Path,
) -> None:
    world = World.with_remote(tmp_path)
    attempt = Attempt(world)
    made = attempt.won()
    decline_pushes(world.shared, "not today")
    attempt.close(made, finished(attempt))
    (world.shared / "hooks" / "pre-receive").unlink()
    verdict = world.explain().verdict
    assert verdict.unblock is not None
    command = verdict.unblock.removesuffix(" releases the role").rpartition("; ")[2]
    repos.git(world.home, "-c", f"alias.give-up=!{command}", "give-up")
    assert pending_ref(made.sweep) not in repos.refs(world.home)
    assert world.only().sweep is not None
