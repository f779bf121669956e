"""Reading a repository: refs, trees, files, history, configuration. Nothing here changes anything.

Objects come through pygit2's object database as raw bytes (`orchestrator.git.objects`); listing
refs is the git program's, which alone is flat with a hundred thousand packed refs.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pygit2

from orchestrator.errors import CannotLookError, MissingObjectError
from orchestrator.git import opening, porcelain
from orchestrator.git.objects import (
    CommitInfo,
    Mode,
    clean_person,
    kind_of,
    read_commit,
    read_tree,
)
from orchestrator.git.runner import Git
from orchestrator.model.names import BRANCH_FOLDER, Oid, Ref, SweepName

__all__ = ["CommitInfo", "Entry", "Identity", "Reader", "SweepRef", "TooLargeError"]

_FALLBACK_NAME = "orchestrator"
_FALLBACK_EMAIL = "orchestrator@localhost"
_SYMREF_DEPTH = 5
_TREES_KEPT = 64


@dataclass(frozen=True, slots=True)
class SweepRef:
    """A ref that is a sweep's branch: local when `remote` is None, else remote-tracking."""

    name: Ref
    oid: Oid
    remote: str | None
    sweep: SweepName


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at a path of a commit.

    Attributes:
        kind: `blob`, `executable`, `symlink`, `tree` or `gitlink`.
        size: bytes, for blobs and symlinks that are in this clone; else None.
    """

    kind: str
    oid: Oid
    size: int | None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits; `fallback` when neither the environment nor git config said so fully."""

    name: str
    email: str
    fallback: bool


class TooLargeError(CannotLookError):
    """A file is larger than its reader allows."""


