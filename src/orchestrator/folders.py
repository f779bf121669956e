"""Private folders: made so that only we can look inside, removed whatever was done to them."""

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(path: Path) -> Path:
    """Make `path` a folder of mode 0700 (its parents too, where they are missing).

    Raises:
        OSError: it cannot be made, or something other than our own folder stands there.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(path, _FLAGS)  # fails on a symbolic link
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user")
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)
    return path


def write_private(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a new file of that mode, replacing what has its name; never through a symbolic link."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def remove_tree(path: Path) -> bool:
    """Remove a folder and everything in it, without ever following a symbolic link.

    Works on what an agent may leave: folders without permissions, names that are not UTF-8, paths
    deeper than the system can name (each folder found is moved to the top before it is emptied, so
    depth costs nothing). Says whether it is gone; what cannot be removed stays, without an error.
    """
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return True
        _open_up(str(path), None)
        top = os.open(path, _FLAGS)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        numbers = count()
        todo = [name for name in _emptied(top, top, numbers) if name]
        while todo:
            name = todo.pop()
            todo += _emptied_below(top, name, numbers)
    finally:
        os.close(top)
    try:
        path.rmdir()
    except OSError:
        return False
    return True


def _emptied_below(top: int, name: str, numbers: Iterator[int]) -> list[str]:
    """Empty one folder of `top`, remove it, and return the folders moved up out of it."""
    try:
        handle = os.open(name, _FLAGS, dir_fd=top)
    except OSError:
        return []
    try:
        moved = list(_emptied(handle, top, numbers))
    finally:
        os.close(handle)
    _try_rmdir(name, top)
    return moved


def _emptied(handle: int, top: int, numbers: Iterator[int]) -> Iterator[str]:
    """Unlink what is in the folder; yield the names, in `top`, of the folders it had."""
    with os.scandir(handle) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in names:
        if not is_folder:
            try:
                os.unlink(name, dir_fd=handle)
            except OSError:
                continue
        else:
            _open_up(name, handle)
            if not _try_rmdir(name, handle) and (new := _moved(name, handle, top, numbers)):
                yield new


def _moved(name: str, handle: int, top: int, numbers: Iterator[int]) -> str | None:
    for number in numbers:
        new = f".removing-{number}"
        try:
            os.lstat(new, dir_fd=top)
        except FileNotFoundError:
            break
    try:
        os.rename(name, new, src_dir_fd=handle, dst_dir_fd=top)
    except OSError:
        return None
    return new


def _open_up(name: str, handle: int | None) -> None:
    """Give ourselves all rights on a folder; a symbolic link put there instead is left alone."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=handle).st_mode):
        return
    try:
        os.chmod(name, 0o700, dir_fd=handle)
    except OSError:
        return


def _try_rmdir(name: str, handle: int) -> bool:
    try:
        os.rmdir(name, dir_fd=handle)
    except OSError:
        return False
    return True
