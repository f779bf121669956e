"""What a run cost. Unknown is None, never 0: the ledger must not say "free" when it means "?"."""

from enum import StrEnum
from typing import NamedTuple


class CostSource(StrEnum):
    """Where `cost_usd` came from; the closing commit's `Cost-Source:` trailer."""

    REPORTED = "reported"
    COMPUTED = "computed"
    ZERO = "zero"
    """The adapter spends nothing by nature."""
    UNKNOWN = "unknown"


class Usage(NamedTuple):
    """Tokens and dollars of one run.

    Attributes:
        tokens_in: all prompt tokens, cache reads and writes included.
        tokens_out: all completion tokens, reasoning included.
        cost_usd: US dollars.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    source: CostSource = CostSource.UNKNOWN


UNKNOWN_USAGE = Usage()
FREE = Usage(0, 0, 0.0, CostSource.ZERO)
