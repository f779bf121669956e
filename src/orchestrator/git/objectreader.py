"""Reading objects: commits, trees and files, as raw bytes from pygit2's object database."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pygit2

from orchestrator.errors import CannotLookError, MissingObjectError
from orchestrator.git import opening
from orchestrator.git.configreader import ConfigReader
from orchestrator.git.loose import is_whole
from orchestrator.git.objects import CommitInfo, Mode, kind_of, read_commit, read_tree
from orchestrator.git.porcelain import complaint
from orchestrator.git.runner import Git
from orchestrator.model.names import Oid

_TREES_KEPT = 64


class Entry(NamedTuple):
    """What stands at a path of a commit.

    Attributes:
        kind: `blob`, `executable`, `symlink`, `tree` or `gitlink`.
        size: bytes, for blobs and symlinks that are in this clone; else None.
    """

    kind: str
    oid: Oid
    size: int | None


class TooLargeError(CannotLookError):
    """A file is larger than its reader allows."""


class ObjectReader(ConfigReader):
    """The objects of one opened repository.

    Attributes:
        common_dir: the repository proper, where refs and objects are.
    """

    def __init__(self, repository: pygit2.Repository, path: str, common_dir: str) -> None:
        super().__init__(repository, path)
        self.common_dir = common_dir
        self._fetcher: Git | None = None
        self._trees: dict[Oid, dict[bytes, tuple[int, Oid]]] = {}

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
        if size is None and self._fetcher is not None and self.is_partial:
            # Looking at it is what makes git fetch it; the bytes are then read as any other's.
            done = self._fetcher.run("cat-file", "-s", oid, network=True, ok_codes=None)
            size = self._size(oid)
            if size is None:
                words = complaint(done.stderr) or "the remote did not answer in time"
                raise MissingObjectError(
                    f"the object {oid[:10]} is not in {self.path} and cannot be fetched: {words}",
                    f"try the same by hand: git -C {self.path} cat-file -s {oid}",
                )
        if size is None:
            raise self._missing(oid)
        if size > limit:
            raise TooLargeError(f"the file {oid[:10]} in {self.path} has {size} bytes")
        return self._raw(oid, pygit2.enums.ObjectType.BLOB)

    def tree_bytes(self, tree: Oid) -> bytes:
        """A tree's raw object.

        Raises:
            MissingObjectError: it is not in this clone.
        """
        return self._raw(tree, pygit2.enums.ObjectType.TREE)

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

    def blob_size(self, oid: Oid) -> int | None:
        """A file's size in bytes, without reading it; None when it is not in this clone."""
        return self._size(oid)

    def _size(self, oid: Oid) -> int | None:
        try:
            return int(self.repository.odb.read_header(oid)[1])
        except KeyError:
            return None
        except (pygit2.GitError, OSError) as error:
            raise self._damaged(oid, error) from error

    def _raw(self, oid: Oid, kind: int) -> bytes:
        if not is_whole(self.common_dir, oid):
            raise self._damaged(oid, "its file is damaged or was cut short")
        try:
            found, data = self.repository.odb.read(oid)
        except KeyError as error:
            raise self._missing(oid) from error
        except (pygit2.GitError, OSError) as error:
            raise self._damaged(oid, error) from error
        if found != kind:
            raise CannotLookError(f"{oid} in {self.path} is not the kind of object expected there")
        return bytes(data)

    def _missing(self, oid: Oid) -> CannotLookError:
        closed = self._closed(oid)
        if closed is not None:
            return closed
        if self.is_partial:
            hint = "this is a partial clone: run it with --fetch, or first: git cat-file -p " + oid
        elif self.is_shallow:
            hint = "this is a shallow clone: complete it with: git fetch --unshallow"
        else:
            hint = "the repository is damaged: look at it with: git fsck"
        return MissingObjectError(f"the object {oid[:10]} is not in {self.path}", hint)

    def _damaged(self, oid: Oid, error: object) -> CannotLookError:
        return self._closed(oid) or CannotLookError(
            f"the object {oid[:10]} of {self.path} cannot be read: {error}",
            "look at it with: git fsck",
        )

    def _closed(self, oid: Oid) -> CannotLookError | None:
        loose = f"objects/{oid[:2]}/{oid[2:]}"
        return opening.blocked(self.common_dir, loose, "objects/pack")
