"""The adapter `command`: any program that reads one JSON object and may print one.

    stdin   {"version": 1, "role", "slug", "branch", "covering_since", "prompt", "model",
             "budget_usd", "timeout_s", "workdir"}
    stdout  the last line, if it is a JSON object: {"status", "tokens_in", "tokens_out",
             "cost_usd", "error"}, all optional. Without it, exit 0 is ok with unknown usage.

The program is named in the committed file, so whoever can push to the default branch chooses it.
It runs only where the machine's operator allowed it, by git config `orchestrator.allowCommand`.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from orchestrator.adapters.base import (
    Ending,
    Operator,
    Plan,
    Probe,
    ProcessResult,
    Report,
    Request,
)
from orchestrator.adapters.program import on_path
from orchestrator.errors import OrchestratorError
from orchestrator.model.config import Registration
from orchestrator.model.status import Status
from orchestrator.model.timing import iso
from orchestrator.model.usage import UNKNOWN_USAGE, CostSource, Usage

VERSION = 1
ANY = "*"
_MAX_TOKENS = 10**15
_MAX_LINE = 1024 * 1024


class CommandAdapter:
    """Any program. It counts as priced: nobody here knows what it spends."""

    name = "command"
    priced = True

    def probe(self, registration: Registration, operator: Operator) -> Probe:
        """Whether the operator allowed the program, and whether it is here.

        A relative program is looked up in the sweep's working copy, which does not exist yet: that
        it is there is found out when it is started.
        """
        if not registration.command:
            return Probe(ok=False, reason=f"the role {registration.role} has no `command`")
        program = registration.command[0]
        if "\0" in program or not program:
            return Probe(ok=False, reason="its `command` does not name a program")
        if not {program, ANY} & set(operator.allowed_commands):
            return _not_allowed(program)
        if program.startswith("/"):
            return _there(program, Path(program))
        if "/" in program:
            return _relative(program)
        found = on_path(program, operator.environment.get("PATH", os.defpath))
        if found is None:
            return Probe(
                ok=False,
                reason=f"the program {program} is not on PATH",
                hint="cron's PATH is short: set PATH in the crontab, or install the program",
            )
        return Probe(ok=True, program=found)

    def plan(self, request: Request, probe: Probe) -> Plan:
        """Start the program with the request on its stdin.

        Raises:
            OrchestratorError: a relative program leads out of the working copy (a symbolic link).
        """
        program, *arguments = request.registration.command
        if "/" in program and not program.startswith("/"):
            place = request.workdir / program
            root = request.workdir.resolve()
            if root not in place.resolve().parents:
                raise OrchestratorError(f"the program {program} leads out of the working copy")
            started = str(place)
        else:
            started = probe.program or program
        return Plan((started, *arguments), stdin=_ask(request))

    def parse(self, result: ProcessResult, request: Request) -> Report:  # noqa: ARG002
        """What the last line says, and what the way it ended says; the worse of the two counts."""
        said = _last_object(result.stdout)
        usage, broken = _usage(said)
        if result.ending is Ending.NOT_STARTED:
            return Report(Status.UNAVAILABLE, usage, result.error)
        error = said.get("error")
        words = error if isinstance(error, str) and error.strip() else None
        if result.ending is Ending.TIMEOUT:
            return Report(Status.TIMEOUT, usage, words or "the time limit was reached")
        if result.ending is Ending.INTERRUPTED:
            return Report(Status.INTERRUPTED, usage, words or "it was asked to stop")
        status, unknown = _status(said)
        if result.exit_code != 0:
            failed = status if status is not None and not status.completed else Status.FAILED
            return Report(failed, usage, words or _exit_words(result))
        if unknown or broken:
            return Report(Status.BAD_OUTPUT, usage, unknown or broken)
        status = status or Status.OK
        return Report(status, usage, None if status.completed else words or "it did not say why")


def _not_allowed(program: str) -> Probe:
    import shlex  # only for the line to type

    return Probe(
        ok=False,
        reason=f"running {program} is not allowed on this machine",
        hint=f"if you trust it: git config --add orchestrator.allowCommand {shlex.quote(program)}",
    )


def _there(program: str, path: Path) -> Probe:
    if not path.is_file():
        return Probe(ok=False, reason=f"there is no program {program}")
    if not os.access(path, os.X_OK):
        hint = f"make it executable: chmod +x {path}"
        return Probe(ok=False, reason=f"the program {program} is not executable", hint=hint)
    return Probe(ok=True, program=str(path))


def _relative(program: str) -> Probe:
    parts = os.path.normpath(program).split("/")
    if parts[0] in ("..", ".git"):
        return Probe(
            ok=False,
            reason=f"the program {program} is not inside the working copy",
            hint="name a file of the repository, a program on PATH, or an absolute path",
        )
    return Probe(ok=True, program=program)


def _ask(request: Request) -> bytes:
    since = request.covering_since
    return json.dumps(
        {
            "version": VERSION,
            "role": request.registration.role,
            "slug": request.sweep.slug,
            "branch": request.sweep.branch,
            "covering_since": None if since is None else iso(since),
            "prompt": request.prompt,
            "model": request.registration.model,
            "budget_usd": request.budget_usd,
            "timeout_s": request.timeout_s,
            "workdir": str(request.workdir),
        }
    ).encode()


def _last_object(stdout: bytes) -> Mapping[str, object]:
    """The last line that is not blank, if it is a JSON object; else nothing."""
    line = stdout.rstrip().rpartition(b"\n")[2].strip()
    if not line.startswith(b"{") or len(line) > _MAX_LINE:
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # a long number is a ValueError too
        return {}
    return found if isinstance(found, dict) else {}


def _usage(said: Mapping[str, object]) -> tuple[Usage, str | None]:
    """The usage it stated, what cannot be one left unknown; and a sentence when there was such."""
    broken = None
    numbers: dict[str, int | None] = {}
    for key in ("tokens_in", "tokens_out"):
        value = said.get(key)
        good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS
        numbers[key] = value if isinstance(value, int) and good else None
        if value is not None and not good:
            broken = broken or f"it printed a `{key}` that is no count of tokens"
    cost = said.get("cost_usd")
    dollars = None
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= _MAX_TOKENS:
        dollars = float(cost)
    elif cost is not None:
        broken = broken or "it printed a `cost_usd` that is no amount of dollars"
    if dollars is None and not any(n is not None for n in numbers.values()):
        return UNKNOWN_USAGE, broken
    source = CostSource.UNKNOWN if dollars is None else CostSource.REPORTED
    return Usage(numbers["tokens_in"], numbers["tokens_out"], dollars, source), broken


def _status(said: Mapping[str, object]) -> tuple[Status | None, str | None]:
    value = said.get("status")
    if value is None:
        return None, None
    try:
        return Status(str(value)), None
    except ValueError:
        return None, f"it printed the unknown status {str(value)[:40]!r}"


def _exit_words(result: ProcessResult) -> str:
    if result.exit_code is None:
        return result.error or "it ended in an unknown way"
    if result.exit_code < 0:
        how = f"it was ended by signal {-result.exit_code}"
    else:
        how = f"it ended with exit code {result.exit_code}"
    lines = [line.strip() for line in result.stderr.decode("utf-8", "replace").splitlines()]
    last = next((line for line in reversed(lines) if line), None)
    return f"{how}: {last}" if last else how
