"""How a run ended."""

from enum import StrEnum


class Status(StrEnum):
    """How a run ended, as the closing commit's `Sweep-Status:` says it."""

    OK = "ok"
    NO_CHANGE = "no_change"
    FAILED = "failed"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    BUDGET = "budget"
    TURN_LIMIT = "turn_limit"
    AUTH = "auth"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    DENIED = "denied"
    BAD_OUTPUT = "bad_output"

    @property
    def completed(self) -> bool:
        """Whether the sweep did its work; everything else goes into the marker as `failed`."""
        return self in (Status.OK, Status.NO_CHANGE)
