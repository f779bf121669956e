"""A private working copy for one run: the branch's files, and nothing of ours an agent could bend.

It is a repository of its own that only borrows our objects (an alternates file): no remote, none
of our refs, no hooks, no configuration but its own. Whatever the agent does to it, our refs,
configuration and index do not notice. A linked worktree would share all of these.

Files are written as they are stored: attributes are switched off, so that no filter program runs
and no line end changes, and the copy can be compared with the tree byte for byte.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import OrchestratorError
from orchestrator.folders import private_folder, remove_tree
from orchestrator.git.reader import Reader
from orchestrator.git.runner import Git, GitFailedError
from orchestrator.model.names import Oid

_CHECKOUT_TIMEOUT_S = 600.0

# What git in the copy needs to know, for the agent's own use of it. Nothing here is relied upon
# later: the agent can change it.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tlogallrefupdates = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\tfsmonitor = false
[user]
\tname = agent
\temail = agent@localhost
[commit]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
"""
_NO_ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding -crlf\n"

# These win over what HOME or /etc configure, whoever runs this.
_CHECKOUT_SETTINGS = (
    ("core.autocrlf", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.symlinks", "true"),
    ("core.fileMode", "true"),
    ("core.sparseCheckout", "false"),
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("checkout.workers", "0"),  # as many as there are processors, where that pays
)


class WorkingCopyError(OrchestratorError):
    """The private working copy could not be made."""


@contextmanager
def workcopy(
    git: Git, reader: Reader, folder: Path, commit: Oid, branch: str, *, checkout: bool
) -> Iterator[Path]:
    """Make a private working copy of `commit` at `folder`, and remove it afterwards.

    Args:
        git: the runner to take the environment from.
        reader: the repository the objects are borrowed from: bare, shallow, a linked worktree's,
            or partial with the commit's objects already here.
        folder: where to make it; it may not have anything in it. Made 0700.
        commit: the commit whose files are wanted.
        branch: the short name of the branch HEAD is on in the copy.
        checkout: write the files, in a repository of its own; else the folder stays empty.

    Raises:
        WorkingCopyError: there is no room or permission, the folder is not empty, an object is
            missing, or the tree has a name that git refuses to write.
    """
    try:
        private_folder(folder)
        if any(folder.iterdir()):
            raise WorkingCopyError(f"{folder} is not empty")
    except OSError as error:
        raise WorkingCopyError(
            f"the working copy {folder} cannot be made: {error.strerror}",
            "set another place: git config orchestrator.workDir PATH",
        ) from error
    try:
        if checkout:
            _fill(git, reader, folder, commit, branch)
        yield folder
    finally:
        remove_tree(folder)


def _fill(git: Git, reader: Reader, folder: Path, commit: Oid, branch: str) -> None:
    try:
        _make_repository(folder / ".git", reader, commit, branch)
        inside = git.elsewhere(str(folder / ".git"), cwd=str(folder))
        env = {"GIT_WORK_TREE": str(folder), "GIT_CONFIG_COUNT": str(len(_CHECKOUT_SETTINGS))}
        for number, (key, value) in enumerate(_CHECKOUT_SETTINGS):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        inside.run("read-tree", commit, env=env)
        # -u: note in the index what was written, so that the agent's `git status` is quick.
        options = ("--all", "-u", "--quiet")
        inside.run("checkout-index", *options, env=env, timeout=_CHECKOUT_TIMEOUT_S)
    except GitFailedError as error:
        said = error.completed.stderr.strip().splitlines()
        words = said[0].removeprefix("error: ").removeprefix("fatal: ") if said else error.message
        raise WorkingCopyError(
            f"the files of {commit[:10]} could not be written to {folder}: {words}",
            f"is there room? df -h {folder.parent}",
        ) from error
    except OSError as error:
        raise WorkingCopyError(
            f"the working copy {folder} cannot be made: {error.strerror}",
            f"is there room and permission? df -h {folder.parent}",
        ) from error


def _make_repository(path: Path, reader: Reader, commit: Oid, branch: str) -> None:
    """Write a repository by hand: `git init` would copy templates, hooks among them."""
    for name in ("objects/info", "objects/pack", "refs/tags", "info"):
        (path / name).mkdir(mode=0o700, parents=True)
    common = Path(reader.common_dir)
    ref = path / "refs/heads" / branch
    ref.parent.mkdir(mode=0o700, parents=True)
    ref.write_text(f"{commit}\n")
    (path / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    (path / "config").write_text(_CONFIG)
    (path / "info/attributes").write_text(_NO_ATTRIBUTES)
    (path / "info/exclude").write_text("")
    (path / "objects/info/alternates").write_bytes(_quoted(common / "objects") + b"\n")
    try:
        cut_off = (common / "shallow").read_bytes()
    except FileNotFoundError:
        return
    (path / "shallow").write_bytes(cut_off)  # else `git log` misses the parents


def _quoted(path: Path) -> bytes:
    """A path as the alternates file takes any: a line, quoted where it has odd bytes."""
    raw = os.fsencode(path)
    if raw.isascii() and raw.decode().isprintable() and not raw.startswith((b'"', b"#")):
        return raw
    special = {b"\\": b"\\\\", b'"': b'\\"'}
    pieces = (bytes([b]) for b in raw)
    inner = b"".join(
        special.get(p, p if p.isascii() and p.decode().isprintable() else b"\\%03o" % p[0])
        for p in pieces
    )
    return b'"' + inner + b'"'
