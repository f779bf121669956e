"""The marker: `runs/<slug>/sweep.yaml`, the record that a sweep happened and what it cost."""

from datetime import datetime
from typing import NamedTuple, Self

from orchestrator.model.names import SweepName
from orchestrator.model.usage import Usage


class Marker(NamedTuple):
    """One marker, as written by this program.

    Attributes:
        every: the interval in force, as written in the configuration.
        at: when the sweep was dispatched (UTC).
        covering_since: up to where the last merged, not failed sweep covered; None on a first one.
        cost_limit_usd: the cap in force, US dollars, or None.
        tokens_in, tokens_out, cost_usd: real usage; None until the closing commit, and after it
            when the agent did not say.
        failed: one line, only when the dispatch did not complete.
        occurrence: the nominal time a calendar schedule stands for; None for every other sweep.
        trigger: `manual` when a person asked for the sweep; such a sweep moves no schedule.
    """

    sweep: SweepName
    every: str
    at: datetime
    covering_since: datetime | None
    adapter: str
    model: str | None
    cost_limit_usd: float | None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    failed: str | None = None
    occurrence: datetime | None = None
    trigger: str | None = None

    def closed(self, usage: Usage, failed: str | None) -> Self:
        """This marker as the closing commit writes it."""
        return self._replace(
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            cost_usd=usage.cost_usd,
            failed=failed,
        )


class MarkerReading(NamedTuple):
    """What reading a marker, by whoever wrote it, yields; anything but `at` may be unknown.

    `has_numbers` is true when any of the three usage keys holds a number.
    """

    sweep: SweepName
    at: datetime
    covering_since: datetime | None
    adapter: str | None
    model: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    failed: str | None
    every: str | None = None
    cost_limit_usd: float | None = None
    occurrence: datetime | None = None
    trigger: str | None = None

    @property
    def has_numbers(self) -> bool:
        return any(n is not None for n in (self.tokens_in, self.tokens_out, self.cost_usd))
