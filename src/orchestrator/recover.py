"""What an earlier crash left, put right before anything is decided.

Everything needed is in git: an intent says which instance made it, a kernel lock says whether that
instance's agent still runs, and a private ref pins a closing commit that did not reach the remote.

    local intent, nobody at work, remote never saw it   dropped: nothing had started
    our intent, nobody at work                          closed as `failed: interrupted`
    a pinned closing commit                             pushed again
    another's intent, past its time limit and a day     closed as `failed: abandoned`
    a `.lock` beside one of our refs, ten minutes old   removed

Every line is idempotent, and two instances doing the same thing meet at a compare-and-swap.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Self

from orchestrator.claim import STALE_LOCK_SECONDS
from orchestrator.closing import (
    Closer,
    Finished,
    Opened,
    finish_publishing,
    pending_ref,
)
from orchestrator.git.reader import Identity
from orchestrator.git.writer import Writer
from orchestrator.leftovers import CLOSING_REFS
from orchestrator.locks import is_held, sweep_lock_path
from orchestrator.model.config import Registration
from orchestrator.model.marker import Marker, MarkerReading
from orchestrator.model.names import Oid, Ref, SweepName
from orchestrator.model.status import Status
from orchestrator.model.timing import elapsed_ms, iso
from orchestrator.model.usage import CostSource, Usage
from orchestrator.rules.facts import RoleFacts, SweepBranch, SweepState
from orchestrator.site import Site
from orchestrator.sweeps import History, instance_name, marker_at, read_history

_DAY_MS = 86_400_000
_LONGEST_S = 86_400.0
"""Assumed time limit of a role whose registration cannot be read."""


class Mender(NamedTuple):
    """Where to mend and in whose name."""

    site: Site
    writer: Writer
    identity: Identity
    now: datetime

    @classmethod
    def of(cls, site: Site, now: datetime) -> Self:
        return cls(site, Writer(site.reader), site.reader.identity(site.settings.environ), now)


def publish_pending(mender: Mender) -> tuple[str, ...]:
    """Remove our stale locks and push pinned closing commits; asked before anybody looks.

    Returns:
        One sentence for each thing that was put right.

    Raises:
        RemoteUnreachableError: the remote stopped answering half way; nothing is lost.
    """
    return (*_stale_locks(mender), *_publish_all(mender))


def close_orphans(mender: Mender, facts: Mapping[str, RoleFacts]) -> tuple[str, ...]:
    """Close, or drop, the open sweeps nobody works on any more; `facts` are of this moment.

    Returns and raises as `publish_pending` does.
    """
    said = []
    for role_facts in facts.values():
        for branch in role_facts.open_branches:
            if branch.state in (SweepState.IN_FLIGHT, SweepState.UNPUBLISHED):
                sentence = _mend_open(mender, role_facts, branch)
                if sentence is not None:
                    said.append(sentence)
    return tuple(said)


def _stale_locks(mender: Mender) -> list[str]:
    site = mender.site
    refs = {site.tip_ref, *(r.name for r in site.reader.sweep_refs(site.reader.remotes()))}
    removed = (mender.writer.break_stale_lock(r, STALE_LOCK_SECONDS) for r in sorted(refs))
    return [f"removed a stale lock left by a crash: {path}" for path in removed if path]


def _publish_all(mender: Mender) -> list[str]:
    """Push closing commits that are pinned here and not on the remote yet."""
    site, said = mender.site, []
    for ref, closing in site.reader.refs_below(CLOSING_REFS):
        sweep = SweepName.from_slug(ref.removeprefix(CLOSING_REFS))
        if sweep is None or is_held(sweep_lock_path(site.reader.common_dir, sweep.slug)):
            continue
        if site.remote is None:
            mender.writer.delete_ref(ref, closing)
            continue
        sentence = _publish(mender, sweep, closing)
        if sentence is not None:
            said.append(sentence)
    return said


def _publish(mender: Mender, sweep: SweepName, closing: Oid) -> str | None:
    site, remote = mender.site, mender.site.remote
    assert remote is not None  # noqa: S101 - the caller has looked
    there = remote.ls(sweep.local_ref).get(sweep.local_ref)
    if there is not None and not site.reader.has(there):
        remote.fetch_ref(sweep.local_ref)
    if there is not None and site.reader.is_ancestor(closing, there):
        finish_publishing(site, mender.writer, sweep, there)
        mender.writer.delete_ref(Ref(CLOSING_REFS + sweep.slug), closing)
        return None
    if there is None:
        landed = remote.create(closing, sweep.local_ref).flag == "*"
    elif site.reader.is_ancestor(there, closing):
        landed = remote.update(closing, sweep.local_ref, there).flag == " "
    else:
        return _publish_on_top(mender, sweep, closing, there)
    if not landed:
        return None
    finish_publishing(site, mender.writer, sweep, closing)
    return f"published the closing commit of {sweep.slug}, which had not reached {remote.name}"


def _publish_on_top(mender: Mender, sweep: SweepName, closing: Oid, there: Oid) -> str | None:
    """Others built on the branch since: our record goes on top of theirs, as a merge."""
    reader = mender.site.reader
    reading, history = marker_at(reader, closing, sweep), read_history(reader, sweep, closing)
    if reading is None or history.intent is None:
        return None
    opened = _opened(mender, reading, history)._replace(intent=history.intent)
    finished = Finished(_status(history), _usage(history, reading), reading.failed)
    closer = Closer(mender.site, mender.writer, opened, mender.identity, mender.now)
    if not closer.republish(finished, closing, there).published:
        return None
    return f"published the closing commit of {sweep.slug} on top of what others added"


def _mend_open(mender: Mender, facts: RoleFacts, branch: SweepBranch) -> str | None:
    site, sweep = mender.site, branch.sweep
    if is_held(sweep_lock_path(site.reader.common_dir, sweep.slug)):
        return None
    if site.reader.resolve(pending_ref(sweep)) is not None:
        return None  # its closing commit is pinned and waits for the remote
    leading = _leading(site, branch)
    history = read_history(site.reader, sweep, leading)
    if history.closed or history.intent is None:
        return None
    shared = [r for r in branch.refs if r.remote is not None]
    if site.remote is not None and not shared:
        return _drop_unclaimed(mender, branch, history)
    ours = site.remote is None or history.instance == instance_name(site.reader)
    if ours:
        kill_leftovers_of(history)
        return _close_orphan(mender, branch, history, "interrupted", Status.INTERRUPTED)
    if _abandoned(facts, history, mender.now):
        return _close_orphan(mender, branch, history, "abandoned", Status.FAILED)
    return None


def _leading(site: Site, branch: SweepBranch) -> Oid:
    shared = next((r for r in branch.refs if r.remote == site.remote_name and r.remote), None)
    return (shared or branch.refs[0]).tip


def kill_leftovers_of(history: History) -> None:
    """End what a killed tick's agent left running on this machine."""
    if history.dispatch_id is not None:
        from orchestrator.adapters.process import kill_leftovers  # only after a crash

        kill_leftovers(history.dispatch_id)