class Reader:
    """One opened repository.

    Attributes:
        git_dir: the repository, or the linked worktree's own folder in it; absolute.
        common_dir: the repository proper, where refs and objects are.
        workdir: the working tree's top folder; None in a bare repository.
        path: where it is, for people.
        notes: sentences about this machine that are worth saying once.
        git: runs local git commands on it.
    """

    def __init__(
        self, repository: pygit2.Repository, environ: Mapping[str, str], notes: tuple[str, ...]
    ) -> None:
        self.repository = repository
        self.notes = notes
        self.git_dir = os.path.abspath(repository.path)
        self.common_dir = str(opening.common_folder(Path(self.git_dir)))
        workdir = None if repository.is_bare else repository.workdir
        self.workdir = os.path.abspath(workdir) if workdir else None
        self.path = self.workdir or self.git_dir
        self.git = Git(self.git_dir, environ=environ, cwd=self.workdir)
        self._fetcher: Git | None = None
        self._trees: dict[Oid, dict[bytes, tuple[int, Oid]]] = {}

    @classmethod
    def open(cls, path: str, environ: Mapping[str, str]) -> "Reader":
        """Open the repository at or above `path`: a subfolder, a linked worktree, a bare one.

        Raises:
            CannotLookError: each reason with its own sentence and hint (`git.opening`).
        """
        notes = opening.use_home(environ)
        return cls(opening.open_repository(path), environ, notes)

    @property
    def is_bare(self) -> bool:
        return self.repository.is_bare

    @property
    def is_shallow(self) -> bool:
        return self.repository.is_shallow

    @property
    def is_partial(self) -> bool:
        """Whether objects may be missing here on purpose (`git clone --filter`)."""
        if self.config("extensions.partialClone") is not None:
            return True
        return any(self.config_bool(f"remote.{r}.promisor", default=False) for r in self.remotes())

    @property
    def is_empty(self) -> bool:
        """Whether it has no ref at all; a clone of an empty repository is."""
        done = self.git.run("for-each-ref", "--count=1", "--format=%(refname)")
        return not done.stdout

    # -- configuration ---------------------------------------------------------------------------

    def remotes(self) -> tuple[str, ...]:
        """The configured remotes' names, in configuration order."""
        return tuple(name for name in self.repository.remotes.names() if name is not None)

    def config(self, name: str) -> str | None:
        """The last value of a configuration variable, or None when it is not set."""
        values = self.config_all(name)
        return values[-1] if values else None

    def config_all(self, name: str) -> tuple[str, ...]:
        """Every value of a configuration variable, in order.

        Raises:
            CannotLookError: the configuration cannot be read.
        """
        try:
            return tuple(value or "" for value in self.repository.config.get_multivar(name))
        except KeyError:
            return ()
        except (pygit2.GitError, ValueError, OSError) as error:
            raise opening.config_error(name, error) from error

    def config_bool(self, name: str, default: bool) -> bool:
        """A configuration variable as git reads a boolean.

        Raises:
            CannotLookError: the value is not a boolean, or the configuration cannot be read.
        """
        try:
            return self.repository.config.get_bool(name)
        except KeyError:
            return default
        except (pygit2.GitError, ValueError, OSError) as error:
            raise opening.config_error(name, error) from error

    def identity(self, environ: Mapping[str, str]) -> Identity:
        """Who commits here: GIT_COMMITTER_*, then `committer.*`, then `user.*`, then a fallback."""
        found = []
        for field in ("name", "email"):
            said = (
                environ.get(f"GIT_COMMITTER_{field.upper()}"),
                self.config(f"committer.{field}"),
                self.config(f"user.{field}"),
            )
            found.append(next((c for s in said if s and (c := clean_person(s))), None))
        name, email = found
        fallback = name is None or email is None
        return Identity(name or _FALLBACK_NAME, email or _FALLBACK_EMAIL, fallback)

    # -- refs ------------------------------------------------------------------------------------

    def resolve(self, ref: Ref) -> Oid | None:
        """The object a ref points to, through symbolic refs; None when there is no such ref.

        Raises:
            CannotLookError: the ref's file is damaged.
        """
        name: Ref | None = ref
        for _ in range(_SYMREF_DEPTH):
            if name is None:
                return None
            found = self._lookup(name)
            if found is None or isinstance(found, str):
                return found
            name = found[0]
        return None

    def symref(self, ref: Ref) -> Ref | None:
        """The name a symbolic ref points to, even when that does not exist; None otherwise."""
        found = self._lookup(ref)
        return found[0] if isinstance(found, tuple) else None

    def head_ref(self) -> Ref | None:
        """The branch HEAD is on, born or not; None when it is detached."""
        return self.symref(Ref("HEAD"))

    def _lookup(self, ref: Ref) -> Oid | tuple[Ref] | None:
        """The ref's object id, or the name it points to in a tuple, or None."""
        try:
            found = self.repository.references.get(ref)
        except UnicodeError:  # pygit2 takes only UTF-8 names; git takes what the file system has
            return self._lookup_by_git(ref)
        except (pygit2.GitError, ValueError, OSError) as error:
            raise CannotLookError(
                f"the ref {ascii_name(ref)} of {self.path} cannot be read: {error}",
                "look at it with: git fsck",
            ) from error
        if found is None:
            return None
        target = found.raw_target
        if isinstance(target, bytes):
            return (Ref(target.decode("utf-8", "surrogateescape")),)
        return Oid(str(target))

    def _lookup_by_git(self, ref: Ref) -> Oid | None:
        done = self.git.run("for-each-ref", f"--format={porcelain.REF_FORMAT}", ref)
        return next((r.oid for r in porcelain.parse_refs(done.stdout) if r.name == ref), None)

    def sweep_refs(self, remotes: Sequence[str]) -> tuple[SweepRef, ...]:
        """Every local and remote-tracking sweep branch; names that are not a sweep's are ignored.

        One git command, whose cost does not grow with the number of other refs. A symbolic ref
        counts with the object it leads to.

        Raises:
            CannotLookError: the ref of a sweep is damaged, so that it cannot be told whether the
                sweep is open.
        """
        folders: list[tuple[str, str | None]] = [(f"refs/heads/{BRANCH_FOLDER}/", None)]
        folders += [(f"refs/remotes/{r}/{BRANCH_FOLDER}/", r) for r in remotes]
        patterns = [prefix for prefix, _ in folders]
        done = self.git.run("for-each-ref", f"--format={porcelain.REF_FORMAT}", *patterns)
        for broken in porcelain.broken_refs(done.stderr):
            if _sweep_of(broken, folders) is not None:
                raise CannotLookError(
                    f"the ref {broken} of {self.path} is damaged",
                    f"if the branch is not needed, remove it with: git update-ref -d {broken}",
                )
        found = []
        for line in porcelain.parse_refs(done.stdout):
            sweep = _sweep_of(line.name, folders)
            if sweep is not None:
                found.append(SweepRef(line.name, line.oid, sweep[1], sweep[0]))
        return tuple(found)

    def refs_below(self, prefix: str) -> tuple[tuple[Ref, Oid], ...]:
        """Every ref whose name starts with `prefix` (which ends in a slash), and its object."""
        done = self.git.run("for-each-ref", f"--format={porcelain.REF_FORMAT}", prefix)
        return tuple((line.name, line.oid) for line in porcelain.parse_refs(done.stdout))

    def worktree_branches(self) -> Mapping[Ref, str]:
        """Branches somebody is working on here, in the main or a linked worktree -> its folder.

        A branch in the middle of a rebase counts, although HEAD is detached then.
        """
        return opening.checked_out(Path(self.common_dir), bare=self._main_is_bare())

    def _main_is_bare(self) -> bool:
        return self.config_bool("core.bare", default=False)

    def revision(self, text: str) -> Oid:
        """The commit a revision (a branch, a tag, an abbreviated id, `main~2`) means.

        Raises:
            CannotLookError: it means none, or several.
        """
        try:
            found = self.repository.revparse_single(text).peel(pygit2.Commit)
        except (pygit2.GitError, ValueError, LookupError, OSError) as error:
            words = "means more than one" if isinstance(error, pygit2.AmbiguousError) else "is no"
            raise CannotLookError(f"{text} {words} commit in {self.path}") from error
        return Oid(str(found.id))

    # -- objects ---------------------------------------------------------------------------------

    def allow_fetch(self, git: Git) -> None:
        """From now on a file this partial clone lacks is fetched, with `git`, within its limits."""
        self._fetcher = git

    def has(self, oid: Oid) -> bool:
        """Whether the object is in this clone; nothing is fetched."""
        return bool(self.repository.odb.exists(oid))

    def commit(self, oid: Oid) -> CommitInfo:
        """Read one commit.

        Raises:
            MissingObjectError: it is not in this clone.
            CannotLookError: it is no commit, or damaged.
        """
        try:
            return read_commit(oid, self._raw(oid, pygit2.enums.ObjectType.COMMIT))
        except ValueError as error:
            raise CannotLookError(f"{oid} in {self.path} is not a readable commit") from error

    def first_parents(self, tip: Oid, limit: int) -> Iterator[CommitInfo]:
        """The commits from `tip` along first parents, at most `limit`; ends where a shallow clone
        does.

        Raises:
            MissingObjectError: a commit is missing that should be here.
        """
        boundary = opening.shallow_boundary(Path(self.common_dir))
        at: Oid | None = tip
        for _ in range(limit):
            if at is None:
                return
            info = self.commit(at)
            yield info
            at = info.parents[0] if info.parents and info.oid not in boundary else None

    def is_ancestor(self, ancestor: Oid, descendant: Oid) -> bool:
        """Whether `descendant` reaches `ancestor` (a commit reaches itself).

        Raises:
            MissingObjectError: one of them is not in this clone.
        """
        for oid in (ancestor, descendant):
            if not self.has(oid):
                raise self._missing(oid)
        if ancestor == descendant:
            return True
        try:
            return self.repository.descendant_of(descendant, ancestor)
        except (pygit2.GitError, LookupError, OSError) as error:
            raise MissingObjectError(
                f"the history between {ancestor[:10]} and {descendant[:10]} in {self.path} "
                f"is incomplete: {error}",
                "look at it with: git fsck",
            ) from error

    def entry(self, commit: Oid, path: str) -> Entry | None:
        """What stands at `path` in a commit's tree, or None; symbolic links are not followed.

        Raises:
            MissingObjectError: the commit or one of the folders on the way is not in this clone.
        """
        mode, oid = int(Mode.FOLDER), self.commit(commit).tree
        for part in os.fsencode(path.strip("/")).split(b"/"):
            found = self._tree(oid).get(part) if mode == Mode.FOLDER else None
            if found is None:
                return None
            mode, oid = found
        kind = kind_of(mode)
        return Entry(kind, oid, self._size(oid) if kind not in ("tree", "gitlink") else None)

    def names(self, commit: Oid, path: str) -> tuple[tuple[str, str], ...]:
        """The (name, kind) of everything in a folder of a commit; empty when it is no folder.

        Raises:
            MissingObjectError: a folder on the way is not in this clone.
        """
        if path.strip("/"):
            folder = self.entry(commit, path)
            if folder is None or folder.kind != "tree":
                return ()
            oid = folder.oid
        else:
            oid = self.commit(commit).tree
        entries = self._tree(oid).items()
        return tuple((os.fsdecode(name), kind_of(mode)) for name, (mode, _) in entries)

    def changed_paths(self, before: Oid, after: Oid) -> tuple[str, ...]:
        """The paths of all files that differ between two commits' trees, sorted.

        Folders with equal ids are not read, so the cost follows the change, not the repository.

        Raises:
            MissingObjectError: a folder on the way is not in this clone.
        """
        found: list[str] = []
        todo: list[tuple[str, Oid | None, Oid | None]] = [
            ("", self.commit(before).tree, self.commit(after).tree)
        ]
        while todo:
            where, old, new = todo.pop()
            one = self._tree(old) if old is not None else {}
            two = self._tree(new) if new is not None else {}
            for name in {**one, **two}:
                was, now = one.get(name), two.get(name)
                if was == now:
                    continue
                path = where + os.fsdecode(name)
                folders = [e[1] if e and e[0] == Mode.FOLDER else None for e in (was, now)]
                if any(folders):
                    todo.append((path + "/", folders[0], folders[1]))
                if any(e is not None and e[0] != Mode.FOLDER for e in (was, now)):
                    found.append(path)
        return tuple(sorted(found))

    def read_blob(self, oid: Oid, limit: int) -> bytes:
        """A file's bytes, at most `limit` of them.

        Raises:
            MissingObjectError: a partial clone lacks it, and `allow_fetch` was not called.
            TooLargeError: it has more than `limit` bytes; nothing was read.
        """
        size = self._size(oid)
        if size is None and self._fetcher is not None:
            # Looking at it is what makes git fetch it; the bytes are then read as any other's.
            self._fetcher.run("cat-file", "-s", oid, network=True)
            size = self._size(oid)
        if size is None:
            raise self._missing(oid)
        if size > limit:
            raise TooLargeError(f"the file {oid[:10]} in {self.path} has {size} bytes")
        return self._raw(oid, pygit2.enums.ObjectType.BLOB)

    def tree_entries(self, tree: Oid) -> Mapping[bytes, tuple[int, Oid]]:
        """A tree's entries, `name -> (mode, oid)`, in git's order.

        Raises:
            MissingObjectError: it is not in this clone.
        """
        return self._tree(tree)

    def _tree(self, oid: Oid) -> dict[bytes, tuple[int, Oid]]:
        found = self._trees.get(oid)
        if found is None:
            try:
                found = read_tree(self._raw(oid, pygit2.enums.ObjectType.TREE))
            except ValueError as error:
                raise CannotLookError(f"{oid} in {self.path} is not a readable tree") from error
            if len(self._trees) >= _TREES_KEPT:
                self._trees.pop(next(iter(self._trees)))
            self._trees[oid] = found
        return found

    def _size(self, oid: Oid) -> int | None:
        try:
            return int(self.repository.odb.read_header(oid)[1])
        except KeyError:
            return None
        except (pygit2.GitError, OSError) as error:
            raise self._damaged(oid, error) from error

    def _raw(self, oid: Oid, kind: int) -> bytes:
        try:
            found, data = self.repository.odb.read(oid)
        except KeyError as error:
            raise self._missing(oid) from error
        except (pygit2.GitError, OSError) as error:
            raise self._damaged(oid, error) from error
        if found != kind:
            raise CannotLookError(f"{oid} in {self.path} is not the kind of object expected there")
        return bytes(data)

    def _missing(self, oid: Oid) -> MissingObjectError:
        if self.is_partial:
            hint = "this is a partial clone: fetch it with: git cat-file -p " + oid
        elif self.is_shallow:
            hint = "this is a shallow clone: complete it with: git fetch --unshallow"
        else:
            hint = "the repository is damaged: look at it with: git fsck"
        return MissingObjectError(f"the object {oid[:10]} is not in {self.path}", hint)

    def _damaged(self, oid: Oid, error: Exception) -> CannotLookError:
        return CannotLookError(
            f"the object {oid[:10]} of {self.path} cannot be read: {error}",
            "look at it with: git fsck",
        )


def ascii_name(name: str) -> str:
    """A ref's name, whatever its bytes, as text that can be printed."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _sweep_of(
    name: str, folders: Sequence[tuple[str, str | None]]
) -> tuple[SweepName, str | None] | None:
    for prefix, remote in folders:
        if name.startswith(prefix):
            sweep = SweepName.from_slug(name.removeprefix(prefix))
            if sweep is not None:
                return sweep, remote
    return None
