"""Finding an agent's program and asking it what it can do, before anything is claimed.

Flags are read from what `--help` prints, never concluded from a version: a program without a flag
that containment or the budget rests on is not started at all. The program is asked inside the same
containment as a run, with an empty HOME and within a time limit, and nothing is spent.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapters.base import Ending, Operator, Plan, Probe, ProcessResult
from orchestrator.model.config import Registration

ASK_TIMEOUT_S = 30.0
"""Seconds a program has to print its help: node starts slowly on a busy machine."""

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# It becomes an argument of the program's command line, so it may not look like an option.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,199}")
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
_NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an adapter needs of its program.

    Attributes:
        adapter: the adapter's name, as in git config `orchestrator.<adapter>.path`.
        program: the program's name on PATH.
        help: arguments that make it print its flags.
        flags: what it must know; without one of these a run would not be contained.
        keys: variables of which one must be set: its credentials.
        install: the command that installs it.
    """

    adapter: str
    program: str
    help: tuple[str, ...]
    flags: tuple[str, ...]
    keys: tuple[str, ...]
    install: str


def probe(wanted: Wanted, registration: Registration, operator: Operator) -> Probe:
    """Whether a run could start: program, model's name, credentials, flags; in order of cost."""
    found = locate(wanted, operator)
    if not found.ok or found.program is None:
        return found
    model = registration.model
    if model is not None and not _MODEL.fullmatch(model):
        return Probe(ok=False, program=found.program, reason=f"{model!r} is not a model's name")
    if not any(operator.environment.get(key) for key in wanted.keys):
        keys = " or ".join(wanted.keys)
        return Probe(
            ok=False,
            program=found.program,
            reason=f"{wanted.adapter} has no credentials here: {keys} is not set",
            hint=f"set {wanted.keys[0]} in the environment of the tick; cron has one of its own",
        )
    return _with_flags(wanted, found.program, operator)


def locate(wanted: Wanted, operator: Operator) -> Probe:
    """The program the operator's git config names, else the first on PATH."""
    key = f"orchestrator.{wanted.adapter}.path"
    configured = operator.programs.get(wanted.adapter)
    if configured is not None:
        path = os.path.expanduser(configured)
        if path.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK):
            return Probe(ok=True, program=path)
        return Probe(
            ok=False,
            reason=f"git config {key} is {configured}, which is no executable file",
            hint=f"correct it: git config {key} /absolute/path/of/{wanted.program}",
        )
    found = on_path(wanted.program, operator.environment.get("PATH", os.defpath))
    if found is None:
        return Probe(
            ok=False,
            reason=f"the program {wanted.program} is not on PATH",
            hint=f"install it ({wanted.install}), or name it: git config {key} "
            f"/absolute/path/of/{wanted.program}; cron's PATH is short",
        )
    return Probe(ok=True, program=found)


def on_path(program: str, path: str) -> str | None:
    """The first executable of that name; a relative entry of PATH would be the agent's folder."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, program)
        if folder.startswith("/") and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def path_for(program: str, environ: Mapping[str, str]) -> dict[str, str]:
    """PATH with the program's own folder first where that holds the `node` it was installed with.

    Node's installers put both into one folder that cron's PATH lacks, and the program's first line
    asks `env` for node.
    """
    folder = os.path.dirname(program)
    path = environ.get("PATH", os.defpath)
    if folder in path.split(os.pathsep) or not os.access(os.path.join(folder, "node"), os.X_OK):
        return {}
    return {"PATH": f"{folder}{os.pathsep}{path}"}


def _with_flags(wanted: Wanted, program: str, operator: Operator) -> Probe:
    try:
        asked = ask(program, wanted.help, operator)
    except OSError as error:
        reason = f"{program} could not be asked for its flags: {error.strerror}"
        return Probe(ok=False, program=program, reason=reason, hint="make room in the temp folder")
    said = asked.stdout.decode("utf-8", "replace")
    flags = tuple(sorted(set(_FLAG.findall(said))))
    missing = [flag for flag in wanted.flags if flag not in flags]
    if asked.exit_code == 0 and not missing:
        return Probe(ok=True, program=program, flags=flags)
    hint = f"install a current one: {wanted.install}"
    if asked.ending is Ending.NOT_STARTED:
        reason = asked.error or f"{program} could not be started"
    elif asked.ending is Ending.TIMEOUT:
        reason = f"{program} did not print its help within {ASK_TIMEOUT_S:g} s"
    elif asked.exit_code == _NOT_FOUND:
        reason = f"{program} needs a program that is not on PATH: {_last_line(asked.stderr)}"
        hint = "put it on the PATH of the tick; cron's PATH is short"
    elif asked.exit_code != 0:
        reason = f"{program} {' '.join(wanted.help)} failed: {_last_line(asked.stderr)}"
    else:
        reason = f"{program} does not know {', '.join(missing)}, which a contained run needs"
    return Probe(ok=False, program=program, flags=flags, reason=reason, hint=hint)


def _last_line(data: bytes) -> str:
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "it did not say why")


def version_of(program: str, operator: Operator) -> str | None:
    """The version the program prints, for people; nothing is concluded from it."""
    asked = ask(program, ("--version",), operator)
    found = _VERSION.search(asked.stdout.decode("utf-8", "replace"))
    return found[0] if found and asked.exit_code == 0 else None


def ask(program: str, arguments: Sequence[str], operator: Operator) -> ProcessResult:
    """Run the program with those arguments in an empty folder with an empty HOME; no key is passed.

    Raises:
        OSError: there is no room for a temporary folder.
    """
    from tempfile import mkdtemp  # only when an agent is really asked
    from uuid import uuid4

    from orchestrator.adapters.containment import Limits
    from orchestrator.adapters.process import run_agent
    from orchestrator.folders import private_folder, remove_tree
    from orchestrator.stop import StopFlag

    folder = Path(mkdtemp(prefix="orchestrator-probe-"))
    try:
        return run_agent(
            Plan((program, *arguments), environment=path_for(program, operator.environment)),
            workdir=private_folder(folder / "empty"),
            home=folder / "home",
            timeout_s=ASK_TIMEOUT_S,
            environ=operator.environment,
            stop=StopFlag(),
            dispatch_id=f"probe-{uuid4()}",
            limits=Limits(interrupt_s=1.0, terminate_s=1.0),
        )
    finally:
        remove_tree(folder)
