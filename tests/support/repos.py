"""Real repositories for tests, cheap ones: built with pygit2 (a few milliseconds), by the git
program only where its own behaviour is the point (clones).

Functions take and give paths. Everything is dated, so that the same calls make the same ids.
"""

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pygit2
from pygit2.enums import ObjectType

from orchestrator.git.objects import Mode, write_tree
from orchestrator.model.names import Oid, Ref

Content = str | bytes | None
Files = Mapping[str, Content]
CloneKind = Literal["normal", "bare", "mirror", "single-branch", "shallow", "partial"]

WHEN = 1_764_000_000
"""2025-11-24T16:00:00Z: when commits were made, unless said otherwise (seconds since 1970)."""

_CLONE_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "normal": (),
    "bare": ("--bare",),
    "mirror": ("--mirror",),
    "single-branch": ("--single-branch",),
    "shallow": ("--depth=1",),
    "partial": ("--filter=blob:none", "--no-checkout"),
}


def environment(**extra: str) -> dict[str, str]:
    """The sealed environment, with somebody who commits."""
    people = {f"GIT_{w}_NAME": "Ann Author" for w in ("AUTHOR", "COMMITTER")}
    people |= {f"GIT_{w}_EMAIL": "ann@example.org" for w in ("AUTHOR", "COMMITTER")}
    dates = {f"GIT_{w}_DATE": f"{WHEN} +0000" for w in ("AUTHOR", "COMMITTER")}
    return {**os.environ, **people, **dates, "LC_ALL": "C", **extra}


def git(path: Path | str, *args: str, stdin: bytes = b"", ok: bool = True, **extra: str) -> str:
    """Run the git program in `path` as a person would; what it printed, stripped.

    Raises:
        AssertionError: it failed and `ok` was asked for; with what it said.
    """
    done = subprocess.run(
        ["git", "-C", str(path), *args],
        input=stdin,
        capture_output=True,
        env=environment(**extra),
        check=False,
        timeout=60,
    )
    assert not ok or done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def opened(path: Path | str) -> pygit2.Repository:
    return pygit2.Repository(str(path))


