"""The main job, end to end: a sweep is dispatched, reviewed, merged, and rested from."""

from pathlib import Path

import pytest

from orchestrator.rules.facts import SweepState
from orchestrator.rules.verdict import Action, Code, RuleId
from orchestrator.sweeps import CLOSING, INTENT, PHASE
from tests.support import repos
from tests.support.world import FILES, POLICY, World

PLACES = ["alone", "normal", "bare", "mirror", "single-branch", "shallow", "partial"]


def make(place: str, root: Path) -> World:
    if place == "alone":
        return World.alone(root)
    return World.with_remote(root, kind=place)  # type: ignore[arg-type]


def phases(path: Path, branch: str) -> list[str]:
    text = repos.git(
        path, "log", f"--format=%(trailers:key={PHASE},valueonly,separator=%x2C)", branch
    )
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("place", PLACES)
def test_a_first_sweep_leaves_an_intent_and_a_closing_commit_on_its_branch(
    place: str, tmp_path: Path
) -> None:
    world = make(place, tmp_path)
    outcome = world.only()
    assert (outcome.verdict.rule, outcome.verdict.action) == (RuleId.S4, Action.DISPATCH)
    assert outcome.sweep is not None
    assert outcome.sweep.failed is None, outcome.sweep
    found = phases(world.shared, world.today().branch)
    assert found[0] == CLOSING
    assert found[-1] == INTENT
    marker = repos.read(world.shared, f"{world.today().branch}:{world.today().marker_path}")
    assert "at: 2026-11-30T02:00:00Z\ncovering_since: null\nadapter: builtin\n" in marker
    assert "tokens_in: 0\ntokens_out: 0\ncost_usd: 0\n" in marker
    assert "failed" not in marker


@pytest.mark.parametrize("place", PLACES)
def test_an_open_sweep_rests_then_a_merged_one_rests_until_it_is_due(
    place: str, tmp_path: Path
) -> None:
    world = make(place, tmp_path)
    sweep = world.today()
    assert world.only().verdict.code is Code.DUE
    assert world.only().verdict.state is SweepState.AWAITING_REVIEW
    world.merge(sweep)
    world.wait(days=2)
    assert world.only().verdict.code is Code.NOT_DUE
    world.wait(days=5)
    outcome = world.only()
    assert outcome.sweep is not None
    marker = repos.read(world.shared, f"{world.today().branch}:{world.today().marker_path}")
    assert "covering_since: 2026-11-30T02:00:00Z\n" in marker


@pytest.mark.parametrize("keep", [True, False], ids=["branch-kept", "branch-deleted"])
@pytest.mark.parametrize("how", ["merge", "fast-forward", "squash", "rebase"])
@pytest.mark.parametrize("place", ["alone", "normal"])
def test_a_sweep_counts_as_merged_however_people_merge_it(
    place: str, how: str, keep: bool, tmp_path: Path
) -> None:
    world = make(place, tmp_path)
    world.only()
    if how == "rebase":
        repos.commit_files(world.shared, {"other.txt": "x"}, message="Meanwhile")
    world.merge(world.today(), how=how, keep=keep)
    world.wait(days=1)
    outcome = world.only()
    assert outcome.verdict.rule is RuleId.S2
    assert [c.rule for c in outcome.verdict.checks] == [RuleId.S0, RuleId.S1, RuleId.S2]


