"""From "due" to a claim: is the agent here, is the sweep ours? Nothing has been launched yet."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple
from uuid import uuid4

from orchestrator.availability import probe
from orchestrator.claim import Claim, Claimant, NotClaimed, claim
from orchestrator.dispatch import Dispatcher
from orchestrator.errors import WriteFailedError
from orchestrator.git.reader import Identity
from orchestrator.git.writer import Writer
from orchestrator.locks import FileLock, acquire, sweep_lock_path
from orchestrator.model.config import Registration
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.verdict import Action, Code, Verdict
from orchestrator.site import Site
from orchestrator.stop import StopFlag

_LOOKERS_SECONDS = 0.3
"""`explain` and `status` hold a sweep's lock for an instant, to see whether somebody has it."""


class Won(NamedTuple):
    """A claim that was won, and what its dispatch needs.

    Attributes:
        lock: held while the agent runs; whoever dispatches releases it.
        note: what people should be told once, such as a missing identity.
    """

    facts: RoleFacts
    verdict: Verdict
    claim: Claim
    dispatcher: Dispatcher
    lock: FileLock
    note: str | None


def attempt(
    site: Site,
    facts: RoleFacts,
    verdict: Verdict,
    clock: Callable[[], datetime],
    stop: StopFlag,
) -> Won | Verdict:
    """Probe, then claim: a branch is only made where an agent can be started.

    Returns:
        The claim, or the verdict as it stands after something kept the due sweep from starting.

    Raises:
        RemoteUnreachableError: the push's outcome is unknown and the remote cannot be asked.
    """
    if stop.is_set():
        return verdict.resting(Code.BUSY, "this tick was asked to stop", None)
    registration = facts.registration
    assert isinstance(registration, Registration)  # noqa: S101 - S4 holds only with one
    found = probe(site, registration)
    if not found.ok:
        reason = found.reason or f"{registration.adapter} cannot be started here"
        return verdict.turned(Action.ERROR, Code.AGENT_UNAVAILABLE, reason, unblock=found.hint)
    path = sweep_lock_path(site.reader.common_dir, facts.today.slug)
    lock = acquire(path, _LOOKERS_SECONDS)
    if lock is None:
        reason = f"an agent of this clone is at work on {facts.today.slug} right now"
        return verdict.resting(Code.BUSY, reason, None)
    identity = site.reader.identity(site.settings.environ)
    claimant = Claimant(site, Writer(site.reader), identity, str(uuid4()))
    try:
        claimed = _claimed_under(lock, claimant, facts)
    except WriteFailedError as error:
        return verdict.turned(Action.ERROR, Code.REFUSED, error.message, unblock=error.hint)
    if isinstance(claimed, NotClaimed):
        return _not_claimed(verdict, claimed)
    dispatcher = Dispatcher(claimant, registration, found, clock, stop)
    return Won(facts, verdict, claimed, dispatcher, lock, _identity_note(identity))


def _claimed_under(lock: FileLock, claimant: Claimant, facts: RoleFacts) -> Claim | NotClaimed:
    """Sign, then claim. Unless it is won the lock is released; signed, if anything may be left."""
    tidy = False
    earlier = lock.signatures()  # a claim that may still be on its way
    claimed: Claim | NotClaimed | None = None
    try:
        lock.sign(claimant.dispatch_id, launched=False)
        claimed = claim(claimant, facts, facts.now)
        tidy = isinstance(claimed, NotClaimed) and not claimed.uncertain
    except WriteFailedError:
        tidy = True  # nothing had left this machine
        raise
    finally:
        if not isinstance(claimed, Claim):
            lock.release(remove=tidy and not earlier)
    return claimed


def _not_claimed(verdict: Verdict, outcome: NotClaimed) -> Verdict:
    """A lost race and a busy clone are rests: nothing is wrong. A refusal needs a person."""
    if outcome.code in (Code.LOST_RACE, Code.BUSY):
        return verdict.resting(outcome.code, outcome.reason, outcome.hint)
    return verdict.turned(Action.ERROR, outcome.code, outcome.reason, unblock=outcome.hint)


def _identity_note(identity: Identity) -> str | None:
    if not identity.fallback:
        return None
    return (
        f"no committer identity is set, so commits are by {identity.name} <{identity.email}>; "
        "set one with: git config user.name NAME && git config user.email EMAIL"
    )
