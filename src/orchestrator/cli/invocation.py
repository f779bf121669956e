"""One run of the program: where to look, how to print, what time it is."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from orchestrator.cli.console import Console


def utc_now() -> datetime:
    """The clock, in UTC and whole seconds: what git and the markers can hold."""
    return datetime.now(UTC).replace(microsecond=0)


class Invocation:
    """What the options say. Each may stand before the verb or after it; the last one counts.

    Attributes:
        path: as `-C` says; None is the current folder.
        format: `text` or `json`.
        environ: the environment of this process; nothing else reads it.
    """

    def __init__(
        self, console: Console, clock: Callable[[], datetime], environ: Mapping[str, str]
    ) -> None:
        self.console = console
        self.clock = clock
        self.environ = environ
        self.path: str | None = None
        self.remote: str | None = None
        self.default_branch: str | None = None
        self.format = "text"
        self.quiet = False
        self.verbose = False

    @property
    def json(self) -> bool:
        return self.format == "json"
