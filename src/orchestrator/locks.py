"""Kernel locks on files in the clone: who is at work here, known without asking anybody.

`flock` locks vanish with the process that holds them, kill -9 included, so there is no stale lock
and nothing to clean up. They live below the repository's common directory, so that linked
worktrees of one repository share them. They order instances on one machine only; between machines
the remote's refs arbitrate.

The lock of a sweep is signed with the dispatch it is held for, before the claim leaves this
machine. The file outlives its holder: signed and free, it says that a run of this very clone ended
without having put its things in order. No name of a host or path of a clone is proof of that: two
containers can have both in common. A copy of the clone proves nothing either, so the signature
names the file's inode. There can be several: a claim of a tick that was killed may still be on its
way to the remote when the next tick claims the same sweep.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from orchestrator.errors import CannotLookError, WriteFailedError

STATE_FOLDER = "orchestrator"
_POLL_SECONDS = 0.05
_SUFFIX = ".lock"
_MAX_BYTES = 1024
_MAX_SIGNATURES = 8


def state_folder(common_dir: str) -> str:
    """Where this clone keeps what is about this machine only: `<common dir>/orchestrator`."""
    return os.path.join(common_dir, STATE_FOLDER)


def clone_lock_path(common_dir: str) -> str:
    """The short lock that covers fetch, mend and claim."""
    return os.path.join(state_folder(common_dir), "tick.lock")


def sweep_lock_path(common_dir: str, slug: str) -> str:
    """The lock that is held while this clone's agent works on `slug`."""
    return os.path.join(state_folder(common_dir), "running", slug + _SUFFIX)


def signed_slugs(common_dir: str) -> tuple[str, ...]:
    """The slugs whose lock files are there: runs that are at work, or ended without tidying up."""
    try:
        names = os.listdir(os.path.join(state_folder(common_dir), "running"))
    except OSError:
        return ()
    return tuple(sorted(n.removesuffix(_SUFFIX) for n in names if n.endswith(_SUFFIX)))


class Signature(NamedTuple):
    """Whose run a sweep's lock was taken for, and whether its agent may have been started."""

    dispatch_id: str
    launched: bool


class FileLock:
    """An exclusive lock on one file; released when closed, or when the process ends."""

    def __init__(self, fd: int, path: str) -> None:
        self._fd: int | None = fd
        self.path = path

    def sign(self, dispatch_id: str, *, launched: bool) -> None:
        """Note, durably, which dispatch the lock is held for; earlier ones stay noted.

        Raises:
            WriteFailedError: a full disk; then nothing may be claimed or launched.
        """
        assert self._fd is not None, "the lock is released"  # noqa: S101 - a caller's mistake
        earlier = [s for s in self.signatures() if s.dispatch_id != dispatch_id]
        signed = [*earlier[1 - _MAX_SIGNATURES :], Signature(dispatch_id, launched)]
        inode = os.fstat(self._fd).st_ino
        text = "".join(
            f"{s.dispatch_id} {'launched' if s.launched else 'claiming'} {inode}\n" for s in signed
        )
        try:
            # Both phases have eight letters: signing again changes bytes in place.
            os.pwrite(self._fd, text.encode(), 0)
            os.ftruncate(self._fd, len(text))
            os.fsync(self._fd)
            if not launched:
                _sync_folders_of(self.path)
        except OSError as error:
            raise WriteFailedError(
                f"cannot write {self.path}: {error.strerror}",
                f"is there room and permission? df -h {os.path.dirname(self.path)}",
            ) from error

    def signatures(self) -> tuple[Signature, ...]:
        """What is signed here and was not put in order, oldest first."""
        return () if self._fd is None else _signatures(self._fd)

    def signed_s_ago(self) -> float:
        """Seconds since the last signature, by this machine's clock."""
        return 0.0 if self._fd is None else max(0.0, time.time() - os.fstat(self._fd).st_mtime)

    def release(self, *, remove: bool = False) -> None:
        """Let go. With `remove` the file goes too, while the lock is still held."""
        if self._fd is None:
            return
        if remove:
            with suppress(OSError):  # somebody tidied up; the lock itself is what counts
                os.unlink(self.path)
        os.close(self._fd)
        self._fd = None


def acquire(path: str, wait_s: float = 0.0) -> FileLock | None:
    """Take the lock at `path`, waiting up to `wait_s` seconds; None when another holds it.

    Raises:
        CannotLookError: the lock's file cannot be made (read-only repository, full disk).
    """
    deadline = time.monotonic() + wait_s
    while True:
        lock = _try(path)
        if lock is not None:
            return lock
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL_SECONDS)


def _try(path: str) -> FileLock | None:
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CannotLookError(
            f"cannot write to {os.path.dirname(path)}: {error.strerror}",
            "tick needs a repository it can write to; explain, check and status do not",
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    # The file may have been removed between open and flock: then another instance would lock a
    # new file at the same path, and both would hold "the" lock.
    try:
        here = os.stat(path)
    except FileNotFoundError:
        os.close(fd)
        return None
    mine = os.fstat(fd)
    if (here.st_dev, here.st_ino) != (mine.st_dev, mine.st_ino):
        os.close(fd)
        return None
    return FileLock(fd, path)


def _sync_folders_of(path: str) -> None:
    """Sync the names that lead to a lock, up to the clone's: a file without a name says nothing."""
    folder = path
    for _ in range(3):  # running, orchestrator, the common directory: the first two may be new
        folder = os.path.dirname(folder)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def signatures_at(path: str) -> tuple[Signature, ...]:
    """The signatures of the lock at `path`, held or not. Writes nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        return _signatures(fd)
    finally:
        os.close(fd)


def _signatures(fd: int) -> tuple[Signature, ...]:
    """Nothing when nobody signed, and nothing in a copy of the file."""
    inode = str(os.fstat(fd).st_ino)
    lines = os.pread(fd, _MAX_BYTES, 0).decode("utf-8", "replace").split("\n")[:-1]
    words = [line.split(" ") for line in lines]
    return tuple(
        Signature(dispatch_id, phase == "launched")
        for dispatch_id, phase, signed in (w for w in words if len(w) == 3)  # noqa: PLR2004
        if signed == inode
    )


def is_held(path: str) -> bool:
    """Whether some process holds the lock at `path`. Writes nothing; a missing file is not held."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@contextmanager
def held(path: str, wait_s: float = 0.0) -> Iterator[FileLock | None]:
    """`acquire` as a context; yields None when another holds the lock for all of `wait_s`."""
    lock = acquire(path, wait_s)
    try:
        yield lock
    finally:
        if lock is not None:
            lock.release()
