"""The command line: `orchestrator tick`, `explain` and the other verbs, a module each.

This package alone says click, and it is the only place that prints or reads the clock.
"""

import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from orchestrator.cli.console import Console
from orchestrator.cli.edge import report_failure
from orchestrator.cli.group import program
from orchestrator.cli.invocation import Invocation, utc_now

__all__ = ["main"]


def main(argv: Sequence[str] | None = None, clock: Callable[[], datetime] = utc_now) -> int:
    """Run one command; its exit code.

    Args:
        argv: the arguments, without the program's name; by default this process's.
        clock: the time, aware, in UTC and whole seconds. Nothing else reads a clock, so that tests
            and demonstrations can say what time it is.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    console = Console.of_this_process()
    run = Invocation(console, clock, environ=dict(os.environ))
    try:
        code = program.main(arguments, "orchestrator", standalone_mode=False, obj=run)
    except SystemExit as ended:  # click ends itself so when its own help meets a closed pipe
        return ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - the edge: everything becomes a sentence here
        return report_failure(error, run, arguments)
    return code if isinstance(code, int) else 0
