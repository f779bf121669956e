"""The one place that starts the git program: hermetic, without prompts, within a time limit.

A command line flag or variable stands here only with its reason beside it. Nothing of the caller's
environment reaches git by accident, no hook runs, nothing waits for a terminal, and when the time
is up (or anything at all goes wrong here) the whole process group is ended.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.git.environment import (
    SILENCE_S,
    local_environment,
    remote_environment,
    ssh_command,
)
from orchestrator.git.process import Completed, GitFailedError, execute

__all__ = ["Completed", "Git", "GitFailedError"]

LOCAL_TIMEOUT_S = 60.0
"""Seconds a command that stays on this machine may take."""

NETWORK_TIMEOUT_S = 300.0
"""Seconds one conversation with a remote may take, a large fetch included."""


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
    ("http.lowSpeedTime", str(SILENCE_S)),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.writeCommitGraph", "false"),  # housekeeping again
    ("fetch.pruneTags", "false"),  # tags are the user's
    ("push.pushOption", ""),  # an empty value clears options configured for the user's own pushes
    ("push.recurseSubmodules", "no"),
)


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
        self._local_env = local_environment(environ)
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
        done = execute([*argv, *args], stdin, limit, environment, cwd or self.cwd)
        if ok_codes is not None and (done.timed_out or done.code not in ok_codes):
            raise _failure(args, done, limit)
        return done

    def elsewhere(self, git_dir: str, cwd: str) -> "Git":
        """A runner for another repository, with the same environment."""
        return Git(git_dir, environ=self._environ, cwd=cwd)

    def _remote_environment(self) -> dict[str, str]:
        if self._network_env is None:
            self._network_env = remote_environment(self._environ)
            done = self.run("config", "--get", "core.sshCommand", ok_codes=(0, 1, 2))
            command = ssh_command(self._environ, os.fsdecode(done.stdout).strip())
            if command is not None:
                self._network_env["GIT_SSH_COMMAND"] = command
        return self._network_env


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


def _failure(args: Sequence[str], done: Completed, limit: float) -> GitFailedError:
    verb = next((a for a in args if not a.startswith("-")), "")
    if done.timed_out:
        return GitFailedError(f"git {verb} did not end within {limit:g} s", None, done)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    words = lines[0].removeprefix("fatal: ") if lines else f"exit code {done.code}"
    return GitFailedError(f"git {verb} failed: {words}", None, done)
