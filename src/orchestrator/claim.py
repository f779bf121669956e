"""The claim: of any number of instances that find the same sweep due, exactly one gets it.

With a remote, the remote arbitrates: the intent commit is pushed to a branch that must not exist
yet, and only the server's own "new reference" counts as a win. Whatever else is heard, or not
heard, the remote is asked whose commit stands there; no error text decides anything. After a win
one more look closes the midnight hole: two hosts whose clocks straddle it claim different slugs,
both win, and whoever claimed second sees the first and withdraws. The same look tells whether the
default branch moved since: a sweep that was run, merged and deleted meanwhile is not run again.

Without a remote the local branch is created from nothing, the look and the write under one lock.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from orchestrator.errors import WriteFailedError
from orchestrator.git.reader import Identity
from orchestrator.git.wire import PushOutcome, Remote
from orchestrator.git.writer import RefBlockedError, Writer
from orchestrator.model.config import Registration, ScheduleEntry
from orchestrator.model.marker import Marker
from orchestrator.model.names import RUNS_FOLDER, Oid, Ref, SweepName
from orchestrator.record import write_intent
from orchestrator.rules.facts import MANUAL, BrokenMarker, RoleFacts
from orchestrator.rules.table import ALLOW
from orchestrator.rules.verdict import Code
from orchestrator.site import Site
from orchestrator.sweeps import instance_name
from orchestrator.withdraw import withdraw

STALE_LOCK_SECONDS = 600.0
_NOT_A_REASON = ("stale info", "fetch first", "already exists", "failed to update ref", "")
"""What git prints for a race as well; such words alone are no refusal."""


class Claim(NamedTuple):
    """A sweep this instance owns: the branch is ours, nothing has been launched.

    Attributes:
        beside_others: other sweeps of the role may be open (`overlap: allow`).
    """

    sweep: SweepName
    marker: Marker
    base: Oid
    intent: Oid
    dispatch_id: str
    instance: str
    beside_others: bool = False


class NotClaimed(NamedTuple):
    """Why there is no claim: lost, busy or refused.

    Attributes:
        uncertain: a branch of ours may still be, or come, on the remote, which did not answer;
            else no ref of ours is left behind.
    """

    code: Code
    reason: str
    hint: str | None = None
    uncertain: bool = False


class Claimant(NamedTuple):
    """Who claims, and with what: one value instead of six arguments."""

    site: Site
    writer: Writer
    identity: Identity
    dispatch_id: str


def claim(claimant: Claimant, facts: RoleFacts, now: datetime) -> Claim | NotClaimed:
    """Try to make today's sweep of the role ours.

    Raises:
        RemoteUnreachableError: the push's outcome is unknown and the remote cannot be asked.
            Nothing was launched; if the claim did arrive, the next tick withdraws it.
        WriteFailedError: the intent commit could not be stored; no ref was made anywhere.
    """
    site, writer = claimant.site, claimant.writer
    marker = planned_marker(facts, now)
    instance = instance_name(site.reader)
    intent = write_intent(
        writer,
        marker,
        site.tip,
        dispatch_id=claimant.dispatch_id,
        instance=instance,
        identity=claimant.identity,
        now=now,
    )
    made = Claim(
        marker.sweep,
        marker,
        site.tip,
        intent,
        claimant.dispatch_id,
        instance,
        beside_others=isinstance(facts.entry, ScheduleEntry) and facts.entry.overlap == ALLOW,
    )
    if site.remote is None:
        return _claim_locally(writer, made)
    lost = _claim_remotely(site, site.remote, made)
    if lost is not None:
        return lost
    _keep_locally(writer, made, site.remote.name)
    return _look_once_more(site, site.remote, writer, made)


def planned_marker(facts: RoleFacts, now: datetime) -> Marker:
    """The marker of a sweep dispatched at `now`; the entry and registration have to be usable."""
    entry, registration, last = facts.entry, facts.registration, facts.last
    assert isinstance(entry, ScheduleEntry)  # noqa: S101 - S4 holds only for a readable entry
    assert isinstance(registration, Registration)  # noqa: S101 - and a usable registration
    covered = None if last is None or isinstance(last, BrokenMarker) else last.covered_until
    return Marker(
        sweep=facts.today,
        every=entry.timing,
        at=now,
        covering_since=covered,
        adapter=registration.adapter,
        model=registration.model,
        cost_limit_usd=entry.cost_limit_usd,
        occurrence=facts.occurrence,
        trigger=MANUAL if facts.by_hand else None,
    )


def _claim_locally(writer: Writer, made: Claim) -> Claim | NotClaimed:
    ref = made.sweep.local_ref
    writer.break_stale_lock(ref, STALE_LOCK_SECONDS)
    try:
        won = writer.create_ref(ref, made.intent, f"sweep: begin {made.sweep.slug}")
    except RefBlockedError as error:
        return _blocked(error)
    return made if won else _lost(made.sweep.branch, "another process here created it first")


def _blocked(error: RefBlockedError) -> NotClaimed:
    """A fresh lock is somebody at work right now; anything else in the way needs a person."""
    code = Code.BUSY if error.lock is not None else Code.REFUSED
    return NotClaimed(code, error.message, error.hint)


def _lost(branch: str, why: str) -> NotClaimed:
    return NotClaimed(Code.LOST_RACE, f"lost the race for {branch}: {why}")


def _claim_remotely(site: Site, remote: Remote, made: Claim) -> NotClaimed | None:
    """None when the branch on the remote is ours."""
    ref, uncertain = made.sweep.local_ref, False
    for last_try in (False, True):
        outcome = remote.create(made.intent, ref)
        if outcome.flag == "*":
            return None
        uncertain = uncertain or not outcome.answered
        there = remote.ls(_role_pattern(made))
        if uncertain:
            there = _built_on(site, remote, made, there)
        if there.get(ref) == made.intent:
            return None  # it arrived, only the answer did not
        other = _other_open(site, made, there, site.tip)
        if other is not None:
            # A push that was not answered may still arrive, where the other sweep is another day's.
            lost = _lost(made.sweep.branch, f"{other} is on {remote.name} already")
            return lost._replace(uncertain=uncertain)
        if _said_why(outcome) or last_try:
            return _refused(remote, made, outcome)._replace(uncertain=uncertain)
    raise AssertionError("unreachable: the second try returns")  # pragma: no cover


def _role_pattern(made: Claim) -> str:
    return f"refs/heads/run/{made.sweep.role}-*"


def _built_on(
    site: Site, remote: Remote, made: Claim, there: Mapping[Ref, Oid]
) -> Mapping[Ref, Oid]:
    """`there`, with our branch at our intent where a person has built on that already."""
    ref = made.sweep.local_ref
    if there.get(ref, made.intent) == made.intent:
        return there
    top = remote.fetch_ref(ref)
    if top is None or not site.reader.is_ancestor(made.intent, top):
        return there
    return {**there, ref: made.intent}


def _sweep_of(ref: Ref, role: str) -> SweepName | None:
    sweep = SweepName.from_branch(ref.removeprefix("refs/heads/"))
    return sweep if sweep is not None and sweep.role == role else None


def _other_open(site: Site, made: Claim, there: Mapping[Ref, Oid], tip: Oid) -> str | None:
    """Another unmerged sweep of the role among the remote's refs: its branch, or None."""
    for ref, oid in there.items():
        sweep = _sweep_of(ref, made.sweep.role)
        if sweep is None or oid == made.intent:
            continue
        if sweep == made.sweep:
            return sweep.branch
        if made.beside_others:
            continue
        if site.reader.entry(tip, sweep.marker_path) is not None:
            continue  # merged: its marker is on the default branch
        if site.reader.has(oid) and site.reader.is_ancestor(oid, tip):
            continue
        return sweep.branch
    return None


