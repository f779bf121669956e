"""Writing objects, so that nothing ever points at one that is not there; refs come from RefWriter.

pygit2's `create_commit` returns an id even when the write failed (a full disk); here every object
is looked for after it was written.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pygit2
from pygit2.enums import ObjectType

from orchestrator.errors import WriteFailedError
from orchestrator.git.objects import Mode, edit_tree, write_commit
from orchestrator.git.reader import Identity
from orchestrator.git.refwriter import RefBlockedError, RefWriter
from orchestrator.model.names import Oid

__all__ = ["RefBlockedError", "TreeChange", "Writer"]


class TreeChange(NamedTuple):
    """What shall stand at a path: an object and its mode (such as 0o100644)."""

    oid: Oid
    mode: int = Mode.FILE


class Writer(RefWriter):
    """Writes into the repository a Reader has opened: objects here, refs in what it builds on."""

    def blob(self, data: bytes) -> Oid:
        """Store a file's bytes.

        Raises:
            WriteFailedError: it could not be written (a full disk, no permission).
        """
        return self._store(ObjectType.BLOB, data, "a file")

    def commit(
        self, tree: Oid, parents: Sequence[Oid], message: str, identity: Identity, when: datetime
    ) -> Oid:
        """Store a commit, dated `when` (aware), by `identity`; no ref moves.

        Raises:
            WriteFailedError: it could not be written, or its tree or a parent is not here.
        """
        for oid in (tree, *parents):
            self._require(oid, "the commit")
        epoch = int(when.astimezone(UTC).timestamp())
        person = (identity.name, identity.email)
        data = write_commit(tree, parents, message, person, epoch)
        return self._store(ObjectType.COMMIT, data, "the commit")

    def tree(self, base_commit: Oid, changes: Mapping[str, TreeChange | None]) -> Oid:
        """Store the tree of `base_commit` with `changes` by path; None removes.

        Only the folders on the changed paths are read and written, so the cost does not depend on
        the repository's size. A folder that becomes empty disappears.

        Raises:
            WriteFailedError: a file or link stands where a folder is needed, or a folder where a
                file is; it names the path. Also when a tree could not be written.
            MissingObjectError: a folder on the way is not in this clone.
        """
        nested: dict[bytes, _Change] = {}
        for path, change in changes.items():
            _nest(nested, path, change)
        root = self._reader.commit(base_commit).tree
        return self._tree(root, nested, "") or self._store(ObjectType.TREE, b"", "a folder")

    def _tree(self, base: Oid | None, changes: "dict[bytes, _Change]", where: str) -> Oid | None:
        """The changed tree's id, or None when nothing is left in it."""
        before = self._reader.tree_entries(base) if base is not None else {}
        edits: dict[bytes, tuple[int, Oid] | None] = {}
        left = len(before)
        for name, change in changes.items():
            old = before.get(name)
            new = self._changed(old, change, where + os.fsdecode(name))
            if new != old:
                edits[name] = new
                left += (new is not None) - (old is not None)
        if base is not None and not edits:
            return base if before else None
        if left == 0:
            return None
        data = self._reader.tree_bytes(base) if base is not None else b""
        return self._store(ObjectType.TREE, edit_tree(data, edits), "a folder")

    def _changed(
        self, old: tuple[int, Oid] | None, change: "_Change", path: str
    ) -> tuple[int, Oid] | None:
        """What stands at `path` afterwards."""
        old_folder = old[1] if old is not None and old[0] == Mode.FOLDER else None
        if old is not None and old_folder is None and change.adds_below and not change.given:
            raise WriteFailedError(f"{path} is a file or link where a folder is needed")
        folder = old_folder
        if change.below:
            folder = self._tree(old_folder, change.below, path + "/")
        if change.leaf is None:
            if folder is not None and not (change.given and not change.below):
                return int(Mode.FOLDER), folder
            return None if change.given or old_folder is not None else old
        if folder is not None:
            raise WriteFailedError(f"{path} is a folder where a file is to be written")
        self._require(change.leaf.oid, path)
        return change.leaf.mode, change.leaf.oid

    def _store(self, kind: ObjectType, data: bytes, what: str) -> Oid:
        try:
            oid = Oid(str(self._repository.odb.write(kind, data)))
        except (pygit2.GitError, OSError, ValueError) as error:
            raise self._failed(f"{what} could not be written", error) from error
        if not self._reader.has(oid):
            raise WriteFailedError(f"{what} was written to {self._reader.path} but is not there")
        return oid


class _Change:
    """What happens at one name of a folder: to itself (`given`, `leaf`) and `below` it."""

    __slots__ = ("below", "given", "leaf")

    def __init__(self) -> None:
        self.given = False
        self.leaf: TreeChange | None = None
        self.below: dict[bytes, _Change] = {}

    @property
    def adds_below(self) -> bool:
        return any(c.leaf is not None or c.adds_below for c in self.below.values())


def _nest(nested: dict[bytes, _Change], path: str, change: TreeChange | None) -> None:
    parts = os.fsencode(path).split(b"/")
    if any(part in (b"", b".", b"..", b".git") or b"\0" in part for part in parts):
        raise WriteFailedError(f"{path!r} is not a path inside a repository")
    level = nested
    for part in parts[:-1]:
        level = level.setdefault(part, _Change()).below
    last = level.setdefault(parts[-1], _Change())
    last.given, last.leaf = True, change
