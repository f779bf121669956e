"""Writing refs by one discipline: take the ref's lock, look at the ref under the lock, then set it.

pygit2's own `references.create` looks before it locks, so that two processes can both be told that
they created the ref, and the later one overwrites the earlier.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pygit2

from orchestrator.errors import WriteFailedError
from orchestrator.git.opening import open_repository
from orchestrator.git.reader import Reader
from orchestrator.git.stalelocks import break_stale
from orchestrator.model.names import Oid, Ref

_LOCK_PATIENCE_S = 1.0
_LOCK_PAUSE_S = 0.005
_FRESH_LOCK_S = 5.0


class RefBlockedError(WriteFailedError):
    """A ref cannot be written because something stands in its way.

    Attributes:
        lock: the lock file in the way, or None when it is another ref.
        age_s: that file's age, seconds.
        conflict: the ref in the way (`refs/heads/run` blocks `refs/heads/run/x`), or None.
    """

    def __init__(
        self,
        message: str,
        hint: str | None,
        *,
        lock: str | None = None,
        age_s: float | None = None,
        conflict: Ref | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.lock = lock
        self.age_s = age_s
        self.conflict = conflict


class _Not(Exception):  # noqa: N818 - not an error: it makes a transaction end without a change
    """The ref is not as expected; leave it alone."""


class RefWriter:
    """Creates, moves and deletes refs in the repository a Reader has opened."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # A claim, or a cost that was reported, must still be there after a power cut. Opened anew:
        # libgit2 asks for this once, at the first look at refs, and the reader has had its look.
        pygit2.settings.enable_fsync_gitdir(True)
        self._repository = open_repository(reader.repository.path)

    def create_ref(self, ref: Ref, oid: Oid, reason: str) -> bool:
        """Create `ref` at `oid`, atomically between processes; False when it exists already.

        `reason` is one line for the reflog.

        Raises:
            RefBlockedError: a lock file or another ref (`run` for `run/x`) stands in the way.
            WriteFailedError: the object is not here, or the ref could not be written.
        """
        self._require(oid, ref)
        conflict = self._conflict(ref)
        if conflict is not None:
            raise _blocked_by_ref(ref, conflict)

        def change(transaction: pygit2.ReferenceTransaction) -> None:
            if self._target(ref) is not None:
                raise _Not
            parent = self._parent_ref(ref)  # packed since we looked?
            if parent is not None:
                raise _blocked_by_ref(ref, parent)
            transaction.set_target(ref, oid, message=reason)

        return self._locked(ref, change)

    def move_ref(self, ref: Ref, new: Oid, expected: Oid, reason: str) -> bool:
        """Move `ref` from `expected` to `new`; False, and untouched, when it is not there any more.

        Nothing is asked of the two commits: whoever calls knows that nobody's work is dropped. Nor
        does it look whether a worktree has the branch checked out (`Reader.worktree_branches`).

        Raises:
            RefBlockedError: a lock file stands in the way.
            WriteFailedError: `new` is not here, or the ref could not be written.
        """
        self._require(new, ref)

        def change(transaction: pygit2.ReferenceTransaction) -> None:
            if self._target(ref) != expected:
                raise _Not
            transaction.set_target(ref, new, message=reason)

        return self._locked(ref, change)

    def delete_ref(self, ref: Ref, expected: Oid) -> bool:
        """Delete `ref` if it is at `expected`; False, and untouched, when it is not.

        Raises:
            RefBlockedError: a lock file stands in the way.
            WriteFailedError: the ref could not be removed.
        """

        def change(transaction: pygit2.ReferenceTransaction) -> None:
            if self._target(ref) != expected:
                raise _Not
            transaction.remove(ref)

        return self._locked(ref, change)

    def set_tracking(self, ref: Ref, oid: Oid | None) -> None:
        """Record what a remote-tracking ref is known to be; None: the remote has it no more.

        Raises:
            ValueError: `ref` is not under refs/remotes/.
            WriteFailedError: as for the others.
        """
        if not ref.startswith("refs/remotes/"):
            raise ValueError(f"{ref} is not a remote-tracking ref")
        if oid is not None:
            self._require(oid, ref)

        def change(transaction: pygit2.ReferenceTransaction) -> None:
            known = self._target(ref)
            if known == oid:
                raise _Not
            if oid is None:
                transaction.remove(ref)
            else:
                transaction.set_target(ref, oid, message="sweep: pushed")

        self._locked(ref, change)

    def break_stale_lock(self, ref: Ref, older_than_s: float) -> str | None:
        """Remove the lock a killed process left beside `ref`, and a `packed-refs.lock` as old.

        Only when older than `older_than_s` seconds and open in no process. Returns the path (both,
        with a comma, when both were there), or None.

        Raises:
            WriteFailedError: it may not be removed.
        """
        try:
            removed = break_stale(self._lock_paths(ref), older_than_s)
        except OSError as error:
            raise self._failed(f"the stale lock of {ref} could not be removed", error) from error
        return ", ".join(removed) or None

    def _locked(self, ref: Ref, change: Callable[[pygit2.ReferenceTransaction], None]) -> bool:
        """Run `change` under the ref's lock; False when it declined."""
        deadline = time.monotonic() + _LOCK_PATIENCE_S
        while True:
            try:
                with self._repository.transaction() as transaction:
                    transaction.lock_ref(ref)
                    change(transaction)
            except _Not:
                return False
            except (pygit2.GitError, OSError, ValueError) as error:
                blocked = self._why_blocked(ref)
                # Another process is at it right now: its lock is gone in a moment, and then the
                # ref itself tells who won.
                contended = blocked is None or (blocked.age_s or 0) < _FRESH_LOCK_S
                if contended and _is_lock_trouble(error) and time.monotonic() < deadline:
                    time.sleep(_LOCK_PAUSE_S)
                    continue
                raise (blocked or self._failed(f"{ref} could not be written", error)) from error
            else:
                return True

    def _target(self, ref: Ref) -> Oid | None:
        """What the ref itself points to; a symbolic ref never equals an object id."""
        found = self._repository.references.get(ref)
        return None if found is None else Oid(str(found.target))

    def _why_blocked(self, ref: Ref) -> RefBlockedError | None:
        conflict = self._conflict(ref)
        if conflict is not None:
            return _blocked_by_ref(ref, conflict)
        for path in self._lock_paths(ref):
            try:
                age = max(0.0, time.time() - path.lstat().st_mtime)
            except OSError:
                continue
            return RefBlockedError(
                f"{ref} is locked by {path}, {age:.0f} s old",
                f"if no git command is running: rm {path}",
                lock=str(path),
                age_s=age,
            )
        return None

    def _lock_paths(self, ref: Ref) -> tuple[Path, Path]:
        """What can lock a ref: its own lock, and, for deleting, that of all packed refs."""
        folder = Path(self._reader.common_dir)
        return folder / f"{ref}.lock", folder / "packed-refs.lock"

    def _conflict(self, ref: Ref) -> Ref | None:
        """A ref that is a folder of this one, or for which this one is a folder."""
        parent = self._parent_ref(ref)
        if parent is not None:
            return parent
        done = self._reader.git.run("for-each-ref", "--count=1", "--format=%(refname)", f"{ref}/")
        return Ref(os.fsdecode(done.stdout).strip()) if done.stdout else None

    def _parent_ref(self, ref: Ref) -> Ref | None:
        parts = ref.split("/")
        above = (Ref("/".join(parts[:n])) for n in range(3, len(parts)))
        return next((name for name in above if self._repository.references.get(name)), None)

    def _require(self, oid: Oid, what: str) -> None:
        if not self._reader.has(oid):
            raise WriteFailedError(
                f"{what} needs the object {oid[:10]}, which is not in {self._reader.path}"
            )

    def _failed(self, sentence: str, error: Exception) -> WriteFailedError:
        return WriteFailedError(
            f"{sentence} in {self._reader.path}: {error}",
            f"is there room and permission? df -h {self._reader.common_dir}",
        )


def _blocked_by_ref(ref: Ref, conflict: Ref) -> RefBlockedError:
    short = conflict.removeprefix("refs/heads/")
    return RefBlockedError(
        f"the branch {short} stands in the way of {ref.removeprefix('refs/heads/')}: "
        "a name cannot be a branch and a folder of branches at once",
        f"rename it: git branch -m {short} OTHER-NAME",
        conflict=conflict,
    )


def _is_lock_trouble(error: Exception) -> bool:
    return isinstance(error, pygit2.GitError) and not isinstance(error, ValueError)
