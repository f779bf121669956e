"""What can go wrong, as kinds: each has one sentence, a way out and an exit code.

Nothing here prints. An error is raised where it is understood and printed once, at the edge
(`orchestrator.cli`). A lost race is an outcome, not an error; a problem of one role is a verdict
(`orchestrator.rules`), not an exception.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """The process exit codes; there are no others."""

    OK = 0
    ATTENTION = 1
    """Something needs a person: a config or marker error, a cap, a failed sweep."""
    USAGE = 2
    """The command line was wrong, an unknown role asked for included."""
    CANNOT_LOOK = 3
    """Nothing was evaluated: no repository, no default branch, remote unreachable."""


class OrchestratorError(Exception):
    """An error that was foreseen.

    Attributes:
        message: one sentence naming the place.
        hint: the way out, or None when the message already is one.
        exit_code: what the process exits with when this reaches the edge.
    """

    exit_code: ExitCode = ExitCode.ATTENTION

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(OrchestratorError):
    """The command line cannot mean anything."""

    exit_code = ExitCode.USAGE


class CannotLookError(OrchestratorError):
    """The repository or its remote cannot be read, so no rule was evaluated."""

    exit_code = ExitCode.CANNOT_LOOK


class RemoteUnreachableError(CannotLookError):
    """The remote did not answer, refused the credentials, or the connection dropped."""


class MissingObjectError(CannotLookError):
    """An object is not in this clone (partial or damaged) and may not be fetched now."""


class WriteFailedError(OrchestratorError):
    """An object or ref could not be written; nothing points at a half-written one."""
