"""Record what the installed git prints in the situations its parsers must read.

    PYTHONPATH=src:. python scripts/record_git_output.py fixtures/git-output

Run it with a new git, look at the difference, and commit it if the parsers still read it.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support import repos, servers

_REF = "refs/heads/run/historian-2026-11-30"


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder), target)


def record(folder: Path, target: Path) -> None:
    up = repos.bare_remote(folder / "up.git", {"a.txt": "a\n"})
    mine = repos.clone(up, folder / "mine")
    first = repos.tip(mine)
    second = repos.commit_files(mine, {"b.txt": "b\n"})

    def say(name: str, *args: str, **extra: str) -> None:
        done = subprocess.run(
            ["git", "-C", str(mine), *args],
            capture_output=True,
            env=repos.environment(GIT_TERMINAL_PROMPT="0", **extra),
            check=False,
        )
        for kind, data in (("stdout", done.stdout), ("stderr", done.stderr)):
            (target / f"{name}.{kind}").write_bytes(_steady(data, folder))

    def push(name: str, refspec: str, expected: str = "", remote: str = "origin") -> None:
        lease = f"--force-with-lease={_REF}:{expected}"
        say(name, "push", "--porcelain", "--no-progress", lease, remote, refspec)

    push("push-new", f"{first}:{_REF}")
    push("push-same", f"{first}:{_REF}")
    push("push-stale", f"{second}:{_REF}")
    push("push-moved", f"{second}:{_REF}", first)
    say("ls-remote", "ls-remote", "--symref", "origin")
    say("ls-remote-nothing", "ls-remote", "origin", "refs/heads/none")
    say("refs", "for-each-ref", "--format=%(objectname)%00%(refname)%00%(symref)")
    push("push-deleted", f":{_REF}", second)
    say("push-plain-rejected", "push", "--porcelain", "origin", f"{_orphan(mine)}:refs/heads/main")
    repos.git(up, "update-ref", "refs/heads/run", first)
    push("push-blocked-by-run", f"{first}:{_REF}")
    repos.git(up, "update-ref", "-d", "refs/heads/run")
    lock = up / f"{_REF}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    push("push-blocked-by-lock", f"{first}:{_REF}")
    lock.unlink()
    _over_http(folder, up, first, push, say)
    servers.decline_pushes(up, "no sweeps on Sundays")
    push("push-declined", f"{first}:{_REF}")
    say("no-such-repository", "ls-remote", f"file://{folder}/none.git")
    say("connection-refused", "ls-remote", "http://127.0.0.1:9/up.git")
    say("no-such-branch", "fetch", "origin", "refs/heads/none")


def _over_http(folder: Path, up: Path, first: str, push: object, say: object) -> None:
    assert callable(push)
    assert callable(say)
    with servers.http_server(folder) as server:
        server.after_push = "drop"
        push("push-dropped-http", f"{first}:{_REF}", "", server.url("up.git"))
        server.password = "secret"
        say("password-wanted", "ls-remote", server.url("up.git"))
        say("password-wrong", "ls-remote", server.url("up.git", "ann:wrong"))
    repos.git(up, "update-ref", "-d", _REF)
    with servers.ssh_server(folder / "ssh") as ssh:
        url = ssh.url(up)
        say(
            "ssh-denied",
            "ls-remote",
            url,
            GIT_SSH_COMMAND="ssh -F /dev/null -o BatchMode=yes "
            "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
        )
        servers.die_after_push(up)
        say(
            "push-dropped-ssh",
            "push",
            "--porcelain",
            url,
            f"{first}:{_REF}",
            GIT_SSH_COMMAND=ssh.command,
        )
        (up / "hooks" / "reference-transaction").unlink()
    repos.git(up, "update-ref", "-d", _REF)


def _orphan(path: Path) -> str:
    return repos.git(path, "commit-tree", "HEAD^{tree}", "-m", "orphan")


def _steady(data: bytes, folder: Path) -> bytes:
    data = data.replace(str(folder).encode(), b"/srv")
    return re.sub(rb"127\.0\.0\.1:[0-9]{4,5}", b"127.0.0.1:8080", data)


if __name__ == "__main__":
    main()
