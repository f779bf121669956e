"""What an adapter is: three pure questions about one agent program.

An adapter *probes* (is the program here, what can it do), *plans* (argv, environment, stdin, files
for its private HOME) and *parses* (what it printed -> status and usage). It never starts, limits
or ends a process and never looks at what the agent changed: one runner does that for all of them
(`orchestrator.adapters.process`), so that no adapter can get containment wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from orchestrator.model.config import Registration
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, Usage


@dataclass(frozen=True, slots=True)
class Operator:
    """What the machine's operator allowed and set, from git config; never from the repository.

    Attributes:
        allowed_commands: values of `orchestrator.allowCommand`, as written; `*` allows any.
        programs: adapter name -> absolute program path (`orchestrator.<adapter>.path`).
        environment: the environment of this process.
    """

    allowed_commands: tuple[str, ...] = ()
    programs: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether an adapter's program can be started here, found out without starting an agent.

    Attributes:
        flags: the options its help names, for `plan` to choose from.
    """

    ok: bool
    program: str | None = None
    reason: str | None = None
    hint: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One run, as an adapter sees it.

    Attributes:
        git_dir: the repository's common directory, for adapters that read history (read only).
        base: the default-branch commit the sweep started from.
        since: the default-branch commit that was the tip when the window began; None on a first
            sweep (everything is new).
        covering_since: the window's start, as the marker says it.
        workdir: the private working copy the agent may write to.
        prompt: the role's instructions and the findings page, Markdown.
        budget_usd: the cap in force, US dollars.
        timeout_s: the time limit, seconds.
        home: the private HOME the run will have; it is made just before the start.
    """

    registration: Registration
    sweep: SweepName
    git_dir: Path
    base: Oid
    since: Oid | None
    covering_since: datetime | None
    at: datetime
    workdir: Path
    prompt: str
    budget_usd: float | None
    timeout_s: float
    operator: Operator
    home: Path | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How to start the agent.

    Attributes:
        argv: the command; the program is absolute.
        environment: variables set for this run, beside the allow-list of the parent's.
        pass_through: names of parent variables this adapter needs (its key), beside the allow-list.
        home_files: files to put into the run's private HOME, by relative path.
        checkout: whether the agent needs the tree's files on disk. Without them the working copy
            starts empty, and a file that is absent counts as unchanged.
    """

    argv: tuple[str, ...]
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_through: tuple[str, ...] = ()
    home_files: Mapping[str, bytes] = field(default_factory=dict)
    checkout: bool = True


class Ending(StrEnum):
    """Who ended the process."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    """This program was asked to stop (SIGTERM, SIGINT, SIGHUP)."""
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What one run of the agent's program left.

    Attributes:
        exit_code: the leader's; negative is a signal's number; None when it never started.
        stdout, stderr: what it printed, cut to a cap (the tail of stdout is always kept).
        seconds: wall-clock time.
        home: the private HOME, still there while `parse` runs (session files).
        swept: how many leftover processes had to be killed.
        error: why it could not be started, when it could not.
    """

    ending: Ending
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    home: Path
    swept: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What an adapter makes of a finished run.

    Attributes:
        error: one sentence when the status is not a completed one; not yet redacted or cut.
        denied: what the agent was refused, in words. A run that was refused something and changed
            nothing is `denied`, where it would else count as having found nothing to do.
    """

    status: Status
    usage: Usage = UNKNOWN_USAGE
    error: str | None = None
    denied: str | None = None


class Adapter(Protocol):
    """One agent program.

    Attributes:
        name: as written in `adapter:`.
        priced: whether a run may cost money; then a capped role needs an estimate.
    """

    name: str
    priced: bool

    def probe(self, registration: Registration, operator: Operator) -> Probe:
        """Say whether a run could start here; cheap, and nothing is spent."""
        ...

    def plan(self, request: Request, probe: Probe) -> Plan:
        """Say how to start the run."""
        ...

    def parse(self, result: ProcessResult, request: Request) -> Report:
        """Say what came of it. Called for every ending, a timeout and an interrupt included."""
        ...
