"""A problem at a place in a committed file, as a value: what was expected, and the way out."""

from enum import StrEnum
from typing import NamedTuple


class ErrorCode(StrEnum):
    """The closed list of error codes a verdict or a problem can carry."""

    CONFIG_ERROR = "config_error"
    MARKER_ERROR = "marker_error"
    UNKNOWN_ROLE = "unknown_role"
    NO_ESTIMATE = "no_estimate"
    LOST_RACE = "lost_race"
    BUSY = "busy"
    REFUSED = "refused"
    AGENT_UNAVAILABLE = "agent_unavailable"


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Problem(NamedTuple):
    """One sentence at one place.

    Attributes:
        message: one sentence saying what was expected and what stands there.
        hint: the way out (a suggestion, a command), or None.
        path: the file inside the repository (or as named on the command line), or None.
        commit: the commit the file was read from, or None when it was not read from a commit.
        line, column: counted from 1; None when the problem is about the whole file.
        key: the key's path, such as `schedules.historian.every`.
    """

    code: ErrorCode
    message: str
    hint: str | None = None
    path: str | None = None
    commit: str | None = None
    line: int | None = None
    column: int | None = None
    key: str | None = None
    severity: Severity = Severity.ERROR

    @property
    def place(self) -> str:
        """`orchestrator.yaml:3:12`, as far as it is known."""
        parts = [self.path or "", *(str(n) for n in (self.line, self.column) if n is not None)]
        return ":".join(parts)