def _said_why(outcome: PushOutcome) -> bool:
    return bool(outcome.server) or outcome.reason.strip("() ") not in _NOT_A_REASON


def _refused(remote: Remote, made: Claim, outcome: PushOutcome) -> NotClaimed:
    words = "; ".join((*outcome.server, outcome.reason)).strip("; ") or "it gave no reason"
    return NotClaimed(
        Code.REFUSED,
        f"{remote.name} refused the branch {made.sweep.branch}: {words}",
        "let this identity create branches called run/* there (hooks, rulesets and protected "
        "names are the usual causes)",
    )


def _keep_locally(writer: Writer, made: Claim, remote: str) -> None:
    """What people see of the sweep in this clone; the claim stands without it."""
    ref = made.sweep.local_ref
    with suppress(
        WriteFailedError
    ):  # somebody's lock; or a full disk, of which the launch will say
        writer.break_stale_lock(ref, STALE_LOCK_SECONDS)
        writer.create_ref(ref, made.intent, f"sweep: begin {made.sweep.slug}")
    with suppress(WriteFailedError):
        writer.set_tracking(made.sweep.tracking_ref(remote), made.intent)


def _look_once_more(site: Site, remote: Remote, writer: Writer, made: Claim) -> Claim | NotClaimed:
    default = Ref(f"refs/heads/{site.default_branch}")
    there = _built_on(site, remote, made, remote.ls(_role_pattern(made), default))
    if made.sweep.local_ref not in there:
        gone = withdraw(remote, writer, made.sweep, made.intent)
        return NotClaimed(
            Code.REFUSED,
            f"the branch {made.sweep.branch} was pushed, but {remote.name} does not show it",
            f"the push URL and the fetch URL of {remote.name} must be one repository "
            f"(git remote -v)",
            uncertain=not gone,
        )
    tip = site.tip
    if there.get(default, tip) != tip:
        tip = remote.fetch_ref(default) or tip
    why = _merged_since(site, made, tip)
    if why is None:
        other = _other_open(site, made, there, tip)
        why = other and f"{other} was claimed at the same time"
    if why is None:
        return made
    gone = withdraw(remote, writer, made.sweep, made.intent)
    return _lost(made.sweep.branch, f"{why}; ours is withdrawn")._replace(uncertain=not gone)


def _merged_since(site: Site, made: Claim, tip: Oid) -> str | None:
    """A sweep of the role that was merged after we looked, its branch deleted: nothing else tells
    that this one was not due any more, or was run already.
    """
    if tip == site.tip:
        return None
    names = {name for name, _ in site.reader.names(tip, RUNS_FOLDER)}
    names -= {name for name, _ in site.reader.names(site.tip, RUNS_FOLDER)}
    sweeps = (SweepName.from_slug(name) for name in sorted(names))
    roles = [s for s in sweeps if s is not None and s.role == made.sweep.role]
    new = next((s for s in roles if s == made.sweep or not made.beside_others), None)
    return None if new is None else f"{new.slug} was merged meanwhile"
