"""One run of an agent below its supervisor: the pipes, the steps of the end, the output kept."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.adapters.base import Ending, Plan
from orchestrator.stop import StopFlag

if TYPE_CHECKING:
    from subprocess import Popen

_POLL_S = 0.1
_CHUNK = 65_536
_DRAIN_CHUNKS = 256
_LINE_SEARCH = 65_536


@dataclass(frozen=True, slots=True)
class Limits:
    """How long each step of the end may take, in seconds, and how much output is kept, in bytes."""

    interrupt_s: float = 10.0
    terminate_s: float = 5.0
    kill_s: float = 15.0
    stdout_bytes: int = 4 * 1024 * 1024
    stderr_bytes: int = 1024 * 1024


class Tail:
    """The last `cap` bytes of a stream, in whole lines once something had to be dropped."""

    def __init__(self, cap: int) -> None:
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._cap = cap
        self._cut = False

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._held += len(chunk)
        while self._held - len(self._chunks[0]) >= self._cap:
            self._held -= len(self._chunks.popleft())
            self._cut = True

    def read(self) -> bytes:
        data = b"".join(self._chunks)
        if len(data) <= self._cap and not self._cut:
            return data
        data = data[-self._cap :]
        # The rest of a cut line could be the rest of a token, which nothing would recognise.
        end = data.find(b"\n", 0, _LINE_SEARCH)
        return data[end + 1 :] if end >= 0 else data[min(_LINE_SEARCH, len(data) // 2) :]


class _Steps:
    """When the agent is told to end, and how firmly: I, then T, then K, then we give up on it."""

    def __init__(self, deadline: float, limits: Limits) -> None:
        self.reason = Ending.EXITED
        self.given_up = False
        self._next = deadline
        self._insisted = False
        self._left = [(b"I", limits.interrupt_s), (b"T", limits.terminate_s), (b"K", limits.kill_s)]

    def command(self, now: float, stop: StopFlag) -> bytes | None:
        """The command to send now, if one is due."""
        if stop.is_set() and self.reason is Ending.EXITED:
            self.reason, self._next = Ending.INTERRUPTED, now
        if stop.insisted and not self._insisted:
            self._insisted, self._next, self._left = True, now, self._left[-1:]
        if now < self._next:
            return None
        if self.reason is Ending.EXITED:
            self.reason = Ending.TIMEOUT
        if not self._left:
            self.given_up = True
            return None
        command, wait_s = self._left.pop(0)
        self._next = now + wait_s
        return command

    def pause(self, now: float) -> float:
        return max(0.0, min(_POLL_S, self._next - now))


class Run:
    """One supervisor and what is known of its agent so far.

    Attributes:
        code: the leader's exit code, once it ended.
        failed: the errno, when the program could not be executed.
        swept: how many leftover processes the supervisor killed.
        orderly: whether the supervisor itself reported the end; else it was killed.

    Raises:
        OSError: the supervisor cannot be started (no such folder, no memory).
    """

    def __init__(
        self, plan: Plan, workdir: Path, environment: Mapping[str, str], limits: Limits
    ) -> None:
        self.stdout, self.stderr = Tail(limits.stdout_bytes), Tail(limits.stderr_bytes)
        self.code: int | None = None
        self.failed: int | None = None
        self.swept = 0
        self.orderly = False
        self._limits = limits
        self._said = b""
        self._silent = False
        started = _start(plan, workdir, environment)
        self._process, self._control, self._status, self._out, self._err = started

    def until_ended(
        self, deadline: float, stop: StopFlag, on_start: Callable[[int], None] | None
    ) -> Ending:
        """Read and wait until the supervisor reports the end, or does not even react to K."""
        from selectors import EVENT_READ, DefaultSelector  # only when an agent really runs

        steps = _Steps(deadline, self._limits)
        with DefaultSelector() as selector:
            for fd in (self._status, self._out, self._err):
                selector.register(fd, EVENT_READ)
            while not self._silent and not steps.given_up:
                now = time.monotonic()
                self._send(steps.command(now, stop))
                for key, _ in selector.select(steps.pause(now)):
                    if key.fd == self._status:
                        self._hear(on_start)
                    elif not self._read(key.fd):
                        selector.unregister(key.fd)
        return steps.reason

    def close(self) -> None:
        """End what is left and collect the last output."""
        from subprocess import TimeoutExpired

        os.close(self._control)  # end of file: the supervisor kills everything and ends
        try:
            self._process.wait(self._limits.kill_s)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hear(None)
        for fd in (self._out, self._err):
            # Bounded: if the supervisor was killed, somebody may still be writing.
            for _ in range(_DRAIN_CHUNKS):
                if not self._read(fd):
                    break
        _close_all((self._status, self._out, self._err))

    def _send(self, command: bytes | None) -> None:
        if command is None:
            return
        try:
            os.write(self._control, command)
        except OSError:  # the supervisor has ended; its last words are still to be read
            return

    def _hear(self, on_start: Callable[[int], None] | None) -> None:
        """Read what the supervisor says, and note when it has said its last word."""
        try:
            words = os.read(self._status, 4096)
        except BlockingIOError:
            return
        lines = (self._said + words).split(b"\n")
        self._said = lines.pop()
        for line in lines:
            kind, *numbers = line.decode().split()
            if kind == "started" and on_start is not None:
                on_start(int(numbers[0]))
            elif kind == "failed":
                self.failed = int(numbers[0])
            elif kind == "ended":
                self.code, self.swept = int(numbers[0]), int(numbers[1])
                self.orderly = True
        self._silent = self._silent or self.orderly or not words

    def _read(self, fd: int) -> bool:
        """Read once without waiting; false at the end, and when nothing is there."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            (self.stdout if fd == self._out else self.stderr).add(chunk)
        return bool(chunk)


def _start(
    plan: Plan, workdir: Path, environment: Mapping[str, str]
) -> tuple["Popen[bytes]", int, int, int, int]:
    """Start the supervisor; return it and our ends: control, status, stdout, stderr."""
    import subprocess

    ours: list[int] = []
    theirs: list[int] = []
    try:
        for kind in ("control", "status", "stdout", "stderr"):
            reading, writing = os.pipe()
            ours.append(writing if kind == "control" else reading)
            theirs.append(reading if kind == "control" else writing)
        for fd in ours[1:]:
            os.set_blocking(fd, False)
        theirs.append(_given(plan.stdin))
        # -I and -S: nothing of the user's or the repository's Python may run in the supervisor.
        program = Path(__file__).with_name("_supervisor.py")
        process = subprocess.Popen(
            (sys.executable, "-I", "-S", "-B", program, str(theirs[0]), str(theirs[1]), *plan.argv),
            stdin=theirs[4],
            stdout=theirs[2],
            stderr=theirs[3],
            cwd=workdir,
            env=environment,
            pass_fds=theirs[:2],
            start_new_session=True,  # a Ctrl-C in the terminal is ours to hand on, politely
        )
    except BaseException:
        _close_all(ours)
        raise
    finally:
        _close_all(theirs)
    return process, ours[0], ours[1], ours[2], ours[3]


def _given(data: bytes) -> int:
    """A file descriptor that reads `data`; a file, so that nobody has to feed a slow reader."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("prompt")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
