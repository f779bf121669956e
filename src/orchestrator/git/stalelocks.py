"""Lock files that a killed process left beside a ref; git itself never removes one.

Removed only when old and when no process has it open: a living writer keeps its lock open.
"""

import time
from collections.abc import Iterable
from pathlib import Path

STALE_LOCK_SECONDS = 600.0
"""Age from which a lock that nobody has open counts as left behind."""


def break_stale(paths: Iterable[Path], older_than_s: float = STALE_LOCK_SECONDS) -> tuple[str, ...]:
    """Remove those of the lock files that are older than `older_than_s` seconds and not open.

    Returns:
        The paths that were removed.

    Raises:
        OSError: one may not be removed.
    """
    return tuple(str(path) for path in paths if _break(path, older_than_s))


def tracking_locks(common_dir: str, remote: str) -> list[Path]:
    """The lock files a killed fetch of this program can have left."""
    repository = Path(common_dir)
    folder = repository / "refs" / "remotes" / remote
    return [*folder.rglob("*.lock"), repository / "packed-refs.lock", repository / "shallow.lock"]


def _break(path: Path, older_than_s: float) -> bool:
    try:
        before = path.lstat()
        if time.time() - before.st_mtime <= older_than_s or _is_open(path):
            return False
        after = path.lstat()
        if (after.st_ino, after.st_mtime_ns) != (before.st_ino, before.st_mtime_ns):
            return False  # somebody else removed it and another writer has it now
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_open(path: Path) -> bool:
    """Whether a process that we may look at has the file open (where /proc tells)."""
    wanted = str(path.resolve())
    for handle in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if str(handle.readlink()) == wanted:
                return True
        except OSError:  # gone, or another user's
            continue
    return False
