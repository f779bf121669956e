"""Opening a repository, and saying why one cannot be opened: each reason with its own way out.

pygit2 and the git program must see the same repository and the same configuration. pygit2 finds
it, git is told its answer; both read the files under HOME and nothing else.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pygit2
from pygit2.enums import ConfigLevel

from orchestrator.errors import CannotLookError
from orchestrator.git.environment import home_of
from orchestrator.model.names import Oid, Ref

_FSCK = "look at it with: git fsck"
_NAME_ONE = "run it inside a clone, or name one with -C PATH"
_NOWHERE = "/nonexistent"


def use_home(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Make pygit2 read the configuration git will read; say what is odd about this machine.

    pygit2 looked HOME up once, when it was imported; this is what `environ` says now.

    Raises:
        CannotLookError: this user may not read what is there.
    """
    home = home_of(environ)
    notes: tuple[str, ...] = ()
    if not environ.get("HOME"):
        taken = f"{home} from the password database is used" if home else "no configuration is read"
        notes = (f"HOME is not set, {taken}; set HOME in the crontab or unit to be sure of it",)
    folder = home or _NOWHERE
    _require_home(folder)
    xdg = environ.get("XDG_CONFIG_HOME") or str(Path(folder) / ".config")
    _search(ConfigLevel.GLOBAL, folder)
    _search(ConfigLevel.XDG, str(Path(xdg) / "git"))
    if environ.get("GIT_CONFIG_NOSYSTEM", "").lower() in ("1", "true", "yes", "on"):
        _search(ConfigLevel.SYSTEM, _NOWHERE)
    return notes


def _require_home(folder: str) -> None:
    """Another user's HOME, as `sudo` leaves it: neither pygit2 nor git would get past it."""
    settings = os.path.join(folder, ".gitconfig")
    try:
        os.stat(settings)
    except PermissionError as error:
        raise CannotLookError(
            f"HOME is {folder}, which this user may not enter",
            "set HOME to this user's own folder (sudo -H does)",
        ) from error
    except OSError:
        return
    if not os.access(settings, os.R_OK):
        raise _permission(Path(settings))


def _search(level: ConfigLevel, folder: str) -> None:
    if pygit2.settings.search_path[level] != folder:
        pygit2.settings.search_path[level] = folder


def open_repository(path: str) -> pygit2.Repository:
    """Open the repository at or above `path`.

    Raises:
        CannotLookError: there is none, or it cannot be read, each with its own sentence.
    """
    try:
        shown = os.path.abspath(path)  # as the user wrote it, links not followed
    except FileNotFoundError as error:
        raise CannotLookError("the current folder does not exist any more", _NAME_ONE) from error
    if not _is_there(shown):
        raise CannotLookError(f"{shown} does not exist", _NAME_ONE)
    found = pygit2.discover_repository(shown)
    if found is None:
        raise _not_found(Path(shown))
    try:
        repository = pygit2.Repository(found)
        # pygit2 opens a repository whose HEAD is unreadable, git does not.
        head = repository.references.get("HEAD")
    except (pygit2.GitError, ValueError, OSError) as error:
        raise _cannot_open(Path(found), error) from error
    config = common_folder(Path(found)) / "config"
    if config.exists() and not os.access(config, os.R_OK):
        raise _permission(config)  # libgit2 would go on as if it were empty: without any remote
    if head is None:
        raise CannotLookError(f"the repository {found} is damaged: it has no HEAD", _FSCK)
    return repository


