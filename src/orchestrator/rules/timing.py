"""The one seam through which time enters the rules: is a sweep due, and if not, when?

`every` is the only kind of timing so far. Another kind answers the same question with the same
value, and nothing else in the rules changes.
"""

from datetime import datetime
from typing import NamedTuple

from orchestrator.model.timing import Every, elapsed_ms, iso, later
from orchestrator.rules.facts import MergedSweep


class Due(NamedTuple):
    """Whether the interval has elapsed.

    Attributes:
        due_at: when it elapses; None on a first sweep, or past what a calendar can hold.
        warning: something odd about the clocks.
    """

    elapsed: bool
    reason: str
    due_at: datetime | None = None
    warning: str | None = None


def due(every: Every, last: MergedSweep | None, now: datetime) -> Due:
    """Elapsed means `now - at >= every`, in absolute time: time zones and DST do not matter."""
    if last is None:
        return Due(elapsed=True, reason="it never swept: no marker is on the default branch")
    at, slug = iso(last.at), last.sweep.slug
    gone = elapsed_ms(last.at, now)
    due_at = later(last.at, every.ms)
    when = iso(due_at) if due_at is not None else "beyond the calendar"
    if gone < 0:
        return Due(
            elapsed=False,
            reason=f"the last merged sweep, {slug}, is dated in the future ({at})",
            due_at=due_at,
            warning=f"{slug} says it was dispatched at {at}, which is later than this clock's "
            f"{iso(now)}: one of the two clocks is wrong",
        )
    if gone < every.ms:
        return Due(
            elapsed=False,
            reason=f"{slug} was dispatched at {at}, and every {every.text} makes the next due "
            f"at {when}",
            due_at=due_at,
        )
    return Due(
        elapsed=True,
        reason=f"{slug} was dispatched at {at}; every {every.text} elapsed at {when}",
        due_at=due_at,
    )
