"""The runner: sealed off, silent, and never longer than its limit."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.git import process
from orchestrator.git.environment import ssh_command
from orchestrator.git.runner import Git, GitFailedError
from tests.support import repos


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "r", {"a": "a\n"})


def runner(path: Path, **environ: str) -> Git:
    return Git(str(path / ".git"), environ={**os.environ, **environ})


def program(folder: Path, name: str, script: str) -> str:
    """Put a shell script called `name` into a folder; a PATH that finds it first."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def alive(marker: str) -> list[int]:
    """Processes with `marker` in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def marker() -> Iterator[str]:
    """A duration nobody else sleeps for, to find our processes by."""
    text = f"61.{os.getpid()}{time.monotonic_ns() % 10**6}"
    yield text
    for pid in alive(text):
        os.kill(pid, signal.SIGKILL)


def test_output_and_input_are_bytes(path: Path) -> None:
    done = runner(path).run("hash-object", "--stdin", stdin=b"\0\xff")
    assert done.ok
    assert done.stdout == b"0c2b7ff9ce30a6fc7ac0ff90b5e1e9d4b4d91b4b\n" or len(done.stdout) == 41
    assert runner(path).run("cat-file", "blob", "HEAD:a").stdout == b"a\n"


def test_a_large_input_and_output_pass_through(path: Path) -> None:
    data = b"x" * 5_000_000
    oid = runner(path).run("hash-object", "-w", "--stdin", stdin=data).stdout.decode().strip()
    assert runner(path).run("cat-file", "blob", oid).stdout == data


def test_an_exit_code_that_is_no_answer_is_an_error_with_gits_words(path: Path) -> None:
    with pytest.raises(GitFailedError, match="git cat-file failed: Not a valid object name none"):
        runner(path).run("cat-file", "blob", "none")
    assert runner(path).run("cat-file", "-e", "none", ok_codes=(0, 128)).code == 128
    assert runner(path).run("no-such-verb", ok_codes=None).code == 1


def test_without_git_it_says_so(path: Path, tmp_path: Path) -> None:
    with pytest.raises(GitFailedError, match="git could not be started"):
        runner(path, PATH=str(tmp_path)).run("version")


def test_hooks_of_the_repository_never_run(path: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    for name in ("reference-transaction", "post-index-change", "pre-push", "post-checkout"):
        program(path / ".git" / "hooks", name, f"echo {name} >> {trace}")
    repos.git(path, "update-ref", "refs/heads/by-hand", "HEAD")
    assert trace.read_text().startswith("reference-transaction")
    trace.unlink()
    runner(path).run("update-ref", "refs/heads/by-us", "HEAD")
    runner(path).run("update-index", "--refresh")
    remote = repos.bare_remote(tmp_path / "up.git")  # its hooks are its own business
    runner(path).run("push", str(remote), "HEAD:refs/heads/pushed", network=True)
    assert not trace.exists()


def test_configured_programs_of_the_repository_never_run(path: Path, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    folder = program(tmp_path / "bin", "evil", f"echo ran >> {trace}").split(":")[0]
    for key in ("core.fsmonitor", "core.pager", "core.askPass", "core.editor"):
        repos.git(path, "config", key, f"{folder}/evil")
    runner(path).run("status", "--porcelain")
    runner(path).run("log", "--oneline")
    runner(path).run("ls-remote", f"ext::{folder}/evil", ok_codes=None, network=True)
    assert not trace.exists()


def test_git_sees_an_allow_list_of_the_environment(path: Path, tmp_path: Path) -> None:
    shown = program(tmp_path / "bin", "git", 'case "$*" in *sshCommand) exit 1;; esac; env')
    given = {
        "PATH": shown,
        "GIT_DIR": "/elsewhere",
        "GIT_INDEX_FILE": "/elsewhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_GLOBAL": "/elsewhere",
        "GIT_ASKPASS": "/bin/window",
        "GIT_TRACE": "1",
        "GIT_SSL_CAINFO": "/certs",
        "GITHUB_TOKEN": "secret",
        "SSH_ASKPASS": "/bin/window",
        "LC_ALL": "de_DE.UTF-8",
        "LANGUAGE": "de",
    }
    local = _environment(runner(path, **given).run("x").stdout)
    remote = _environment(runner(path, **given).run("x", network=True).stdout)
    for seen in (local, remote):
        assert not {"GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL"} & set(
            seen
        )
        assert not {"GIT_ASKPASS", "GIT_TRACE", "SSH_ASKPASS", "LANGUAGE"} & set(seen)
        assert seen["LC_ALL"] == "C"
        assert seen["GIT_TERMINAL_PROMPT"] == "0"
        assert seen["GIT_ALLOW_PROTOCOL"] == "https:http:ssh:git:file"
        assert seen["GIT_SSL_CAINFO"] == "/certs"
        assert seen["HOME"] == os.environ["HOME"]
    assert "GITHUB_TOKEN" not in local
    assert remote["GITHUB_TOKEN"] == "secret"  # a credential helper may live on it
    assert local["GIT_NO_LAZY_FETCH"] == "1"
    assert "GIT_NO_LAZY_FETCH" not in remote


def _environment(output: bytes) -> dict[str, str]:
    pairs = (line.partition("=") for line in output.decode().splitlines())
    return {key: value for key, _, value in pairs}


@pytest.mark.parametrize(
    ("environ", "configured", "expected"),
    [
        ({}, None, "ssh -o"),
        ({}, "ssh -i key", "ssh -i key -o"),
        ({"GIT_SSH_COMMAND": "/usr/bin/ssh -v"}, "other", "/usr/bin/ssh -v -o"),
        ({"GIT_SSH": "/opt/my ssh/ssh"}, None, "'/opt/my ssh/ssh' -o"),
    ],
)
def test_ssh_is_made_non_interactive(
    environ: dict[str, str], configured: str | None, expected: str
) -> None:
    command = ssh_command(environ, configured)
    assert command is not None
    assert command.startswith(expected)
    for option in ("BatchMode=yes", "ConnectTimeout=", "ServerAliveInterval="):
        assert option in command


@pytest.mark.parametrize(
    ("environ", "configured", "expected"),
    [
        ({"GIT_SSH": "/opt/plink"}, None, None),
        ({"GIT_SSH_COMMAND": "plink -batch"}, None, "plink -batch"),
        ({}, "ssh -i key | tee log", "ssh -i key | tee log"),
        ({}, "wrapper ssh", "wrapper ssh"),
        ({}, "ssh 'unclosed", "ssh 'unclosed"),
    ],
)
def test_another_program_in_the_place_of_ssh_is_left_as_it_is(
    environ: dict[str, str], configured: str | None, expected: str | None
) -> None:
    assert ssh_command(environ, configured) == expected


def test_the_configured_ssh_command_is_the_one_that_runs(path: Path, tmp_path: Path) -> None:
    search = program(tmp_path / "bin", "ssh", 'echo "$@" >&2; exit 255')
    repos.git(path, "config", "core.sshCommand", "ssh -i mykey")
    done = runner(path, PATH=search).run("ls-remote", "ssh://host/x", network=True, ok_codes=None)
    assert done.stderr.startswith("-i mykey -o BatchMode=yes")


def test_relative_urls_count_from_the_working_tree(path: Path, tmp_path: Path) -> None:
    repos.bare_remote(tmp_path / "up.git", {"u": "u"})
    repos.git(path, "remote", "add", "origin", "../up.git")
    assert b"refs/heads/main" in runner(path).run("ls-remote", "origin", network=True).stdout
    repos.git(path, "worktree", "add", "-q", str(tmp_path / "w"))
    linked = Git(str(path / ".git/worktrees/w"), environ=os.environ)
    assert linked.cwd == str(tmp_path / "w")
    assert b"refs/heads/main" in linked.run("ls-remote", "origin", network=True).stdout


def test_a_password_in_a_url_is_not_repeated(path: Path) -> None:
    done = runner(path).run(
        "ls-remote", "http://ann:hunter2@127.0.0.1:9/x", network=True, ok_codes=None
    )
    assert "hunter2" not in done.stderr
    with pytest.raises(GitFailedError) as caught:
        runner(path).run("ls-remote", "http://ann:hunter2@127.0.0.1:9/x", network=True)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("ending", ["", "trap '' TERM; "])
def test_the_limit_ends_the_whole_group(path: Path, marker: str, ending: str) -> None:
    started = time.monotonic()
    script = f"!{ending}sleep {marker} & {ending}sleep {marker}; sleep {marker}"
    with pytest.raises(GitFailedError, match=r"did not end within 0\.3 s"):
        runner(path).run("-c", f"alias.hang={script}", "hang", timeout=0.3)
    assert time.monotonic() - started < 0.3 + process._TERM_GRACE_S + 1
    assert alive(marker) == []


def test_a_grandchild_that_keeps_the_output_open_holds_nobody_up(path: Path, marker: str) -> None:
    started = time.monotonic()
    script = f"!echo hi; setsid sleep {marker} &"
    assert runner(path).run("-c", f"alias.x={script}", "x").stdout == b"hi\n"
    assert time.monotonic() - started < 5
    assert alive(marker)


def test_an_interrupt_ends_the_group_and_goes_on(path: Path, marker: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            runner(path).run("-c", f"alias.hang=!sleep {marker}", "hang")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert alive(marker) == []


@pytest.mark.parametrize("missing", ["pidfd_open", "memfd_create"])
def test_where_the_system_lacks_the_newer_calls_it_works_the_same(
    path: Path, marker: str, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delattr(os, missing)
    assert runner(path).run("cat-file", "blob", "HEAD:a").stdout == b"a\n"
    with pytest.raises(GitFailedError):
        runner(path).run("-c", f"alias.hang=!sleep {marker}", "hang", timeout=0.2)
    assert alive(marker) == []