def make_repo(
    path: Path,
    files: Files | None = None,
    *,
    bare: bool = False,
    branch: str = "main",
    when: int = WHEN,
) -> Path:
    """A repository with one commit of `files` on `branch`, checked out unless it is bare.

    `files=None` leaves it without any commit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    pygit2.init_repository(str(path), bare=bare, initial_head=branch)
    if files is not None:
        commit_files(path, files, branch=branch, message="Begin", when=when)
    return path


def commit_files(
    path: Path,
    files: Files,
    *,
    branch: str = "main",
    start: str | None = None,
    message: str = "Change files",
    when: int = WHEN,
    author: str = "Ann Author",
    modes: Mapping[str, int] | None = None,
) -> Oid:
    """Commit `files` (None removes one) on top of `branch`; the new commit's id.

    A branch that does not exist yet begins at the revision `start`, or with no parent. `when` is
    author's and committer's time; `modes` are by path, such as `{"link": 0o120000}`. The index
    and the working tree follow when `branch` is checked out there.
    """
    repo = opened(path)
    name = f"refs/heads/{branch}"
    tip = repo.references.get(name)
    base = repo.revparse_single(start).peel(pygit2.Commit) if start is not None else None
    parent = tip.peel(pygit2.Commit) if tip is not None else base
    tree = tree_with(repo, parent.tree if parent is not None else None, files, modes or {})
    parents = [parent.id] if parent is not None else []
    return _set_branch(repo, name, store_commit(repo, tree, parents, message, when, author))


def store_commit(
    repo: pygit2.Repository,
    tree: pygit2.Oid | str,
    parents: Sequence[pygit2.Oid | str],
    message: str,
    when: int = WHEN,
    author: str = "Ann Author",
) -> Oid:
    """A commit object that no ref points to; its id."""
    who = f"{author} <{author.partition(' ')[0].lower()}@example.org> {when} +0000"
    lines = [f"tree {tree}", *(f"parent {p}" for p in parents)]
    lines += [f"author {who}", f"committer {who}", "", message.rstrip("\n") + "\n"]
    return Oid(str(repo.odb.write(ObjectType.COMMIT, "\n".join(lines).encode())))


def tree_with(
    repo: pygit2.Repository, base: pygit2.Tree | None, files: Files, modes: Mapping[str, int]
) -> pygit2.Oid:
    """The id of `base` with `files` put in (or, when None, taken out)."""
    index = pygit2.Index()
    if base is not None:
        index.read_tree(base)
    for name, content in files.items():
        if content is None:
            index.remove(name)
            continue
        data = content.encode() if isinstance(content, str) else content
        mode = pygit2.enums.FileMode(modes.get(name, Mode.FILE))
        index.add(pygit2.IndexEntry(name, repo.create_blob(data), mode))
    return index.write_tree(repo)


def _set_branch(repo: pygit2.Repository, name: str, oid: Oid) -> Oid:
    current = repo.references.get("HEAD")
    here = current is not None and current.raw_target == name.encode() and not repo.is_bare
    repo.references.create(name, pygit2.Oid(hex=oid), force=True)
    if here:
        repo.checkout(name, strategy=pygit2.enums.CheckoutStrategy.FORCE)
    return oid


def bare_remote(path: Path, files: Files | None = None, *, branch: str = "main") -> Path:
    """A bare repository as a server keeps it; it serves partial clones too."""
    make_repo(path, files, bare=True, branch=branch)
    repo = opened(path)
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "http.receivepack"):
        repo.config[key] = True
    return path


def clone(remote: Path | str, path: Path, kind: CloneKind = "normal") -> Path:
    """Clone a remote (a path or a URL) with the git program."""
    url = f"file://{remote}" if isinstance(remote, Path) else remote
    git(path.parent, "clone", "--quiet", *_CLONE_OPTIONS[kind], url, str(path))
    return path


def big_tree(path: Path, folder: str, count: int) -> Oid:
    """A commit on `main` with `count` folders in `folder`, each with a `sweep.yaml`; its id."""
    repo = opened(path)
    blob = Oid(str(repo.create_blob(b"at: 2026-01-01T00:00:00Z\n")))
    inner = Oid(str(repo.odb.write(ObjectType.TREE, write_tree([(b"sweep.yaml", 0o100644, blob)]))))
    rows = [(b"old-%06d-2026-01-01" % n, int(Mode.FOLDER), inner) for n in range(count)]
    outer = Oid(str(repo.odb.write(ObjectType.TREE, write_tree(rows))))
    root = write_tree([(os.fsencode(folder), int(Mode.FOLDER), outer)])
    tree = repo.odb.write(ObjectType.TREE, root)
    oid = store_commit(repo, tree, [], "Many runs")
    repo.references.create("refs/heads/main", pygit2.Oid(hex=oid), force=True)
    return oid


def pack_many_refs(path: Path, count: int, oid: Oid) -> None:
    """Put `count` branches `refs/heads/bulk/…` into packed-refs."""
    folder = Path(opened(path).path)
    rows = [f"{oid} refs/heads/bulk/{n:07d}\n" for n in range(count)]
    (folder / "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n" + "".join(rows)
    )


# -- how a reviewer brings a branch in ---------------------------------------------------------


def merge_commit(path: Path, branch: str, into: str = "main", when: int = WHEN) -> Oid:
    """Merge with a merge commit, as `git merge --no-ff` does."""
    return _merged(path, branch, into, when, with_branch=True)


def squash(path: Path, branch: str, into: str = "main", when: int = WHEN) -> Oid:
    """One commit with the branch's changes and no trace of its commits."""
    return _merged(path, branch, into, when, with_branch=False)


def _merged(path: Path, branch: str, into: str, when: int, *, with_branch: bool) -> Oid:
    repo = opened(path)
    ours, theirs = (_tip(repo, b) for b in (into, branch))
    tree = repo.merge_commits(ours, theirs).write_tree(repo)
    parents = [ours.id, theirs.id] if with_branch else [ours.id]
    oid = store_commit(repo, tree, parents, f"Merge {branch}", when, "Rita Reviewer")
    return _set_branch(repo, f"refs/heads/{into}", oid)


def fast_forward(path: Path, branch: str, into: str = "main") -> Oid:
    """Move `into` to the branch's tip."""
    repo = opened(path)
    return _set_branch(repo, f"refs/heads/{into}", Oid(str(_tip(repo, branch).id)))


