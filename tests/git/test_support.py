"""The builders that all tests stand on do what their names say."""

from pathlib import Path

import pytest

from tests.support import repos


def test_a_repository_has_its_files_checked_out_and_is_clean(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a.txt": "a\n", "d/b.txt": "b\n"})
    assert (path / "d" / "b.txt").read_text() == "b\n"
    assert repos.git(path, "status", "--porcelain") == ""
    assert repos.git(path, "log", "--format=%an %at") == f"Ann Author {repos.WHEN}"


@pytest.mark.parametrize("kind", list(repos._CLONE_OPTIONS))
def test_every_kind_of_clone_knows_the_default_branch(
    tmp_path: Path, kind: repos.CloneKind
) -> None:
    remote = repos.bare_remote(tmp_path / "up.git", {"a.txt": "a\n"})
    path = repos.clone(remote, tmp_path / "c", kind)
    assert repos.git(path, "rev-parse", "HEAD") == repos.tip(remote)


def test_the_four_ways_to_merge_bring_the_same_files_by_other_histories(tmp_path: Path) -> None:
    shapes = {}
    for how in (repos.merge_commit, repos.squash, repos.rebase, repos.fast_forward):
        path = repos.make_repo(tmp_path / how.__name__, {"a.txt": "a\n"})
        for n in (1, 2):
            repos.commit_files(path, {f"{n}.txt": "x\n"}, branch="topic", start="main")
        if how is not repos.fast_forward:
            repos.commit_files(path, {"other.txt": "o\n"})
        oid = how(path, "topic")
        assert repos.tip(path) == oid
        assert repos.read(path, "main:2.txt") == "x\n"
        assert repos.git(path, "status", "--porcelain") == ""
        contained = repos.git(path, "merge-base", "main", "topic") == repos.tip(path, "topic")
        shapes[how.__name__] = (int(repos.git(path, "rev-list", "--count", "main")), contained)
    assert shapes == {
        "merge_commit": (5, True),
        "squash": (3, False),
        "rebase": (4, False),
        "fast_forward": (3, True),
    }


def test_the_users_state_ignores_sweep_branches_and_sees_everything_else(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a.txt": "a\n"})
    before = repos.snapshot_user_state(path)
    repos.commit_files(path, {"b": "b\n"}, branch="run/x-2026-01-01", start="main")
    assert repos.snapshot_user_state(path) == before
    repos.git(path, "branch", "mine")
    assert repos.snapshot_user_state(path) != before


@pytest.mark.parametrize("how", ["index", "worktree", "stash", "config", "head"])
def test_any_change_of_the_users_things_shows(tmp_path: Path, how: str) -> None:
    path = repos.make_repo(tmp_path / "r", {"a.txt": "a\n"})
    before, everything = repos.snapshot_user_state(path), repos.digest_everything(path)
    (path / "a.txt").write_text("changed\n")
    if how == "index":
        repos.git(path, "add", "a.txt")
    elif how == "stash":
        repos.git(path, "stash")
    elif how == "config":
        repos.git(path, "config", "x.y", "z")
    elif how == "head":
        repos.git(path, "checkout", "--quiet", "--detach")
    assert repos.snapshot_user_state(path) != before
    assert repos.digest_everything(path) != everything
