"""Where to look: which repository, which remote, which default branch; and a fetch when asked for.

Nothing here is guessed. Where two answers are possible it is an error that names the flag.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from orchestrator.errors import CannotLookError
from orchestrator.git.reader import Reader
from orchestrator.git.runner import Git
from orchestrator.git.wire import Remote, RemoteHead, is_branch_name
from orchestrator.model.names import BRANCH_FOLDER, Oid, Ref
from orchestrator.outcome import RepositoryInfo

_USUAL_NAMES = ("main", "master", "trunk")
_FLAG_HINT = (
    "name it with --default-branch, or once with: git config orchestrator.defaultBranch NAME"
)


class Settings(NamedTuple):
    """What the command line says about where to look.

    Attributes:
        path: a folder in the repository, or the repository.
        environ: the environment of this process; nothing below reads `os.environ`.
    """

    path: str = "."
    remote: str | None = None
    default_branch: str | None = None
    environ: Mapping[str, str] = os.environ


class Site(NamedTuple):
    """An opened repository with its arbiter and its default-branch tip.

    Attributes:
        remote: talks to the remote that arbitrates; None when everything happens here.
        run_branch: where a branch called `run` stands in the way of every `run/<slug>`, if it does.
        fetched: whether the remote was just asked, so that its refs are fresh.
    """

    settings: Settings
    reader: Reader
    git: Git
    remote: Remote | None
    default_branch: str
    tip_ref: Ref
    tip: Oid
    run_branch: str | None
    fetched: bool

    @property
    def remote_name(self) -> str | None:
        return self.remote.name if self.remote is not None else None

    @property
    def tip_name(self) -> str:
        """The default branch as people write it."""
        prefix = f"{self.remote.name}/" if self.remote is not None else ""
        return prefix + self.default_branch

    @property
    def info(self) -> RepositoryInfo:
        return RepositoryInfo(
            path=self.reader.path,
            remote=self.remote_name,
            default_branch=self.default_branch,
            tip=self.tip,
            tip_name=self.tip_name,
        )


def open_site(settings: Settings, *, fetch: bool, reader: Reader | None = None) -> Site:
    """Open the repository, find remote and default branch, fetch when asked, read the tip.

    Raises:
        CannotLookError: no repository, no or an ambiguous remote or default branch, no commit.
        RemoteUnreachableError: `fetch` was asked for and the remote did not answer.
    """
    reader = reader or Reader.open(settings.path, settings.environ)
    git = reader.git
    name = _remote_name(reader, settings)
    remote = Remote(git, reader, name) if name is not None else None
    head = remote.head() if fetch and remote is not None else None
    if fetch:
        reader.allow_fetch(git)
    branch = _default_branch(reader, settings, name, head)
    if fetch and remote is not None:
        remote.fetch(branch)
    return _at_tip(settings, reader, git, remote, branch, head)


def _at_tip(
    settings: Settings,
    reader: Reader,
    git: Git,
    remote: Remote | None,
    branch: str,
    head: RemoteHead | None,
) -> Site:
    prefix = f"refs/remotes/{remote.name}/" if remote is not None else "refs/heads/"
    tip_ref = Ref(prefix + branch)
    tip = reader.resolve(tip_ref)
    if tip is None:
        raise _no_tip(reader, remote.name if remote else None, branch, fetched=head is not None)
    run_here = reader.resolve(Ref(f"refs/heads/{BRANCH_FOLDER}")) is not None
    run_there = remote is not None and _has_run_branch(reader, remote, head)
    return Site(
        settings=settings,
        reader=reader,
        git=git,
        remote=remote,
        default_branch=branch,
        tip_ref=tip_ref,
        tip=tip,
        run_branch="in this repository"
        if run_here
        else f"on {remote.name}"
        if run_there and remote is not None
        else None,
        fetched=head is not None,
    )


def _has_run_branch(reader: Reader, remote: Remote, head: RemoteHead | None) -> bool:
    """What the remote just said; without asking it, what was fetched last."""
    if head is not None:
        return head.has_run_branch
    return reader.resolve(Ref(f"refs/remotes/{remote.name}/{BRANCH_FOLDER}")) is not None


def _no_tip(reader: Reader, remote: str | None, branch: str, *, fetched: bool) -> CannotLookError:
    if reader.is_empty and remote is None:
        return CannotLookError(
            f"{reader.path} has no commit on {branch} yet",
            "commit orchestrator.yaml to the default branch first",
        )
    if remote is None:
        return CannotLookError(f"{reader.path} has no branch {branch}", _FLAG_HINT)
    if fetched:
        return CannotLookError(f"{remote} has no branch {branch}", _FLAG_HINT)
    return CannotLookError(
        f"this clone has not fetched {remote}/{branch}",
        f"if {remote} has it, run the command with --fetch; if not, {_FLAG_HINT}",
    )


def _remote_name(reader: Reader, settings: Settings) -> str | None:
    """`--remote`, git config `orchestrator.remote`, `origin`, the only remote; None without any."""
    remotes = reader.remotes()
    listed = ", ".join(remotes) or "none"
    asked = (
        ("--remote", settings.remote),
        ("git config orchestrator.remote", reader.config("orchestrator.remote")),
    )
    for said_by, name in asked:
        if name is None:
            continue
        if name not in remotes:
            raise CannotLookError(
                f'{said_by} names "{name}", which is not a remote of {reader.path}',
                f"the remotes are: {listed}",
            )
        return name
    if "origin" in remotes:
        return "origin"
    if len(remotes) > 1:
        raise CannotLookError(
            f"{reader.path} has several remotes and none is called origin: {listed}",
            "name one with --remote, or once with: git config orchestrator.remote NAME",
        )
    return remotes[0] if remotes else None


def _default_branch(
    reader: Reader, settings: Settings, remote: str | None, head: RemoteHead | None
) -> str:
    """The first that answers: flag, git config, the remote's HEAD, a bare HEAD, one usual name."""
    asked = settings.default_branch
    if asked is None:
        asked = reader.config("orchestrator.defaultBranch")
    if asked is not None:
        branch = asked.removeprefix("refs/heads/")
        if not is_branch_name(branch):
            raise CannotLookError(f'the default branch cannot be called "{asked}"', _FLAG_HINT)
        return branch
    if head is not None and head.default_branch is not None:
        return head.default_branch
    if remote is not None and head is None:
        prefix = f"refs/remotes/{remote}/"
        target = reader.symref(Ref(prefix + "HEAD"))
        if target is not None and target.startswith(prefix):
            return target.removeprefix(prefix)
    if reader.is_bare:
        target = reader.head_ref()
        if target is not None and target.startswith("refs/heads/"):
            return target.removeprefix("refs/heads/")
    return _usual_branch(reader, remote)


def _usual_branch(reader: Reader, remote: str | None) -> str:
    prefix = f"refs/remotes/{remote}/" if remote is not None else "refs/heads/"
    present = [n for n in _USUAL_NAMES if reader.resolve(Ref(prefix + n)) is not None]
    if len(present) == 1:
        return present[0]
    if reader.is_empty and remote is None:
        raise CannotLookError(
            f"{reader.path} has no commits yet",
            "commit orchestrator.yaml to the default branch first",
        )
    where = remote or reader.path
    found = f"{' and '.join(present)} both exist" if present else "nothing says which it is"
    raise CannotLookError(f"the default branch of {where} is not known: {found}", _FLAG_HINT)