def rebase(path: Path, branch: str, into: str = "main", when: int = WHEN) -> Oid:
    """Replay the branch's commits on `into`, as a forge's "rebase and merge" does."""
    repo = opened(path)
    tip, top = _tip(repo, into), _tip(repo, branch)
    base = repo.merge_base(tip.id, top.id)
    commits = []
    while top.id != base:
        commits.append(top)
        top = top.parents[0]
    for commit in reversed(commits):
        tree = repo.merge_trees(commit.parents[0].tree, tip.tree, commit.tree).write_tree(repo)
        oid = store_commit(repo, tree, [tip.id], commit.message, when, "Rita Reviewer")
        tip = repo[oid].peel(pygit2.Commit)
    return _set_branch(repo, f"refs/heads/{into}", Oid(str(tip.id)))


def _tip(repo: pygit2.Repository, branch: str) -> pygit2.Commit:
    return repo.references[f"refs/heads/{branch}"].peel(pygit2.Commit)


# -- looking -----------------------------------------------------------------------------------


def refs(path: Path) -> dict[Ref, Oid]:
    """Every ref and what it points to."""
    lines = git(path, "for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    pairs = (line.split(" ", 1) for line in lines)
    return {Ref(name): Oid(oid) for oid, name in pairs}


def tip(path: Path, branch: str = "main") -> Oid:
    return Oid(str(_tip(opened(path), branch).id))


def read(path: Path, revision: str) -> str:
    """A file of a commit (`main:README.md`)."""
    return opened(path).revparse_single(revision).peel(pygit2.Blob).data.decode()


def snapshot_user_state(path: Path) -> dict[str, str]:
    """What is the user's, byte for byte: index, HEAD, stash, config, working tree, reflog of HEAD
    and every ref that is not a sweep branch or its tracking ref. Compare two with `==`.
    """
    repo = opened(path)
    folder = Path(repo.path)
    state = {name: _digest(folder / name) for name in _USERS_FILES if (folder / name).exists()}
    state |= {ref: oid for ref, oid in refs(path).items() if not _is_ours(ref)}
    if repo.workdir:
        state |= _files(Path(repo.workdir), skip=folder)
    return state


_USERS_FILES = (
    "HEAD",
    "index",
    "config",
    "config.worktree",
    "packed-refs.lock",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "MERGE_HEAD",
    "logs/HEAD",
    "logs/refs/stash",
    "info/exclude",
    "description",
)


def _is_ours(ref: str) -> bool:
    return ref.startswith(("refs/heads/run/", "refs/remotes/"))


def digest_everything(path: Path) -> dict[str, str]:
    """Every file of the repository and its working tree, objects and refs included."""
    repo = opened(path)
    state = _files(Path(repo.path), skip=None)
    if repo.workdir:
        state |= _files(Path(repo.workdir), skip=Path(repo.path))
    return state


def digest_folder(path: Path) -> dict[str, str]:
    """Every file and folder below `path`, a repository or not, a damaged one too."""
    return _files(path, skip=None)


def objects(path: Path) -> frozenset[str]:
    """The ids of every object in the repository, reachable or not."""
    listed = git(path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return frozenset(listed.split())


def _files(folder: Path, skip: Path | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for root, folders, names in os.walk(folder):
        here = Path(root)
        if skip is not None:
            folders[:] = [f for f in folders if (here / f).resolve() != skip.resolve()]
        for name in [*names, *(f for f in folders if (here / f).is_symlink())]:
            found[str(here / name)] = _digest(here / name)
        found[str(here) + "/"] = oct(here.lstat().st_mode)
    return found


def _digest(path: Path) -> str:
    data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    return f"{oct(path.lstat().st_mode)} {hashlib.sha256(data).hexdigest()}"


def race(commands: Sequence[Sequence[str]], timeout: float = 60) -> list[str]:
    """Start several programs at once and wait for all of them; what each printed."""
    started = [
        subprocess.Popen(c, stdout=subprocess.PIPE, env=environment(), text=True) for c in commands
    ]
    return [p.communicate(timeout=timeout)[0].strip() for p in started]
