"""Opening: from anywhere in a repository, and one sentence for each reason it cannot be."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import CannotLookError
from orchestrator.git import opening
from orchestrator.git.reader import Reader
from tests.support import repos


def reader(path: Path, **environ: str) -> Reader:
    return Reader.open(str(path), {**os.environ, **environ})


def same(found: Reader, path: Path) -> bool:
    """Whether pygit2 and git both stand in this repository."""
    told = Path(repos.git(path, "rev-parse", "--absolute-git-dir"))
    by_git = found.git.run("rev-parse", "--absolute-git-dir").stdout.decode().strip()
    return Path(found.git_dir) == told == Path(by_git)


@pytest.mark.parametrize("below", [".", "sub", "sub/deeper", ".git", ".git/refs"])
def test_it_opens_from_anywhere_in_a_clone(tmp_path: Path, below: str) -> None:
    path = repos.make_repo(tmp_path / "r", {"sub/deeper/f": "f"})
    found = reader(path / below)
    assert same(found, path)
    assert found.workdir == found.path == str(path)
    assert found.common_dir == found.git_dir == str(path / ".git")
    assert not found.is_bare


def test_it_opens_a_bare_repository(tmp_path: Path) -> None:
    path = repos.bare_remote(tmp_path / "r.git", {"a": "a"})
    found = reader(path)
    assert same(found, path)
    assert found.is_bare
    assert found.workdir is None
    assert found.path == str(path)


def test_it_opens_a_linked_worktree(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    repos.git(path, "worktree", "add", "-q", str(tmp_path / "w"), "-b", "other")
    (tmp_path / "w" / "sub").mkdir()
    found = reader(tmp_path / "w" / "sub")
    assert same(found, tmp_path / "w")
    assert found.common_dir == str(path / ".git")
    assert found.head_ref() == "refs/heads/other"
    assert found.workdir == str(tmp_path / "w")
    assert found.git.cwd == str(tmp_path / "w")


def test_it_opens_with_head_detached_or_unborn(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    repos.git(path, "checkout", "-q", "--detach")
    assert reader(path).head_ref() is None
    unborn = reader(repos.make_repo(tmp_path / "u", branch="trunk"))
    assert unborn.head_ref() == "refs/heads/trunk"
    assert unborn.is_empty


def test_git_variables_of_the_caller_lead_neither_of_the_two_astray(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    other = repos.make_repo(tmp_path / "other", {"b": "b"})
    found = reader(path, GIT_DIR=str(other / ".git"), GIT_COMMON_DIR=str(other / ".git"))
    assert same(found, path)


def refusal(path: Path) -> CannotLookError:
    with pytest.raises(CannotLookError) as caught:
        reader(path)
    return caught.value


def test_a_folder_without_a_repository_says_so(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert error.message == f"there is no git repository at {tmp_path} or above it"
    assert error.hint is not None
    assert "-C PATH" in error.hint


def test_a_path_that_is_not_there_says_so(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none").message == f"{tmp_path / 'none'} does not exist"


def test_sha256_is_named(tmp_path: Path) -> None:
    repos.git(tmp_path, "init", "-q", "--object-format=sha256", "r")
    assert "sha256 object ids" in refusal(tmp_path / "r").message


def test_reftable_is_named(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    repos.git(path, "config", "core.repositoryformatversion", "1")
    repos.git(path, "config", "extensions.refStorage", "reftable")
    error = refusal(path)
    assert "reftable" in error.message
    assert error.hint == "convert it with: git refs migrate --ref-format=files"


def test_an_unknown_extension_is_named(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    repos.git(path, "config", "core.repositoryformatversion", "1")
    repos.git(path, "config", "extensions.fromTheFuture", "yes")
    assert "repository format that is not supported" in refusal(path).message


def _empty_head(path: Path) -> None:
    (path / ".git" / "HEAD").write_text("")


def _torn_config(path: Path) -> None:
    (path / ".git" / "config").write_text("[core\n\0")


@pytest.mark.parametrize("damage", [_empty_head, _torn_config])
def test_a_damaged_repository_says_so(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    damage(path)
    error = refusal(path)
    assert "is damaged" in error.message
    assert error.hint == "look at it with: git fsck"


def test_a_worktree_whose_repository_moved_says_so(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    repos.git(path, "worktree", "add", "-q", str(tmp_path / "w"))
    path.rename(tmp_path / "moved")
    error = refusal(tmp_path / "w")
    assert "does not lead to a repository" in error.message
    assert error.hint is not None
    assert "git worktree repair" in error.hint


def test_another_owner_is_named_with_the_line_to_type(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    words = f"{path}: repository path '{path}' is not owned by current user"
    error = opening._cannot_open(path / ".git", ValueError(words))
    if os.geteuid() == 0:  # only root can give a folder away; else libgit2's sentence stands in
        os.chown(path, 65534, 65534)
        os.chown(path / ".git", 65534, 65534)
        error = refusal(path)
    assert error.message == f"{path} belongs to another user"
    assert error.hint == f"if you trust it: git config --global --add safe.directory {path}"


_AS_NOBODY = """
import os, sys
from orchestrator.errors import CannotLookError
from orchestrator.git.reader import Reader
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    Reader.open(sys.argv[1], dict(os.environ))
except CannotLookError as error:
    print(error.message)
"""


@pytest.mark.parametrize("closed", [".", ".git"])
def test_a_folder_this_user_may_not_enter_is_named(tmp_path: Path, closed: str) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    for folder in [*tmp_path.parents, tmp_path]:
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    (path / closed).chmod(0o000)
    # Another process, because root may enter everything.
    done = subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)},
        check=False,
    )
    (path / closed).chmod(0o755)
    blocked = path / closed if closed != "." else path
    assert done.stdout == f"{blocked} may not be read by this user\n", done.stderr


def test_without_home_the_password_database_is_asked_and_it_is_said(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    environ = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CONFIG_HOME")}
    found = Reader.open(str(path), environ)
    (note,) = found.notes
    assert "HOME is not set" in note
    assert "set HOME in the crontab" in note
    import pwd

    home = pwd.getpwuid(os.getuid()).pw_dir
    assert (
        found.git.run("config", "--type=path", "--default=~", "x.y").stdout.decode() == home + "\n"
    )


def test_with_home_nothing_is_noted(tmp_path: Path) -> None:
    assert reader(repos.make_repo(tmp_path / "r", {"a": "a"})).notes == ()


def test_pygit2_and_git_read_the_same_configuration(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    home, xdg = tmp_path / "home", tmp_path / "xdg"
    (xdg / "git").mkdir(parents=True)
    home.mkdir()
    (home / ".gitconfig").write_text("[orchestrator]\n\tremote = up\n[user]\n\tname = Ann\n")
    (xdg / "git" / "config").write_text("[user]\n\tname = Shadowed\n\temail = ann@example.org\n")
    other = tmp_path / "other"
    other.write_text("[user]\n\tname = Mallory\n")
    found = reader(path, HOME=str(home), XDG_CONFIG_HOME=str(xdg), GIT_CONFIG_GLOBAL=str(other))
    for name in ("orchestrator.remote", "user.name", "user.email"):
        by_git = found.git.run("config", "--get", name).stdout.decode().strip()
        assert found.config(name) == by_git
    assert found.config("user.name") == "Ann"
