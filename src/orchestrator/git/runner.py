"""The one place that starts the git program: hermetic, without prompts, within a time limit.

A command line flag or variable stands here only with its reason beside it. Nothing of the caller's
environment reaches git by accident, no hook runs, nothing waits for a terminal, and when the time
is up (or anything at all goes wrong here) the whole process group is ended.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator.errors import CannotLookError
from orchestrator.git.porcelain import without_credentials

LOCAL_TIMEOUT_S = 60.0
"""Seconds a command that stays on this machine may take."""

NETWORK_TIMEOUT_S = 300.0
"""Seconds one conversation with a remote may take, a large fetch included."""

_TERM_GRACE_S = 2.0
_SILENCE_S = 30


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# For every command.
_ALWAYS = (
    ("core.hooksPath", "/dev/null"),  # a repository's hooks are never run
    ("core.fsmonitor", "false"),  # it names a program that `git status` and friends would start
    ("gc.auto", "0"),  # housekeeping is the owner's: it takes locks and outlives the command
    ("maintenance.auto", "false"),  # the same, by its newer name
    ("core.askPass", ""),  # a graphical password prompt would wait for ever
    ("credential.interactive", "false"),  # so would a helper that opens a browser
    ("protocol.ext.allow", "never"),  # ext:: URLs are shell commands
    ("color.ui", "false"),  # output is read by programs
    ("log.showSignature", "false"),  # it would start gpg
    ("submodule.recurse", "false"),  # submodules are other repositories
)

# For conversations with a remote.
_NETWORK = (
    ("http.lowSpeedLimit", "1"),  # bytes per second: a server that accepts and then says nothing
    ("http.lowSpeedTime", str(_SILENCE_S)),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),  # housekeeping again
    ("fetch.pruneTags", "false"),  # tags are the user's
    ("push.pushOption", ""),  # an empty value clears options configured for the user's own pushes
    ("push.recurseSubmodules", "no"),
)

# What ssh must do when it is really ssh. The user's own options come first on its command line,
# and ssh takes the first value it sees, so theirs win.
_SSH_OPTIONS = (
    "-o BatchMode=yes "  # no password, passphrase or host key questions
    "-o ConnectTimeout=20 "
    f"-o ServerAliveInterval={_SILENCE_S // 2} -o ServerAliveCountMax=2"  # notices a dead peer
)

# Variables a local command may see.
_PASSED = _names(
    "PATH HOME USER LOGNAME SHELL TMPDIR TZ "
    "XDG_CONFIG_HOME "  # pygit2 looks there for git's configuration too
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH "  # for gits installed off the beaten track
    "SYSTEMROOT"
)

# Of the GIT_ variables, those that say how to reach a server, or nothing to do with us.
_PASSED_GIT = _names(
    "GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_PROXY_COMMAND GIT_PROXY_SSL_CERT "
    "GIT_PROXY_SSL_KEY GIT_PROXY_SSL_CAINFO GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSL_CERT "
    "GIT_SSL_KEY GIT_SSL_NO_VERIFY GIT_SSL_VERSION GIT_HTTP_PROXY_AUTHMETHOD GIT_HTTP_USER_AGENT "
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL "
    "GIT_EXEC_PATH "  # where this git's own programs are
    "GIT_CONFIG_NOSYSTEM"
)

# Not even for a conversation with a remote: they ask a person, or change what git prints.
_NEVER = _names(
    "SSH_ASKPASS SSH_ASKPASS_REQUIRE DISPLAY WAYLAND_DISPLAY LANG LANGUAGE LC_MESSAGES "
    "PAGER EDITOR VISUAL BASH_ENV ENV"
)

_FIXED = {
    "LC_ALL": "C",  # git's own words in English, so that the few we must know are known
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",  # the credential manager's own switch
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",  # no ext::, no remote-helper programs
    "GIT_OPTIONAL_LOCKS": "0",  # looking takes no lock
    "GIT_NO_REPLACE_OBJECTS": "1",  # pygit2 knows no replacements: both see the same history
    "GIT_PAGER": "cat",
    "GIT_ADVICE": "0",
}


@dataclass(frozen=True, slots=True)
class Completed:
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


def home_of(environ: Mapping[str, str]) -> str | None:
    """HOME, or what the password database says when the environment has none (cron often has
    none). None when neither knows.
    """
    if environ.get("HOME"):
        return environ["HOME"]
    import pwd  # only where HOME is missing

    try:
        return pwd.getpwuid(os.getuid()).pw_dir or None
    except KeyError:
        return None


class Git:
    """Runs git on one repository.

    Args:
        git_dir: what pygit2 opened; git is told, so that both speak of one repository.
        environ: the environment of this process; only an allow-list of it is passed on.
        cwd: where commands start (relative URLs of remotes count from here); default: the working
            tree the repository belongs to, or the repository itself.
    """

    def __init__(self, git_dir: str, *, environ: Mapping[str, str], cwd: str | None = None) -> None:
        self.git_dir = os.path.abspath(git_dir)
        self.cwd = cwd or _start_folder(self.git_dir)
        self._local_env = _local_environment(environ)
        self._environ = environ
        self._network_env: dict[str, str] | None = None

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        timeout: float | None = None,
        ok_codes: Sequence[int] | None = (0,),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        network: bool = False,
    ) -> Completed:
        """Run `git <args>` and wait for it.

        Args:
            *args: what follows `git`, as a list: no shell sees it.
            stdin: what it reads; nothing (/dev/null) when empty.
            timeout: wall-clock seconds; default LOCAL_TIMEOUT_S, or NETWORK_TIMEOUT_S.
            ok_codes: the exit codes that are answers; None takes any, a time-out included.
            env: variables set for this command, beside the fixed ones.
            cwd: where it starts, instead of the usual folder.
            network: whether this talks to a remote; local commands cannot fetch by themselves.

        Raises:
            GitFailedError: another exit code, the time limit, or git cannot be started. Its message
                carries git's words, never the argument list (it may hold a URL with a password).
        """
        limit = timeout or (NETWORK_TIMEOUT_S if network else LOCAL_TIMEOUT_S)
        settings = (*_ALWAYS, *_NETWORK) if network else _ALWAYS
        argv = ["git", "--git-dir=" + self.git_dir, "--no-pager"]
        for key, value in settings:
            argv += ("-c", f"{key}={value}")
        environment = self._remote_environment() if network else self._local_env
        if env:
            environment = {**environment, **env}
        done = _execute([*argv, *args], stdin, limit, environment, cwd or self.cwd)
        if ok_codes is not None and (done.timed_out or done.code not in ok_codes):
            raise _failure(args, done, limit)
        return done

    def _remote_environment(self) -> dict[str, str]:
        """Everything but what asks a person or steers git: credential helpers, ssh and proxies are
        the operator's own programs and take their tokens and agents from wherever he put them.
        """
        if self._network_env is None:
            kept = {
                k: v
                for k, v in self._environ.items()
                if k not in _NEVER and not k.startswith(("GIT_", "LC_"))
            }
            self._network_env = {**kept, **self._local_env}
            self._network_env.pop("GIT_NO_LAZY_FETCH", None)
            command = self._ssh_command()
            if command is not None:
                self._network_env["GIT_SSH_COMMAND"] = command
        return self._network_env

    def _ssh_command(self) -> str | None:
        """The ssh command to use, made non-interactive when it is ssh; None leaves git its own."""
        configured = self._environ.get("GIT_SSH_COMMAND")
        if not configured:
            done = self.run("config", "--get", "core.sshCommand", ok_codes=(0, 1, 2))
            configured = os.fsdecode(done.stdout).strip()
        if not configured:
            program = self._environ.get("GIT_SSH")
            if program and os.path.basename(program) != "ssh":  # a name, not a path
                return None
            import shlex  # only for a configured program

            configured = shlex.quote(program) if program else "ssh"
        return f"{configured} {_SSH_OPTIONS}" if _is_ssh(configured) else configured


def _is_ssh(command: str) -> bool:
    """Whether a shell command line is a plain call of ssh that takes more options at its end."""
    import shlex  # only before a conversation with a remote

    if set(command) & set(";|&<>()$`\n"):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and os.path.basename(words[0]) in ("ssh", "ssh.exe")


def _local_environment(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in environ.items() if k in _PASSED or k in _PASSED_GIT}
    kept.update(_FIXED)
    kept["GIT_NO_LAZY_FETCH"] = "1"  # a partial clone stays silent unless asked (git 2.45 and up)
    kept.setdefault("PATH", os.defpath)
    home = home_of(environ)
    if home is not None:
        kept["HOME"] = home
    return kept


def _start_folder(git_dir: str) -> str:
    """The working tree's top folder, from which relative remote URLs count, or `git_dir`."""
    path = Path(git_dir)
    link = path / "gitdir"  # a linked worktree's own folder names the `.git` file it belongs to
    if path.name == ".git":
        folder = path.parent
    elif link.is_file():
        folder = Path(os.fsdecode(link.read_bytes()).strip()).parent
    else:
        folder = path
    return str(folder) if folder.is_dir() else git_dir


def _execute(
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


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass
    except PermissionError:  # macOS says so of a group that is only a zombie
        pass


def _failure(args: Sequence[str], done: Completed, limit: float) -> GitFailedError:
    verb = next((a for a in args if not a.startswith("-")), "")
    if done.timed_out:
        return GitFailedError(f"git {verb} did not end within {limit:g} s", None, done)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    words = lines[0].removeprefix("fatal: ") if lines else f"exit code {done.code}"
    return GitFailedError(f"git {verb} failed: {words}", None, done)
