"""Where a soak happens: one remote over several transports, clones of it, and a scripted agent.

The agent writes down what it did in a log outside of every repository, one line a write, so that
what really ran is counted by those that ran.
"""

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from orchestrator.site import Settings
from tests.support import repos
from tests.support.servers import ssh_server
from tests.support.soak.wirefaults import Dropper, dropping_server

ROLES = ("scribe", "tester")
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
Transport = Literal["file", "http", "ssh"]

POLICY = """\
schedules:
  scribe:
    every: 1h
  tester:
    every: 11d
roles:
  scribe: {adapter: command, command: [tools/agent.sh], estimate_usd: 0, timeout: 2m}
  tester: {adapter: command, command: [tools/agent.sh], estimate_usd: 0, timeout: 2m}
"""

# Usage is different for every dispatch, so that a number on the remote tells whose it is.
_AGENT = """\
#!/bin/sh
slug=$(sed 's/.*"slug": "\\([^"]*\\)".*/\\1/')
tokens=$(printf %%s "$ORCHESTRATOR_DISPATCH" | cksum | cut -d' ' -f1)
echo "begin $slug $ORCHESTRATOR_DISPATCH $$" >> %(log)s
sleep "0.$((tokens %% 6))"
echo "written for $slug" > "docs/$slug.md"
echo "{\\"tokens_in\\": $tokens, \\"tokens_out\\": 1, \\"cost_usd\\": 0.01}"
echo "end $slug $ORCHESTRATOR_DISPATCH $$" >> %(log)s
"""

# Between the moment the refs have moved and the answer, on any transport; armed once by a file.
_DIE_HOOK = """\
#!/bin/sh
[ "$1" = committed ] || exit 0
rm "%(flag)s" 2>/dev/null && kill -9 $PPID
exit 0
"""


class AgentLine(NamedTuple):
    """What an agent wrote down: it `begin`s a slug, or came to its `end` (usage printed)."""

    what: str
    slug: str
    dispatch_id: str
    pid: int


def tokens_of(dispatch_id: str) -> int:
    """What the agent of this dispatch reports: POSIX cksum of the id."""
    return _cksum(dispatch_id.encode())


@dataclass
class Arena:
    """The repositories of one soak.

    Attributes:
        upstream: the bare remote; None when everything happens in the one clone.
        clones: where instances tick; several may share one.
        dropper: arms the http server's next dropped connections.
    """

    root: Path
    upstream: Path | None
    clones: list[Path]
    environ: dict[str, str]
    dropper: Dropper | None = None
    _read: int = field(default=0)
    _lines: list[AgentLine] = field(default_factory=list)

    @property
    def shared(self) -> Path:
        return self.upstream or self.clones[0]

    @property
    def agent_log(self) -> Path:
        return self.root / "agents.log"

    @property
    def drop_flag(self) -> Path:
        return self.root / "drop-once"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def settings(self, clone: Path) -> Settings:
        return Settings(path=str(clone), environ=self.environ)

    def agent_lines(self) -> list[AgentLine]:
        """Everything agents wrote down so far."""
        data = self.agent_log.read_bytes()
        for line in data[self._read :].decode().splitlines():
            what, slug, dispatch_id, pid = line.split()
            self._lines.append(AgentLine(what, slug, dispatch_id, int(pid)))
        self._read = len(data)
        return self._lines


@contextmanager
def arena(
    root: Path,
    *,
    clones: int,
    transports: tuple[Transport, ...],
    alone: bool = False,
    policy: str = POLICY,
) -> Iterator[Arena]:
    """Build a remote with clones over these transports in turn (or one repository, `alone`)."""
    root.mkdir(parents=True, exist_ok=True)
    environ = _environment(root)
    if alone:
        home = repos.make_repo(root / "clone-0", _files(policy))
        _add_agent(home, root)
        _configure(home, root)
        made = Arena(root, None, [home], environ)
        made.agent_log.touch()
        yield made
        return
    upstream = repos.bare_remote(root / "remote" / "up.git", _files(policy))
    _add_agent(upstream, root)
    made = Arena(root, upstream, [], environ)
    made.agent_log.touch()
    hook = upstream / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(_DIE_HOOK % {"flag": made.drop_flag})
    hook.chmod(0o755)
    with dropping_server(root / "remote") as made.dropper, ssh_server(root / "ssh") as ssh:
        urls = {
            "file": f"file://{upstream}",
            "http": made.dropper.url("up.git"),
            "ssh": ssh.url(upstream),
        }
        environ["GIT_SSH_COMMAND"] = ssh.command
        for number in range(clones):
            clone = repos.clone(upstream, root / f"clone-{number}")
            url = urls[transports[number % len(transports)]]
            repos.git(clone, "remote", "set-url", "origin", url)
            _configure(clone, root)
            made.clones.append(clone)
        yield made


def _files(policy: str) -> dict[str, str]:
    return {
        "orchestrator.yaml": policy,
        "README.md": "# Soak\n",
        "docs/index.md": "# Documents\n",
    }


def _add_agent(shared: Path, root: Path) -> None:
    script = _AGENT % {"log": root / "agents.log"}
    path = "tools/agent.sh"
    repos.commit_files(shared, {path: script}, modes={path: 0o100755}, message="Add the agent")


def _configure(clone: Path, root: Path) -> None:
    repos.git(clone, "config", "orchestrator.allowCommand", "tools/agent.sh")
    repos.git(clone, "config", "orchestrator.workDir", str(root / "work"))


def _environment(root: Path) -> dict[str, str]:
    home = root / "home"
    home.mkdir(exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not re.match("GIT_|ORCHESTRATOR_|XDG_|SSH_", k)}
    return kept | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(root / "cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_NAME": "Orla Operator",
        "GIT_COMMITTER_EMAIL": "orla@example.org",
    }


def _cksum(data: bytes) -> int:
    """POSIX cksum: CRC-32 of the data and its length, most significant bit first, no reflection."""
    length = len(data)
    while length:
        data += bytes([length & 255])
        length >>= 8
    flipped = bytes(_reversed_bits(b, 8) for b in data)
    # zlib starts from all ones, cksum from zeros: four bytes that turn the one into the other.
    value = zlib.crc32(flipped, 0xFFFFFFFF) ^ 0xFFFFFFFF
    return _reversed_bits(value, 32) ^ 0xFFFFFFFF


def _reversed_bits(value: int, width: int) -> int:
    return int(format(value, f"0{width}b")[::-1], 2)
