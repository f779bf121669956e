"""Comparing a folder on disk with a tree: the walk behind `orchestrator.git.harvest`."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1

from orchestrator.errors import OrchestratorError
from orchestrator.git.ignored import Ignored
from orchestrator.git.objects import Mode, kind_of
from orchestrator.git.reader import Reader
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.paths import refusal

LISTED = 200
"""How many of the paths left out are named."""

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_MAX_DEPTH = 100
_MAX_NEW = 500_000
_CHUNK = 1024 * 1024
_STANDS = {
    "tree": "a folder stands there",
    "symlink": "a link stands there",
    "gitlink": "a submodule stands there",
}


class HarvestError(OrchestratorError):
    """The agent changed more than a sweep may; nothing of it is taken."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many paths may change, and how many bytes of new contents there may be."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Old:
    """What stands at a path on the branch."""

    mode: int
    oid: Oid

    @property
    def kind(self) -> str:
        return kind_of(self.mode)

    @property
    def folder(self) -> Oid | None:
        return self.oid if self.kind == "tree" else None


@dataclass(frozen=True, slots=True)
class New:
    """A change as it was read: contents to store, or an object that is there already."""

    mode: int
    data: bytes = b""
    oid: Oid | None = None


class Comparison:
    """One walk over a folder.

    Attributes:
        changes: by path, what may come back; None: it was removed.
        left_out: what may not, each with the reason; `more` counts those beyond LISTED.
        bytes: the size of all new contents.
    """

    def __init__(
        self,
        reader: Reader,
        ignored: Ignored,
        writes: Sequence[str],
        sweep: SweepName,
        *,
        checkout: bool,
        limits: Limits,
    ) -> None:
        self.changes: dict[str, New | None] = {}
        self.left_out: list[tuple[str, str]] = []
        self.more = 0
        self.bytes = 0
        self._reader, self._writes, self._sweep = reader, writes, sweep
        self._ignored, self._checkout = ignored, checkout
        self._limits = limits
        self._new = 0

    # -- folders ---------------------------------------------------------------------------------

    def folder(self, handle: int, tree: Oid | None, prefix: str, blocked: str | None) -> None:
        """Compare one open folder with a tree (None: there is none on the branch).

        `blocked` is why nothing below may come back, whatever it is.
        """
        before = self._before(tree)
        names = sorted(os.listdir(handle))
        if tree is None and any(name.lower() == ".git" for name in names):
            self._leave(prefix.rstrip("/"), "a repository of its own")
            return
        for name in names:
            if not prefix and name == ".git":
                continue  # the working copy's own
            old = before.pop(os.fsencode(name), None)
            if old is None:
                self._count_new()
            self._entry(handle, name, prefix + name, old, blocked)
        if self._checkout:
            for raw, old in before.items():
                self._deleted(prefix + os.fsdecode(raw), old)

    def _before(self, tree: Oid | None) -> dict[bytes, _Old]:
        if tree is None:
            return {}
        return {name: _Old(*entry) for name, entry in self._reader.tree_entries(tree).items()}

    def _entry(
        self, handle: int, name: str, path: str, old: _Old | None, blocked: str | None
    ) -> None:
        try:
            kind = os.lstat(name, dir_fd=handle).st_mode
            if old is None and self._ignored.matches(path, is_folder=stat.S_ISDIR(kind)):
                self._leave(f"{path}/" if stat.S_ISDIR(kind) else path, "git ignores it")
            elif stat.S_ISDIR(kind):
                self._subfolder(handle, name, path, old, blocked)
            elif stat.S_ISREG(kind):
                self._file(handle, name, path, old, blocked)
            elif stat.S_ISLNK(kind):
                self._link(handle, name, path, old, blocked)
            else:
                self._leave(path, "neither a file nor a link")
        except OSError as error:
            self._leave(path, f"it cannot be read: {error.strerror}")

    def _subfolder(
        self, handle: int, name: str, path: str, old: _Old | None, blocked: str | None
    ) -> None:
        if old is not None and old.kind == "gitlink":
            return  # a submodule's folder, empty or filled, is not ours to compare
        if name.lower() == ".git":
            self._leave(path, "git's own")
            return
        if path.count("/") >= _MAX_DEPTH:
            self._leave(path, "too many folders deep")
            return
        if old is not None and old.folder is None and not self._replaced(path, old):
            blocked = blocked or "something else stands where its folder would be"
        inner = os.open(name, FOLDER_FLAGS, dir_fd=handle)
        try:
            self.folder(inner, old.folder if old is not None else None, path + "/", blocked)
        finally:
            os.close(inner)

    def _replaced(self, path: str, old: _Old) -> bool:
        """Whether what stood at `path` is gone and may be, so that something else can be there."""
        return self._checkout and self._deleted(path, old)

    def _deleted(self, path: str, old: _Old) -> bool:
        """Note that `path` is gone; whether all of it may be."""
        found = list(self._files_of(path, old))
        refused = {
            name: why
            for name in found
            if (why := refusal(name, None, self._writes, self._sweep)) is not None
        }
        if old.kind == "tree" and len(set(refused.values())) == 1 and len(refused) == len(found):
            self._leave(f"{path}/", f"deleted: {refused[found[0]]}")
            return False
        for name in found:
            if name in refused:
                self._leave(name, f"deleted: {refused[name]}")
            else:
                self._note(name, None)
        return bool(found) and not refused

    def _files_of(self, path: str, old: _Old) -> Iterator[str]:
        """Every file and link below, or at, a path of the branch; submodules are left alone."""
        if old.kind == "tree":
            for name, inner in self._before(old.oid).items():
                yield from self._files_of(f"{path}/{os.fsdecode(name)}", inner)
        elif old.kind != "gitlink":
            yield path

    # -- files and links -------------------------------------------------------------------------

    def _file(
        self, handle: int, name: str, path: str, old: _Old | None, blocked: str | None
    ) -> None:
        fd = os.open(name, _FILE_FLAGS, dir_fd=handle)
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode):
                self._leave(path, "neither a file nor a link")
                return
            mode = int(Mode.EXECUTABLE if about.st_mode & stat.S_IXUSR else Mode.FILE)
            same = False
            if old is not None and old.kind in ("blob", "executable"):
                same = self._same(fd, about.st_size, old.oid)
                mode = mode if self._checkout else old.mode
                if same and kind_of(mode) == old.kind:
                    return
            if not self._may(path, mode, old, blocked):
                return
            if old is not None and same:
                self._note(path, New(mode, oid=old.oid))
            else:
                self._note(path, New(mode, self._contents(fd, path, about.st_size)))
        finally:
            os.close(fd)

    def _link(
        self, handle: int, name: str, path: str, old: _Old | None, blocked: str | None
    ) -> None:
        target = os.readlink(name, dir_fd=handle)
        data = os.fsencode(target)
        if old is not None and old.kind == "symlink" and old.oid == _blob_id(data):
            return
        if self._may(path, int(Mode.SYMLINK), old, blocked, target):
            self._note(path, New(int(Mode.SYMLINK), data))

    def _may(
        self, path: str, mode: int, old: _Old | None, blocked: str | None, target: str | None = None
    ) -> bool:
        """Whether new contents may stand at `path`; notes the reason when they may not."""
        why = blocked or refusal(path, mode, self._writes, self._sweep, target=target)
        if why is None and old is not None and not self._fits(path, mode, old):
            why = _STANDS.get(old.kind, "a file stands there")
        if why is not None:
            self._leave(path, why)
        return why is None

    def _fits(self, path: str, mode: int, old: _Old) -> bool:
        """Whether this kind of thing may take the place of what stands on the branch."""
        if old.kind in ("tree", "gitlink"):
            return self._replaced(path, old)
        return self._checkout or (old.kind == "symlink") == (mode == Mode.SYMLINK)

    def _same(self, fd: int, size: int, oid: Oid) -> bool:
        """Whether the open file has exactly a blob's bytes; a size alone often tells."""
        if self._reader.blob_size(oid) not in (size, None):
            return False
        digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
        left = size
        while left > 0 and (chunk := os.read(fd, min(_CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
        return left == 0 and digest.hexdigest() == oid

    def _contents(self, fd: int, path: str, size: int) -> bytes:
        room = self._limits.bytes - self.bytes
        data = b""
        if size <= room:
            os.lseek(fd, 0, os.SEEK_SET)
            with os.fdopen(os.dup(fd), "rb") as file:
                data = file.read(room + 1)
        if size > room or len(data) > room:
            raise HarvestError(
                f"the agent changed more than {self._limits.bytes:,} bytes ({path} is one of the "
                "files), so nothing of it is taken (`max_bytes`)"
            )
        return data

    # -- notes -----------------------------------------------------------------------------------

    def _note(self, path: str, new: New | None) -> None:
        self.changes[path] = new
        self.bytes += len(new.data) if new is not None else 0
        if len(self.changes) > self._limits.files:
            raise HarvestError(
                f"the agent changed more than {self._limits.files} files, so nothing of it is "
                "taken (`max_files`)"
            )

    def _leave(self, path: str, why: str) -> None:
        if len(self.left_out) < LISTED:
            self.left_out.append((path, why))
        else:
            self.more += 1

    def _count_new(self) -> None:
        self._new += 1
        if self._new > _MAX_NEW:
            raise HarvestError(
                f"the agent left more than {_MAX_NEW:,} new files, so nothing of it is taken"
            )


def _blob_id(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
