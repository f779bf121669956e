"""One run of the embedded historian: a JSON request on stdin, one JSON line (or the page) out.

A process of its own, so that the runner's limits hold for it as for any agent.
"""

import json
import os
import stat
import sys
from contextlib import suppress

from orchestrator.adapters.builtin.page import render
from orchestrator.adapters.builtin.request import Ask, read
from orchestrator.adapters.builtin.work import Outcome, reconcile
from orchestrator.errors import OrchestratorError
from orchestrator.git.history import History
from orchestrator.model.names import RUNS_FOLDER

PAGE_NAME = "docs-delta.md"
_REQUEST_LIMIT = 1024 * 1024
_EXECUTABLE = 0o111


def main() -> int:
    """Read the request, do the work, report. Exit code 0, or 1 with a sentence on stderr."""
    try:
        ask = read(sys.stdin.buffer.read(_REQUEST_LIMIT))
        outcome = reconcile(History.open(ask.git_dir, trusted=True), ask)
        page = render(outcome.delta).encode("utf-8", "replace")
        if ask.mode == "page" or ask.workdir is None:
            answer = page
        else:
            answer = _written(ask, ask.workdir, outcome, page)
    except OrchestratorError as error:
        return _failed(error.message)
    except OSError as error:
        return _failed(f"the page or an edited document cannot be written: {error}")
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return 0


def _failed(sentence: str) -> int:
    sys.stderr.write(sentence + "\n")
    return 1


def _written(ask: Ask, workdir: str, outcome: Outcome, page: bytes) -> bytes:
    page_path = f"{RUNS_FOLDER}/{ask.slug}/{PAGE_NAME}"
    for path, (text, mode) in sorted(outcome.texts.items()):
        _write(workdir, path, text.encode(), executable=bool(mode & _EXECUTABLE))
    _write(workdir, page_path, page, executable=False)
    delta = outcome.delta
    report = {
        "version": 1,
        "status": "no_change" if delta.quiet else "ok",
        "page": page_path,
        "files": sorted(outcome.texts),
        "edits": len(delta.mending.edits),
        "broken": len(delta.mending.kept),
        "stale": len(delta.stale),
        "old_breakage": delta.old_breakage,
    }
    return json.dumps(report).encode() + b"\n"


def _write(root: str, path: str, data: bytes, *, executable: bool) -> None:
    """Write a file below `root`, through no symlink on the way."""
    *folders, name = path.split("/")
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            with suppress(FileExistsError):
                os.mkdir(folder, dir_fd=here)
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        file = os.open(name, flags, 0o755 if executable else 0o644, dir_fd=here)
        with open(file, "wb") as stream:
            stream.write(data)
            if executable:
                os.fchmod(file, stat.S_IMODE(os.fstat(file).st_mode) | _EXECUTABLE)
    finally:
        os.close(here)


if __name__ == "__main__":
    sys.exit(main())
