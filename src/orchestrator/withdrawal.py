"""When the agent's service cannot be used: the claim is given back, and tried again later.

A refused key, a rate limit or a service that is down, before any token was spent and with nothing
changed, is this machine's trouble and no sweep. Its branch is withdrawn, as long as it is exactly
what we made, so that another machine may try; this clone waits a while (`orchestrator.backoff`).
"""

from datetime import datetime

from orchestrator.backoff import forget, path_of, remember
from orchestrator.claim import Claim, Claimant
from orchestrator.closing import Finished
from orchestrator.errors import WriteFailedError
from orchestrator.model.config import Registration
from orchestrator.model.status import Status
from orchestrator.model.timing import iso
from orchestrator.outcome import Withdrawn
from orchestrator.withdraw import withdraw

_OPERATORS = (Status.AUTH, Status.RATE_LIMITED, Status.UNAVAILABLE)


def settle(
    claimant: Claimant,
    claimed: Claim,
    registration: Registration,
    finished: Finished,
    now: datetime,
) -> Withdrawn | None:
    """Give the claim back where that is right; None when the sweep is to be closed as usual."""
    common_dir = claimant.site.reader.common_dir
    if not _is_operators(finished):
        forget(common_dir, registration.role)
        return None
    if not _given_back(claimant, claimed):
        return None  # somebody built on the branch, or the remote does not answer: it is closed
    words = finished.failed or finished.status.value
    until = remember(common_dir, registration, words, now).until
    return Withdrawn(
        claimed.sweep,
        finished.status,
        f"{registration.adapter} could not be used: {words} (nothing was spent; the branch is "
        f"withdrawn; tried again from {iso(until)})",
        f"mend it; to try at once: rm {path_of(common_dir, registration.role)}",
        until,
    )


def _is_operators(finished: Finished) -> bool:
    if finished.status not in _OPERATORS or finished.changes or finished.left_out:
        return False
    usage = finished.usage
    return not (usage.tokens_in or usage.tokens_out or usage.cost_usd)


def _given_back(claimant: Claimant, claimed: Claim) -> bool:
    """Delete the branch where it is still our intent; what stays here, the next tick mends."""
    site, writer, sweep = claimant.site, claimant.writer, claimed.sweep
    try:
        if site.remote is None:
            return writer.delete_ref(sweep.local_ref, claimed.intent)
    except WriteFailedError:
        return False
    return withdraw(site.remote, writer, sweep, claimed.intent)
