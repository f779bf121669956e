"""The embedded historian: a historian's mechanical work, deterministically, without a model.

Over a sweep's window it compares every relative link, anchor and path named in the documents,
mends those whose target was renamed one to one, and writes `runs/<slug>/docs-delta.md`. No key, no
network, no cost. Same input, same bytes.

    document, markdown, rst, anchors    text -> what it says about other files, with exact places
    scan                                the same, fast and roughly: most documents need no more
    targets                             a destination as written <-> a path in the repository
    findings, compare, survey           two listings -> what broke between them
    mend                                findings -> edits, each checked by reading it again
    delta, page                         everything found -> the page
    request, work, __main__             one run, as a process of its own
"""

import json
import sys
from importlib.util import find_spec
from os.path import dirname, isabs
from typing import Literal

from orchestrator.adapters.base import (
    Ending,
    Operator,
    Plan,
    Probe,
    ProcessResult,
    Report,
    Request,
)
from orchestrator.adapters.builtin.request import Ask
from orchestrator.model.config import Registration
from orchestrator.model.status import Status
from orchestrator.model.usage import FREE

_NEEDED = ("orchestrator", "pygit2", "cffi", "markdown_it", "mdurl", "pathspec")


class BuiltinAdapter:
    """The embedded historian as an adapter. Never priced, always there."""

    name = "builtin"
    priced = False

    def probe(self, registration: Registration, operator: Operator) -> Probe:  # noqa: ARG002
        """Always ok: it is this program."""
        return Probe(ok=True, program=sys.executable)

    def plan(self, request: Request, probe: Probe) -> Plan:
        """Start it with this Python. It reads history, so it needs no files on disk."""
        return _plan(request, "sweep", probe.program or sys.executable)

    def parse(self, result: ProcessResult, request: Request) -> Report:  # noqa: ARG002
        """Read the one line it prints. Whatever happened, it cost nothing."""
        ended = {
            Ending.TIMEOUT: (Status.TIMEOUT, "the time limit ended it"),
            Ending.INTERRUPTED: (Status.INTERRUPTED, "it was interrupted"),
            Ending.NOT_STARTED: (Status.UNAVAILABLE, result.error or "it could not be started"),
        }
        if result.ending in ended:
            return Report(ended[result.ending][0], FREE, ended[result.ending][1])
        if result.exit_code != 0:
            said = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            why = said or f"it ended with exit code {result.exit_code}"
            return Report(Status.FAILED, FREE, why)
        try:
            answer = json.loads(result.stdout)
            status = {"ok": Status.OK, "no_change": Status.NO_CHANGE}[answer["status"]]
        except (ValueError, KeyError, TypeError):
            return Report(Status.BAD_OUTPUT, FREE, "what it printed is not its report")
        return Report(status, FREE)


def page_plan(request: Request) -> Plan:
    """Start it to print its page only: the findings that another adapter's agent is given."""
    return _plan(request, "page", sys.executable)


def _plan(request: Request, mode: Literal["sweep", "page"], python: str) -> Plan:
    ask = Ask(
        git_dir=str(request.git_dir),
        base=request.base,
        since=request.since,
        covering_since=request.covering_since,
        slug=request.sweep.slug,
        writes=request.registration.writes,
        workdir=str(request.workdir) if mode == "sweep" else None,
        mode=mode,
    )
    # -P: the working folder holds somebody's repository, and nothing there may be imported.
    argv = (python, "-P", "-m", __name__)
    return Plan(argv, ask.to_json(), {"PYTHONPATH": ":".join(_folders())}, checkout=False)


def _folders() -> list[str]:
    """Where its modules are: the run's private HOME hides a user's own site-packages."""
    found: list[str] = []
    for name in _NEEDED:
        spec = find_spec(name)
        folder = dirname(dirname(spec.origin)) if spec and spec.origin else ""
        if isabs(folder) and folder not in found:
            found.append(folder)
    return found