def test_nothing_of_the_user_is_touched(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    home = world.home
    (home / "README.md").write_text("half an edit")
    (home / "new.txt").write_text("untracked")
    repos.git(home, "add", "README.md")
    (home / "README.md").write_text("and more")
    repos.git(home, "stash", "push", "--keep-index", "--quiet")
    repos.git(home, "checkout", "--quiet", "--detach")
    before = repos.snapshot_user_state(home)
    assert world.only().sweep is not None
    assert repos.snapshot_user_state(home) == before


def test_a_tick_from_a_linked_worktree_sweeps_the_same_repository(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    linked = tmp_path / "linked"
    repos.git(world.home, "worktree", "add", "--quiet", "--detach", str(linked))
    before = repos.snapshot_user_state(world.home)
    assert world.only(linked).sweep is not None
    assert repos.snapshot_user_state(world.home) == before
    assert world.only().verdict.code is Code.SWEEP_OPEN


def test_with_a_remote_the_finished_sweep_has_one_home(tmp_path: Path) -> None:
    """So a reviewer who deletes the remote branch releases the role on every instance."""
    world = World.with_remote(tmp_path)
    world.only()
    assert not [r for r in repos.refs(world.home) if r.startswith("refs/heads/run/")]
    assert not [r for r in repos.refs(world.home) if r.startswith("refs/orchestrator/")]
    repos.git(world.shared, "update-ref", "-d", world.today().local_ref)
    world.wait(days=1)
    assert world.only().sweep is not None


def test_the_policy_is_read_from_the_default_tip_and_not_from_the_checkout(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    (world.home / "orchestrator.yaml").write_text("schedules: {}\n")
    repos.commit_files(
        world.home, {"orchestrator.yaml": "schedules: {}\n"}, branch="mine", start="main"
    )
    repos.git(world.home, "checkout", "--quiet", "--force", "mine")
    assert world.only().sweep is not None


def test_a_local_default_branch_ahead_of_the_remote_does_not_count(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    repos.commit_files(world.home, {"orchestrator.yaml": "schedules: {}\n"})
    outcome = world.only()
    assert outcome.sweep is not None
    assert outcome.facts.tip == repos.tip(world.shared)


def test_several_roles_are_swept_one_after_the_other(tmp_path: Path) -> None:
    policy = (
        "schedules:\n  historian:\n    every: 1d\n  second:\n    every: 2d\n"
        "  off:\n    every: 1d\n    enabled: false\n  broken:\n    every: 1w\n"
        "roles:\n  second:\n    adapter: builtin\n    estimate_usd: 0\n"
        "  off:\n    adapter: builtin\n"
    )
    world = World.with_remote(tmp_path, {**FILES, "orchestrator.yaml": policy})
    evaluation = world.tick()
    codes = {o.verdict.role: o.verdict.code for o in evaluation.outcomes}
    assert codes == {
        "historian": Code.DUE,
        "second": Code.DUE,
        "off": Code.DISABLED,
        "broken": Code.CONFIG_ERROR,
    }
    assert evaluation.exit_code == 1
    branches = [r for r in repos.refs(world.shared) if r.startswith("refs/heads/run/")]
    assert branches == [
        "refs/heads/run/historian-2026-11-30",
        "refs/heads/run/second-2026-11-30",
    ]


def test_another_clone_finds_the_sweep_open(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    assert world.only().sweep is not None
    assert world.only(other).verdict.code is Code.SWEEP_OPEN


def test_a_renamed_document_is_mended_by_the_next_sweep(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    world.only()
    world.merge(world.today())
    world.wait(days=7)
    guide = FILES["docs/guide.md"]
    repos.commit_files(
        world.shared,
        {"docs/guide.md": None, "docs/handbook.md": guide},
        message="Call it a handbook",
        when=int(world.now.timestamp()) - 3600,
    )
    outcome = world.only()
    assert outcome.sweep is not None
    assert outcome.sweep.failed is None, outcome.sweep
    branch = world.today().branch
    assert phases(world.shared, branch)[:3] == ["closing", "work", "intent"]
    assert "[the guide](docs/handbook.md)" in repos.read(world.shared, f"{branch}:README.md")
    page = repos.read(world.shared, f"{branch}:{world.today().folder}/docs-delta.md")
    assert "docs/handbook.md" in page


def test_an_absent_policy_schedules_nothing(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path, {"README.md": "hello\n"})
    evaluation = world.tick()
    assert evaluation.outcomes == ()
    assert evaluation.exit_code == 0
    assert not evaluation.config.present


def test_a_refused_policy_dispatches_nothing(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path, {**FILES, "orchestrator.yaml": POLICY + POLICY})
    before = repos.refs(world.shared)
    evaluation = world.tick()
    assert evaluation.outcomes == ()
    assert evaluation.exit_code == 1
    assert repos.refs(world.shared) == before
