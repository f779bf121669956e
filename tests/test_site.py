"""Which remote, which default branch, which tip: the first that answers, and never a guess."""

import os
from pathlib import Path

import pytest

from orchestrator.errors import CannotLookError, RemoteUnreachableError
from orchestrator.site import Settings, Site, open_site
from tests.support import repos

FILES = {"README.md": "hello\n"}


def site(path: Path, *, fetch: bool = False, **said: str) -> Site:
    return open_site(Settings(path=str(path), environ=dict(os.environ), **said), fetch=fetch)


def cannot(path: Path, *, fetch: bool = False, **said: str) -> CannotLookError:
    with pytest.raises(CannotLookError) as caught:
        site(path, fetch=fetch, **said)
    assert caught.value.exit_code == 3
    return caught.value


def test_without_a_remote_the_only_usual_branch_is_the_default(tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home", FILES, branch="trunk")
    repos.commit_files(home, {"x": "y"}, branch="topic", start="trunk")
    found = site(home)
    assert (found.default_branch, found.tip_name, found.remote) == ("trunk", "trunk", None)
    assert found.tip == repos.tip(home, "trunk")


def test_head_of_a_normal_repository_decides_nothing(tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home", FILES, branch="develop")
    error = cannot(home)
    assert "--default-branch" in (error.hint or "")
    assert site(home, default_branch="develop").default_branch == "develop"


def test_head_of_a_bare_repository_decides(tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home.git", FILES, branch="develop", bare=True)
    assert site(home).default_branch == "develop"


def test_two_usual_branches_are_an_error_that_names_the_flag(tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home", FILES)
    repos.commit_files(home, {"x": "y"}, branch="master", start="main")
    error = cannot(home)
    assert "main and master both exist" in error.message
    assert "--default-branch" in (error.hint or "")


def test_git_config_names_the_default_branch_and_the_flag_outranks_it(tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home", FILES)
    repos.commit_files(home, {"x": "y"}, branch="one", start="main")
    repos.commit_files(home, {"x": "z"}, branch="two", start="main")
    repos.git(home, "config", "orchestrator.defaultBranch", "one")
    assert site(home).default_branch == "one"
    assert site(home, default_branch="two").default_branch == "two"


def test_the_remotes_own_head_is_asked_when_fetching(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES, branch="main")
    home = repos.clone(upstream, tmp_path / "home")
    repos.git(upstream, "branch", "-m", "main", "develop")
    repos.git(upstream, "symbolic-ref", "HEAD", "refs/heads/develop")
    assert site(home, fetch=True).tip_name == "origin/develop"


def test_the_remembered_head_is_used_when_not_fetching(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES, branch="develop")
    home = repos.clone(upstream, tmp_path / "home")
    assert site(home).tip_name == "origin/develop"


def test_origin_is_the_remote_where_there_are_several(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES)
    home = repos.clone(upstream, tmp_path / "home")
    repos.git(home, "remote", "add", "a-fork", str(tmp_path / "fork.git"))
    assert site(home).remote_name == "origin"


def test_several_remotes_without_origin_are_an_error_that_names_the_flag(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES)
    home = repos.clone(upstream, tmp_path / "home")
    repos.git(home, "remote", "rename", "origin", "one")
    repos.git(home, "remote", "add", "two", str(upstream))
    error = cannot(home)
    assert "one, two" in error.message
    assert "--remote" in (error.hint or "")
    assert site(home, remote="one").remote_name == "one"
    repos.git(home, "config", "orchestrator.remote", "one")
    assert site(home).remote_name == "one"


def test_a_remote_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home", FILES)
    assert "is not a remote" in cannot(home, remote="nowhere").message


def test_a_clone_that_never_fetched_the_default_branch_says_so(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES)
    home = repos.clone(upstream, tmp_path / "home", "bare")
    assert "--fetch" in (cannot(home).hint or "")
    assert site(home, fetch=True).tip_name == "origin/main"
    assert site(home).tip_name == "origin/main"


@pytest.mark.parametrize("bare", [False, True])
def test_a_repository_without_commits_says_so(bare: bool, tmp_path: Path) -> None:
    home = repos.make_repo(tmp_path / "home", None, bare=bare)
    assert "commit" in cannot(home).message


def test_a_remote_without_commits_says_so(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", None)
    home = repos.make_repo(tmp_path / "home", FILES)
    repos.git(home, "remote", "add", "origin", str(upstream))
    assert cannot(home, fetch=True).message


def test_an_unreachable_remote_is_an_error_and_nothing_is_evaluated(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES)
    home = repos.clone(upstream, tmp_path / "home")
    upstream.rename(tmp_path / "gone.git")
    with pytest.raises(RemoteUnreachableError) as caught:
        site(home, fetch=True)
    assert "origin" in caught.value.message
    assert site(home).tip_name == "origin/main"


def test_a_branch_called_run_is_noticed_here_and_on_the_remote(tmp_path: Path) -> None:
    upstream = repos.bare_remote(tmp_path / "up.git", FILES)
    home = repos.clone(upstream, tmp_path / "home")
    assert site(home, fetch=True).run_branch is None
    repos.git(upstream, "branch", "run", "main")
    assert site(home, fetch=True).run_branch == "on origin"
    repos.git(upstream, "branch", "-D", "run")
    repos.git(home, "branch", "run", "main")
    assert site(home).run_branch == "in this repository"
