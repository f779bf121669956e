"""A tick that kills itself at one step: `python -m tests.support.crash HOME TIME STEP`.

Every call that changes or asks something outside this process is a step: of the git layer's writer
and wire, of the locks, the agent's runner, the harvest and the removal of folders. The process is
killed (SIGKILL, itself) before the call or after it. With STEP 0 nothing is killed, and the names
of all steps are printed, so the test enumerates them instead of keeping a list.
"""

import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orchestrator.launch
import orchestrator.locks
from orchestrator import attempt, tick
from orchestrator.git.refwriter import RefWriter
from orchestrator.git.wire import Remote
from orchestrator.git.writer import Writer
from orchestrator.site import Settings

STEPS: list[tuple[Any, tuple[str, ...]]] = [
    (Writer, ("blob", "tree", "commit")),
    (RefWriter, ("create_ref", "move_ref", "delete_ref", "set_tracking", "break_stale_lock")),
    (Remote, ("head", "fetch", "ls", "create", "update", "delete", "fetch_ref", "prefetch")),
    (orchestrator.launch, ("run_agent", "harvest", "remove_tree", "private_folder")),
    (attempt, ("acquire", "probe")),
    (orchestrator.locks.FileLock, ("release",)),
    (tick, ("observe",)),
]


class Steps:
    """Counts the steps of this process and ends it at one of them."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.names: list[str] = []

    def at(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(self, owner: Any, name: str) -> None:
        call: Callable[..., Any] = getattr(owner, name)
        shown = f"{getattr(owner, '__name__', '').rpartition('.')[2]}.{name}"

        def stepped(*args: Any, **said: Any) -> Any:
            self.at(f"before {shown}")
            result = call(*args, **said)
            self.at(f"after {shown}")
            return result

        setattr(owner, name, stepped)


def main() -> int:
    home, now, fatal = sys.argv[1], datetime.fromisoformat(sys.argv[2]), int(sys.argv[3])
    steps = Steps(fatal)
    for owner, names in STEPS:
        for name in names:
            steps.wrap(owner, name)
    found = tick.tick(Settings(path=home, environ=dict(os.environ)), lambda: now)
    sys.stdout.write("\n".join(steps.names))
    return int(found.exit_code)


if __name__ == "__main__":
    sys.exit(main())
