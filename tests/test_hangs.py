"""Nothing waits for ever: every conversation with a remote ends within its limit, whatever the
server, an askpass or a credential helper does, and leaves no process behind.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.errors import CannotLookError, RemoteUnreachableError
from orchestrator.git import runner, wire
from orchestrator.git.reader import Reader
from orchestrator.git.runner import Git
from orchestrator.git.wire import PushOutcome, Remote
from orchestrator.model.names import Oid, Ref
from orchestrator.site import Settings
from orchestrator.tick import tick
from tests.support import repos, servers
from tests.support.world import START, World

LIMIT_S = 0.6
GRACE_S = 4.0
"""How much longer than its limit a step may take: asking the group to end, then ending it."""
REF = Ref("refs/heads/run/historian-2026-11-30")


@dataclass(frozen=True)
class Place:
    """A clone whose remote is silent in some way, and a commit to push there."""

    clone: Path
    base: Oid
    ours: Oid
    environ: dict[str, str]

    @property
    def remote(self) -> Remote:
        reader = Reader.open(str(self.clone), self.environ)
        return Remote(Git(reader.git_dir, environ=self.environ), reader, "origin")


STEPS: dict[str, Callable[[Place], object]] = {
    "head": lambda p: p.remote.head(),
    "fetch": lambda p: p.remote.fetch("main"),
    "ls": lambda p: p.remote.ls("refs/heads/run/*"),
    "fetch_ref": lambda p: p.remote.fetch_ref(Ref("refs/heads/main")),
    "create": lambda p: p.remote.create(p.ours, REF),
    "update": lambda p: p.remote.update(p.ours, REF, p.base),
    "delete": lambda p: p.remote.delete(REF, p.base),
}
SILENCES = ("http", "ssh", "git", "http-answers-never", "credential-helper", "deaf-helper")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    up = repos.bare_remote(tmp_path / "up.git", {"a.txt": "a\n"})
    return repos.clone(up, tmp_path / "clone")


@pytest.fixture
def marker() -> Iterator[str]:
    """A duration nobody else sleeps for, to find what our programs left by."""
    text = f"62.{os.getpid()}{time.monotonic_ns() % 10**6}"
    yield text
    for pid in running(text):
        os.kill(pid, signal.SIGKILL)


def running(*words: str) -> list[int]:
    """Processes with one of `words` in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(word in line for word in words) and int(entry.parent.name) != os.getpid():
            found.append(int(entry.parent.name))
    return found


def sleeper(path: Path, marker: str, before: str = "") -> Path:
    """A program that notes that it was started, and then sleeps."""
    path.write_text(f"#!/bin/sh\n{before}\ntouch '{path}.started'\nsleep {marker}\n")
    path.chmod(0o755)
    return path


def silenced(clone: Path, how: str, marker: str, stack: ExitStack) -> int:
    """Make the clone's remote one that never answers; the port that would have to."""
    root = clone.parent
    if how in ("http", "ssh", "git"):
        port = stack.enter_context(servers.silent_server())
        repos.git(clone, "remote", "set-url", "origin", f"{how}://127.0.0.1:{port}/up.git")
        return port
    server = stack.enter_context(servers.http_server(root))
    server.hang = how == "http-answers-never"
    if not server.hang:
        server.password = "secret"
        deaf = "trap '' TERM" if how == "deaf-helper" else ""
        helper = sleeper(root / "helper", marker, deaf)
        repos.git(clone, "config", "credential.helper", str(helper))
    repos.git(clone, "remote", "set-url", "origin", server.url("up.git"))
    return server.port


def limited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wire, "ASK_TIMEOUT_S", LIMIT_S)
    patch.setattr(runner, "NETWORK_TIMEOUT_S", LIMIT_S)
    patch.setattr(wire, "NETWORK_TIMEOUT_S", LIMIT_S)


@pytest.mark.parametrize("how", SILENCES)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_nobody_answers_ends_at_its_limit(
    step: str, how: str, clone: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repos.tip(clone)
    ours = repos.commit_files(clone, {"b.txt": "b\n"})
    limited(monkeypatch)
    with ExitStack() as stack:
        port = silenced(clone, how, marker, stack)
        place = Place(clone, base, ours, {**os.environ})
        started = time.monotonic()
        try:
            said = STEPS[step](place)
        except RemoteUnreachableError as error:
            said = error.message
        took = time.monotonic() - started
        assert LIMIT_S * 0.9 < took < LIMIT_S + GRACE_S
        assert f"no answer within {LIMIT_S:g} s" in str(said)
        if step in ("create", "update", "delete"):
            assert isinstance(said, PushOutcome)
            assert (said.flag, said.answered) == (None, False)
        assert running(marker, str(clone), f"127.0.0.1:{port}") == []


ASKPASS = {
    "GIT_ASKPASS": "askpass",
    "SSH_ASKPASS": "askpass",
    "SSH_ASKPASS_REQUIRE": "force",
    "DISPLAY": ":0",
    "GIT_TERMINAL_PROMPT": "1",
}


@pytest.mark.parametrize("configured", [False, True], ids=["environment", "core.askPass"])
@pytest.mark.parametrize("step", STEPS)
def test_an_askpass_is_never_asked(
    step: str, configured: bool, clone: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = repos.tip(clone)
    ours = repos.commit_files(clone, {"b.txt": "b\n"})
    asks = sleeper(clone.parent / "askpass", marker)
    environ = {**os.environ}
    if configured:
        repos.git(clone, "config", "core.askPass", str(asks))
    else:
        named = {k: str(asks) if v == "askpass" else v for k, v in ASKPASS.items()}
        environ |= named
    limited(monkeypatch)
    with servers.http_server(clone.parent) as server:
        server.password = "secret"
        repos.git(clone, "remote", "set-url", "origin", server.url("up.git"))
        place = Place(clone, base, ours, environ)
        try:
            said = STEPS[step](place)
        except RemoteUnreachableError as error:
            said = error.message
        assert "could not read Username" in str(said)
        assert not Path(f"{asks}.started").exists()
        assert running(marker) == []


def test_an_ssh_that_wants_a_passphrase_is_not_helped_by_an_askpass(
    clone: Path, marker: str, tmp_path: Path
) -> None:
    asks = sleeper(tmp_path / "askpass", marker)
    with servers.ssh_server(tmp_path / "ssh") as ssh:
        repos.git(clone, "remote", "set-url", "origin", ssh.url(tmp_path / "up.git"))
        (tmp_path / "ssh" / "authorized_keys").write_text("")
        named = {k: str(asks) if v == "askpass" else v for k, v in ASKPASS.items()}
        environ = {**os.environ, **named, "GIT_SSH_COMMAND": ssh.command}
        with pytest.raises(RemoteUnreachableError, match="Permission denied"):
            Place(clone, repos.tip(clone), repos.tip(clone), environ).remote.head()
    assert not Path(f"{asks}.started").exists()
    assert running(marker) == []


@pytest.mark.parametrize("how", ["http", "ssh", "git"])
def test_a_tick_whose_remote_is_silent_launches_nothing_and_lets_go_of_its_lock(
    how: str, tmp_path: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.with_remote(tmp_path)
    url = repos.git(world.home, "remote", "get-url", "origin")
    with ExitStack() as stack, monkeypatch.context() as patch:
        limited(patch)
        silenced(world.home, how, marker, stack)
        settings = Settings(path=str(world.home), environ=world.environ)
        with pytest.raises(CannotLookError, match="no answer within"):
            tick(settings, lambda: START)
        assert running(str(world.home)) == []
    repos.git(world.home, "remote", "set-url", "origin", url)
    assert world.only().sweep is not None
