"""A git server over http, in a process of its own, that drops connections when it is told to.

In its own process because whoever forks ticks must not have threads.
"""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.support.servers import HttpServer, http_server

Drop = Literal["before", "after"]
_WORDS: dict[bytes, Drop] = {b"b": "before", b"a": "after"}


class Dropper:
    """The driver's end of the server.

    `arm("after")` drops one push after it was applied, `arm("before")` one push that never arrives.
    """

    def __init__(self, port: int, control: socket.socket) -> None:
        self.port = port
        self._control = control

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def arm(self, drop: Drop) -> None:
        self._control.sendall(drop[:1].encode())

    def dropped(self) -> int:
        """Disarm; how many were dropped since the last time this was asked."""
        self._control.sendall(b"?")
        return int.from_bytes(self._control.recv(4), "big")


@contextmanager
def dropping_server(root: Path) -> Iterator[Dropper]:
    """Serve every repository below `root` from a child process, until the block ends."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # the driver closes the line when it ends
            _serve(root, theirs)
        finally:
            os._exit(0)
    theirs.close()
    try:
        yield Dropper(int.from_bytes(ours.recv(4), "big"), ours)
    finally:
        ours.close()  # end of file: the server ends
        os.waitpid(pid, 0)


def _serve(root: Path, control: socket.socket) -> None:
    armed: list[Drop] = []
    done = 0

    def misbehave(is_push: bool) -> Drop | None:
        nonlocal done
        if not is_push or not armed:
            return None
        done += 1
        return armed.pop()

    with http_server(root) as server:
        server.misbehave = misbehave
        control.sendall(server.port.to_bytes(4, "big"))
        while words := control.recv(1):
            if words == b"?":
                armed.clear()
                control.sendall(done.to_bytes(4, "big"))
                done = 0
            else:
                armed.append(_WORDS[words])


__all__ = ["Dropper", "HttpServer", "dropping_server"]