def _is_there(path: str) -> bool:
    """Whether something is there, or may be: a folder on the way that is closed is named later."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):  # ValueError: a NUL in it
        return False
    return True


def _not_found(path: Path) -> CannotLookError:
    """Tell "there is none" from "it is there and may not be read"."""
    for folder in (path, *path.parents):
        blocked = _unreadable(folder)
        if blocked is not None:
            return _permission(blocked)
        if (folder / ".git").exists():
            return CannotLookError(
                f"{folder / '.git'} does not lead to a repository",
                "if it is a worktree that was moved, mend it with: git worktree repair",
            )
    return CannotLookError(
        f"there is no git repository at {path} or above it",
        _NAME_ONE,
    )


def _unreadable(folder: Path) -> Path | None:
    """The first of a folder and its `.git` that this user may not enter, or None."""
    for candidate in (folder, folder / ".git"):
        if candidate.is_dir() and not os.access(candidate, os.R_OK | os.X_OK):
            return candidate
    return None


def blocked(folder: str, *names: str) -> CannotLookError | None:
    """The sentence for the first file or folder on the way to `folder`/`name` that is there and
    that this user may not read; None when that is not what is wrong.
    """
    for name in names:
        at = Path(folder)
        for part in name.split("/"):
            at /= part
            wanted = os.R_OK | os.X_OK if at.is_dir() else os.R_OK
            if not at.exists():
                break
            if not os.access(at, wanted):
                return _permission(at)
    return None


def _permission(path: Path) -> CannotLookError:
    return CannotLookError(
        f"{path} may not be read by this user",
        f"run it as the user who owns the repository, or give access: ls -ld {path}",
    )


def _cannot_open(git_dir: Path, error: Exception) -> CannotLookError:
    """The sentence for a repository that pygit2 found and refused."""
    common = common_folder(git_dir)
    words = str(error)
    settings = _plain_settings(common / "config")
    if settings.get("objectformat", "sha1") != "sha1":
        return CannotLookError(
            f"{git_dir} uses {settings['objectformat']} object ids, which are not supported",
            "use a repository with sha1 object ids: git init --object-format=sha1",
        )
    if settings.get("refstorage", "files") != "files":
        return CannotLookError(
            f"{git_dir} keeps its refs as {settings['refstorage']}, which is not supported",
            "convert it with: git refs migrate --ref-format=files",
        )
    if "not owned by current user" in words:
        folder = git_dir.parent if git_dir.name == ".git" else git_dir
        return CannotLookError(
            f"{folder} belongs to another user",
            f"if you trust it: git config --global --add safe.directory {folder}",
        )
    for candidate in (git_dir, common, common / "config", common / "HEAD", common / "objects"):
        if candidate.exists() and not os.access(candidate, os.R_OK):
            return _permission(candidate)
    if "unsupported" in words:
        return CannotLookError(
            f"{git_dir} uses a repository format that is not supported: {words}",
            "a newer pygit2 may know it: pip install --upgrade pygit2",
        )
    return CannotLookError(f"the repository {git_dir} is damaged: {words}", _FSCK)


def _plain_settings(path: Path) -> dict[str, str]:
    """The `key = value` lines of a config file that may be unreadable, keys in lower case."""
    try:
        lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip().lower(): value.strip().lower() for key, _, value in pairs}


def config_error(name: str, error: Exception) -> CannotLookError:
    """The sentence for a configuration variable that cannot be read."""
    return CannotLookError(
        f"git config {name} cannot be read: {error}",
        f"see where it is set with: git config --show-origin --get-all {name}",
    )


def common_folder(git_dir: Path) -> Path:
    """The repository proper: a linked worktree's folder names it in `commondir`."""
    try:
        named = os.fsdecode((git_dir / "commondir").read_bytes()).strip()
    except OSError:
        return git_dir
    return Path(os.path.normpath(git_dir / named))


def shallow_boundary(common_dir: Path) -> frozenset[Oid]:
    """The commits whose parents a shallow clone cut off."""
    try:
        text = (common_dir / "shallow").read_text("ascii", "replace")
    except OSError:
        return frozenset()
    return frozenset(Oid(line) for line in text.split())


def checked_out(common_dir: Path, *, bare: bool) -> dict[Ref, str]:
    """Branches that a worktree's HEAD (or its unfinished rebase) is on -> the worktree's folder."""
    found: dict[Ref, str] = {}
    if not bare:
        main = common_dir.parent if common_dir.name == ".git" else common_dir
        found.update((ref, str(main)) for ref in _held_by(common_dir))
    linked = common_dir / "worktrees"
    for own in sorted(linked.iterdir()) if linked.is_dir() else ():
        folder = _line(own / "gitdir")
        where = str(Path(folder).parent) if folder else str(own)
        found.update((ref, where) for ref in _held_by(own))
    return found


def _held_by(git_dir: Path) -> list[Ref]:
    head = _line(git_dir / "HEAD").removeprefix("ref: ")
    rebased = [_line(git_dir / f / "head-name") for f in ("rebase-merge", "rebase-apply")]
    return [Ref(name) for name in (head, *rebased) if name.startswith("refs/")]


def _line(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return ""
