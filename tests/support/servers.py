"""Git over http and ssh on 127.0.0.1, with ways to misbehave. They end by themselves, by pid.

with http_server(root) as server:
    url = server.url("up.git")
    server.after_push = "drop"

with ssh_server(folder) as server:
    url = server.url(root / "up.git"); monkeypatch.setenv("GIT_SSH_COMMAND", server.command)
"""

import gzip
import http.server
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.support.repos import environment

_READY_S = 10.0


def decline_pushes(repo: Path, words: str) -> None:
    """Give a bare repository a hook that refuses every push and says `words`."""
    hook = repo / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    hook.chmod(0o755)


def on_push(repo: Path, script: str) -> None:
    """Give a bare repository a hook that runs a shell script after each accepted push."""
    hook = repo / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def die_after_push(repo: Path) -> None:
    """Make a bare repository's receiving program die once the refs have moved, before it says so:
    over any transport, an acknowledgement that never comes.
    """
    hook = repo / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\n[ "$1" = committed ] && kill -9 $PPID\nexit 0\n')
    hook.chmod(0o755)


@dataclass
class HttpServer:
    """A smart-http server over every repository below `root`.

    Attributes:
        delay_s: seconds before each answer.
        after_push: `drop` closes the connection after the push was applied, without an answer;
            `hang` applies it and never answers.
        hang: accept, read the request and never answer.
        password: what basic authentication must carry (user `ann`); None asks for none.
        misbehave: asked for every request whether to drop it, `before` or `after` it had its
            effect; told whether it is a push.
        requests: method and path of every request so far.
    """

    root: Path
    port: int = 0
    delay_s: float = 0.0
    after_push: Literal["answer", "drop", "hang"] = "answer"
    hang: bool = False
    password: str | None = None
    misbehave: Callable[[bool], Literal["before", "after"] | None] = lambda _: None
    requests: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def url(self, name: str, user: str | None = None) -> str:
        """The URL of a repository; `user` may be `name:password`."""
        who = f"{user}@" if user else ""
        return f"http://{who}127.0.0.1:{self.port}/{name}"


@contextmanager
def http_server(root: Path) -> Iterator[HttpServer]:
    """Serve every repository below `root`, on a free port, until the block ends."""
    state = HttpServer(root)

    class Handler(_Handler):
        server_state = state

    with _Server(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.stopping.set()
            server.shutdown()
            thread.join()


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: HttpServer

    def log_message(self, *args: object) -> None:
        """Quiet."""

    def _serve(self) -> None:
        state = self.server_state
        state.requests.append(f"{self.command} {self.path}")
        body = self._body()
        if state.hang:
            state.stopping.wait(60)
            return self._drop()
        if state.delay_s:
            state.stopping.wait(state.delay_s)
        if state.password is not None and not self._authorised(state.password):
            return self._answer(401, [("WWW-Authenticate", 'Basic realm="git"')], b"")
        is_push = self.command == "POST" and self.path.endswith("/git-receive-pack")
        drop = state.misbehave(is_push)
        if drop == "before":
            return self._drop()
        status, headers, content = self._backend(body)
        if drop == "after":
            return self._drop()
        if is_push and state.after_push != "answer":
            if state.after_push == "hang":
                state.stopping.wait(60)
            return self._drop()
        return self._answer(status, headers, content)

    do_GET = do_POST = _serve  # noqa: N815 - http.server finds them by these names

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _authorised(self, password: str) -> bool:
        import base64

        wanted = base64.b64encode(f"ann:{password}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {wanted}"

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            data += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return data

    def _backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        url = urllib.parse.urlsplit(self.path)
        env = environment(
            GIT_PROJECT_ROOT=str(self.server_state.root),
            GIT_HTTP_EXPORT_ALL="1",
            GIT_PROTOCOL=self.headers.get("Git-Protocol", ""),
            PATH_INFO=urllib.parse.unquote(url.path),
            QUERY_STRING=url.query,
            REQUEST_METHOD=self.command,
            CONTENT_TYPE=self.headers.get("Content-Type", ""),
            CONTENT_LENGTH=str(len(body)),
            REMOTE_USER="ann",
            REMOTE_ADDR="127.0.0.1",
        )
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=env, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        pairs = [line.partition(": ") for line in head.decode("latin-1").split("\r\n") if line]
        headers = [(key, value) for key, _, value in pairs if key != "Status"]
        status = next((int(v.split()[0]) for k, _, v in pairs if k == "Status"), 200)
        return status, headers, content

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        try:
            self.send_response(status)
            for key, value in headers:
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True


@contextmanager
def silent_server() -> Iterator[int]:
    """A port that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
        yield listener.getsockname()[1]


@dataclass(frozen=True)
class SshServer:
    """An sshd that lets this user in by key.

    Attributes:
        command: the ssh command that reaches it (for GIT_SSH_COMMAND or core.sshCommand).
        pid: the listening process.
    """

    port: int
    command: str
    pid: int

    def url(self, repo: Path) -> str:
        return f"ssh://127.0.0.1:{self.port}{repo}"


class SshUnavailableError(RuntimeError):
    """sshd is not installed or did not start; the message says what to do."""


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """Run sshd on a free port of 127.0.0.1, with its keys and logs in `folder`.

    Raises:
        SshUnavailableError: there is no sshd here, or it did not start.
    """
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise SshUnavailableError(
            "these tests need sshd: apt-get install openssh-server (or the like)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    _prepare_ssh(folder, port)
    argv = [program, "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "sshd.log").open("wb") as log:
        # Its own group: what it forked for a connection ends with it.
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until_ready(process, port, folder / "sshd.log")
        yield SshServer(port, _ssh_command(folder), process.pid)
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, number)
                try:
                    process.wait(3)
                except subprocess.TimeoutExpired:
                    continue


def _prepare_ssh(folder: Path, port: int) -> None:
    for key in ("host", "id"):
        if not (folder / key).exists():
            argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    authorized = folder / "authorized_keys"
    authorized.write_bytes((folder / "id.pub").read_bytes())
    authorized.chmod(0o600)
    if os.geteuid() == 0:
        # Where sshd, started as root, wants to confine its unprivileged half.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\n"
        f"PidFile none\nAuthorizedKeysFile {authorized}\nUsePAM no\nStrictModes no\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nMaxStartups 200\nMaxSessions 200\n"
        # The served git, and the shell that starts it, see no more of this machine than a test.
        f"AcceptEnv GIT_PROTOCOL\nSetEnv HOME={home} GIT_CONFIG_NOSYSTEM=1\n"
    )


def _ssh_command(folder: Path) -> str:
    return (
        f"ssh -i {folder / 'id'} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no "
        f"-o UserKnownHostsFile={folder / 'known'} -o LogLevel=ERROR -F /dev/null "
        "-o KexAlgorithms=curve25519-sha256"  # the default one is slow, and this is a loopback
    )


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.02)
    words = log.read_text(errors="replace").strip()
    raise SshUnavailableError(f"sshd did not start; without root it needs UsePAM no: {words}")
