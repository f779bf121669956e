"""Session files in the run's private HOME: what is left of a run that could not say what it cost.

The agent may have written to its HOME, so nothing is followed, waited for or trusted: only plain
files, only up to a size, and what they say is read like any other output.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
"""How much of one session file is read (its end), bytes."""

_MAX_FILES = 64
_MAX_FOLDERS = 4096


def session_files(home: Path, below: str, pattern: str) -> list[bytes]:
    """The contents of the files below `home/below` whose name matches, oldest name first.

    Sub-agents have files of their own beside the leader's, so all of them count.
    """
    root = str(home)
    for part in below.split("/"):
        root = os.path.join(root, part)
        if os.path.islink(root) or not os.path.isdir(root):
            return []
    paths = sorted(_matching(root, pattern))[:_MAX_FILES]
    return [data for data in map(_tail, paths) if data is not None]


def _matching(root: str, pattern: str) -> Iterator[str]:
    for number, (folder, _, names) in enumerate(os.walk(root)):
        if number >= _MAX_FOLDERS:
            return
        yield from (os.path.join(folder, n) for n in names if fnmatchcase(n, pattern))


def _tail(path: str) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return None
        file.seek(max(0, found.st_size - MAX_BYTES))
        return file.read(MAX_BYTES)