def _drop_unclaimed(mender: Mender, branch: SweepBranch, history: History) -> str | None:
    """An intent the remote does not have: the claim never arrived, so nothing was launched."""
    local = branch.refs[0]
    if not mender.site.fetched or local.tip != history.intent:
        return None
    if local.name in mender.site.reader.worktree_branches():
        return None
    if not mender.writer.delete_ref(local.name, local.tip):
        return None
    return f"dropped {branch.sweep.branch}: its claim never reached {mender.site.remote_name}"


def _abandoned(facts: RoleFacts, history: History, now: datetime) -> bool:
    """Somebody else's sweep, past its role's time limit plus a day."""
    if history.since is None:
        return False
    known = isinstance(facts.registration, Registration)
    limit_s = facts.registration.timeout_s if isinstance(facts.registration, Registration) else 0.0
    limit_ms = int((limit_s if known else _LONGEST_S) * 1000)
    return elapsed_ms(history.since, now) > limit_ms + _DAY_MS


def _close_orphan(
    mender: Mender, branch: SweepBranch, history: History, why: str, status: Status
) -> str | None:
    sweep = branch.sweep
    reading = marker_at(mender.site.reader, history.tip, sweep)
    if reading is None or history.intent is None:
        return None
    if why == "abandoned" and history.since is not None:
        failed = f"abandoned: in flight since {iso(history.since)} by {history.instance}"
    else:
        failed = "interrupted: the tick that ran it ended before the agent did"
    opened = _opened(mender, reading, history)
    closer = Closer(mender.site, mender.writer, opened, mender.identity, mender.now)
    closed = closer.close(Finished(status, failed=failed))
    where = "" if closed.published else f" (not on {mender.site.remote_name} yet)"
    return f"closed {sweep.branch} as failed: {why}{where}"


def _opened(mender: Mender, reading: MarkerReading, history: History) -> Opened:
    """The sweep as its intent's marker tells it."""
    assert history.intent is not None  # noqa: S101 - callers have looked
    marker = Marker(
        sweep=reading.sweep,
        every=reading.every or "",
        at=reading.at,
        covering_since=reading.covering_since,
        adapter=reading.adapter or "",
        model=reading.model,
        cost_limit_usd=reading.cost_limit_usd,
    )
    instance = instance_name(mender.site.reader)
    return Opened(marker, history.tip, history.dispatch_id, instance)


def _status(history: History) -> Status:
    try:
        return Status(history.status or "")
    except ValueError:
        return Status.FAILED if not history.completed else Status.OK


def _usage(history: History, reading: MarkerReading) -> Usage:
    try:
        source = CostSource(history.cost_source or "")
    except ValueError:
        source = CostSource.UNKNOWN
    return Usage(reading.tokens_in, reading.tokens_out, reading.cost_usd, source)
