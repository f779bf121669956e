"""The claim: one winner, losers leave nothing, refusals are told apart from lost races."""

from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest

from orchestrator.claim import Claim, NotClaimed
from orchestrator.closing import Finished
from orchestrator.errors import RemoteUnreachableError
from orchestrator.git.writer import Writer
from orchestrator.model.names import Ref
from orchestrator.model.status import Status
from orchestrator.rules.verdict import Code
from orchestrator.withdraw import withdraw
from tests.support import repos
from tests.support.claims import Attempt
from tests.support.servers import decline_pushes, http_server, on_push
from tests.support.world import World


def runs(path: Path) -> dict[Ref, str]:
    return {r: o for r, o in repos.refs(path).items() if "/run/" in r}


def test_a_won_claim_is_on_the_remote_and_here(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    made = Attempt(world).make()
    assert isinstance(made, Claim)
    branch = made.sweep.branch
    assert runs(world.shared) == {f"refs/heads/{branch}": made.intent}
    assert runs(world.home) == {
        f"refs/heads/{branch}": made.intent,
        f"refs/remotes/origin/{branch}": made.intent,
    }
    assert repos.git(world.home, "rev-parse", f"{made.intent}^") == repos.tip(world.shared)


def test_a_branch_another_clone_claimed_first_is_left_alone(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    late = Attempt(world)
    first = Attempt(world, other).make()
    assert isinstance(first, Claim)
    lost = late.make()
    assert isinstance(lost, NotClaimed)
    assert lost.code is Code.LOST_RACE
    assert runs(world.shared) == {first.sweep.local_ref: first.intent}
    assert runs(world.home) == {}


def test_without_a_remote_the_second_claim_of_one_look_is_lost(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    late = Attempt(world)
    first = Attempt(world).make()
    lost = late.make()
    assert isinstance(first, Claim)
    assert isinstance(lost, NotClaimed)
    assert lost.code is Code.LOST_RACE
    assert runs(world.home) == {first.sweep.local_ref: first.intent}


def test_clocks_on_two_sides_of_midnight_launch_at_most_one(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    tonight = Attempt(world)
    world.now += timedelta(days=1)
    tomorrow = Attempt(world, other)
    first = tonight.make()
    second = tomorrow.make()
    assert isinstance(first, Claim)
    assert isinstance(second, NotClaimed)
    assert second.code is Code.LOST_RACE
    assert "withdrawn" in second.reason
    assert runs(world.shared) == {first.sweep.local_ref: first.intent}
    assert runs(other) == {}


def test_two_claims_of_one_second_are_two_commits(tmp_path: Path) -> None:
    """Equal bytes would be one commit, and the second push would be told "up to date"."""
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    late, first = Attempt(world), Attempt(world, other)
    assert isinstance(first.make(), Claim)
    assert isinstance(late.make(), NotClaimed)


def test_a_hooks_refusal_is_an_error_with_the_servers_words(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    decline_pushes(world.shared, "run branches need a ticket")
    refused = Attempt(world).make()
    assert isinstance(refused, NotClaimed)
    assert refused.code is Code.REFUSED
    assert "run branches need a ticket" in refused.reason
    assert runs(world.shared) == runs(world.home) == {}


def test_an_update_hooks_refusal_without_words_is_no_lost_race(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    hook = world.shared / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    refused = Attempt(world).make()
    assert isinstance(refused, NotClaimed)
    assert refused.code is Code.REFUSED
    assert "hook declined" in refused.reason


def test_a_lock_left_on_the_server_is_a_refusal(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    waiting = Attempt(world)
    lock = world.shared / f"{waiting.facts.today.local_ref}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    refused = waiting.make()
    assert isinstance(refused, NotClaimed)
    assert refused.code is Code.REFUSED
    assert runs(world.home) == {}


def test_a_branch_called_run_made_since_our_look_is_a_refusal(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    waiting = Attempt(world)
    repos.git(world.shared, "branch", "run", "main")
    refused = waiting.make()
    assert isinstance(refused, NotClaimed)
    assert refused.code is Code.REFUSED


def test_a_fresh_lock_on_our_ref_is_busy(tmp_path: Path) -> None:
    world = World.alone(tmp_path)
    waiting = Attempt(world)
    lock = world.home / ".git" / f"{waiting.facts.today.local_ref}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    busy = waiting.make()
    assert isinstance(busy, NotClaimed)
    assert busy.code is Code.BUSY
    assert lock.exists()


def test_an_answer_that_never_came_is_asked_back(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    with http_server(tmp_path) as server:
        repos.git(world.home, "remote", "set-url", "origin", server.url(world.shared.name))
        waiting = Attempt(world)
        server.after_push = "drop"
        made = waiting.make()
    assert isinstance(made, Claim)
    assert runs(world.shared) == {made.sweep.local_ref: made.intent}


def test_a_remote_that_went_away_launches_nothing(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    waiting = Attempt(world)
    world.shared.rename(tmp_path / "gone.git")
    with pytest.raises(RemoteUnreachableError):
        waiting.make()
    assert runs(world.home) == {}


def test_a_push_url_that_is_another_repository_is_found_out(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    elsewhere = repos.bare_remote(tmp_path / "elsewhere.git", {"x": "y"})
    repos.git(world.home, "remote", "set-url", "--push", "origin", str(elsewhere))
    refused = Attempt(world).make()
    assert isinstance(refused, NotClaimed)
    assert refused.code is Code.REFUSED
    assert "push URL" in (refused.hint or "")
    assert runs(elsewhere) == runs(world.home) == {}


@pytest.mark.parametrize("how", ["merge", "squash"])
def test_a_sweep_that_was_run_merged_and_deleted_since_our_look_is_not_run_again(
    how: str, tmp_path: Path
) -> None:
    world = World.with_remote(tmp_path)
    other = repos.clone(world.shared, tmp_path / "other")
    late = Attempt(world)
    assert world.only(other).sweep is not None
    world.merge(world.today(), how=how, keep=False)
    lost = late.make()
    assert isinstance(lost, NotClaimed)
    assert lost.code is Code.LOST_RACE
    assert "was merged meanwhile" in lost.reason
    assert runs(world.shared) == runs(world.home) == {}


def test_a_default_branch_that_only_moved_on_does_not_stop_a_claim(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    waiting = Attempt(world)
    repos.commit_files(world.shared, {"docs/other.md": "x\n"})
    assert isinstance(waiting.make(), Claim)


def test_a_withdrawal_whose_answer_never_came_is_asked_back(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    with http_server(tmp_path) as server:
        repos.git(world.home, "remote", "set-url", "origin", server.url(world.shared.name))
        made = Attempt(world).make()
        assert isinstance(made, Claim)
        site = Attempt(world).claimant.site
        assert site.remote is not None
        server.after_push = "drop"
        assert withdraw(site.remote, Writer(site.reader), made.sweep, made.intent)
    assert runs(world.shared) == runs(world.home) == {}


@pytest.mark.parametrize("answer", ["answer", "drop"])
def test_a_person_who_pushes_to_the_branch_at_once_does_not_make_the_claim_a_lost_one(
    answer: Literal["answer", "drop"], tmp_path: Path
) -> None:
    world = World.with_remote(tmp_path)
    script = (
        "while read old new ref; do "
        "case $old in *[!0]*) continue; esac; "
        "tree=$(git rev-parse $new^{tree}); "
        "mine=$(git -c user.name=a -c user.email=a@b commit-tree $tree -p $new -m mine); "
        "git update-ref $ref $mine $new; done"
    )
    on_push(world.shared, script)
    with http_server(tmp_path) as server:
        repos.git(world.home, "remote", "set-url", "origin", server.url(world.shared.name))
        attempt = Attempt(world)
        server.after_push = answer
        made = attempt.won()
        server.after_push = "answer"
        closed = attempt.close(made, Finished(Status.OK))
    assert closed.published
    subjects = repos.git(world.shared, "log", "--format=%s", "-3", made.sweep.branch)
    assert subjects.splitlines() == [
        "Close sweep historian-2026-11-30",
        "mine",
        "Begin sweep historian-2026-11-30",
    ]
