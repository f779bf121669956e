"""One run of the program: where to look, how to print, what time it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from orchestrator.cli.console import Console


def utc_now() -> datetime:
    """The clock, in UTC and whole seconds: what git and the markers can hold."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(slots=True)
class Invocation:
    """What the options say. Each may stand before the verb or after it; the last one counts.

    Attributes:
        path: as `-C` says; None is the current folder.
        format: `text` or `json`.
        environ: the environment of this process; nothing else reads it.
    """

    console: Console
    clock: Callable[[], datetime]
    environ: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None
    remote: str | None = None
    default_branch: str | None = None
    format: str = "text"
    quiet: bool = False
    verbose: bool = False

    @property
    def json(self) -> bool:
        return self.format == "json"
