"""One child process from start to end: output into files, a time limit, nothing left behind."""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NamedTuple

from orchestrator.errors import CannotLookError
from orchestrator.git.porcelain import without_credentials

_TERM_GRACE_S = 2.0
_GONE_S = 0.5


class Completed(NamedTuple):
    """One finished git command.

    Attributes:
        code: the exit code; negative is the signal that ended it.
        stderr: what it said, credentials in URLs removed; not yet fit for a terminal
            (`orchestrator.text.printable`).
        timed_out: it was ended at the limit; `code` is then a signal's number.
    """

    code: int
    stdout: bytes
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out


class GitFailedError(CannotLookError):
    """A local git command ended with an exit code it should not have, or not at all."""

    def __init__(self, message: str, hint: str | None, completed: Completed) -> None:
        super().__init__(message, hint)
        self.completed = completed


def execute(
    argv: Sequence[str], stdin: bytes, limit: float, env: Mapping[str, str], cwd: str
) -> Completed:
    # Files, not pipes: a grandchild that keeps a pipe open would hold us past every time limit.
    with _spool() as out, _spool() as err, _spool() as given:
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                argv,
                stdin=given if stdin else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                cwd=cwd,
                start_new_session=True,  # one group to end; no controlling terminal to ask on
            )
        except OSError as error:
            words = f"git could not be started: {error.strerror}"
            raise GitFailedError(words, "is git on PATH?", Completed(127, b"", words)) from error
        timed_out = _wait(process, limit)
        out.seek(0)
        err.seek(0)
        words = err.read().decode("utf-8", "replace")
        return Completed(process.returncode, out.read(), without_credentials(words), timed_out)


def _spool() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("git"), "w+b")  # closed by the caller
    import tempfile  # only where there are no memory files

    return tempfile.TemporaryFile()


def _wait(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait for the end; say whether the limit came first. Ends the group on any exception."""
    try:
        if _ends_within(process, limit):
            process.wait()
            return False
        _end_group(process)
    except BaseException:  # an interrupt included: nothing of ours may stay behind
        _end_group(process)
        raise
    return True


def _ends_within(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Wait without reaping, so that the group's id stays ours until it is dealt with."""
    if not hasattr(os, "pidfd_open"):
        return _poll_until(process, time.monotonic() + limit)
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:  # an old kernel, or a sandbox that forbids it
        return _poll_until(process, time.monotonic() + limit)
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(limit * 1000))
    finally:
        os.close(handle)


def _poll_until(process: subprocess.Popen[bytes], deadline: float) -> bool:
    pause = 0.0005
    while time.monotonic() < deadline:
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        if os.waitid(os.P_PID, process.pid, flags) is not None:
            return True
        time.sleep(pause)
        pause = min(pause * 2, 0.02)
    return False


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM, a moment, then KILL: git removes its lock files when it is asked to end."""
    if process.returncode is not None:
        return
    _signal_group(process.pid, signal.SIGTERM)
    _poll_until(process, time.monotonic() + _TERM_GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    # A killed helper takes a moment to go; whoever called may rely on it that nothing is left.
    deadline = time.monotonic() + _GONE_S
    while _signal_group(process.pid, 0) and time.monotonic() < deadline:
        time.sleep(0.002)


def _signal_group(group: int, number: int) -> bool:
    """Signal every process of a group (0: only look); whether there is one."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group that is only a zombie
        return False
    return True
