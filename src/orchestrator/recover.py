"""What an earlier crash left, put right before anything is decided: locks and pinned closings.

Everything needed is in git and in the locks of this clone: a private ref pins a closing commit that
did not reach its branch, and a sweep's lock, signed and free, says that a run of this clone ended
without putting its things in order (`orchestrator.orphans` deals with those).

    a pinned closing commit                             landed again
    our run, claimed, its agent never started           withdrawn: the role is free again
    our run, its agent started                          closed as `failed: interrupted`
    our run, closed or gone from the remote             its local branch and folders go
    another's intent, past its time limit and a day     closed as `failed: abandoned`
    a `.lock` beside one of our refs, ten minutes old   removed

Every line is idempotent, and two instances doing the same thing meet at a compare-and-swap.
"""

from datetime import datetime
from typing import NamedTuple, Self

from orchestrator.claim import STALE_LOCK_SECONDS
from orchestrator.closing import Closer, Finished, Opened
from orchestrator.errors import WriteFailedError
from orchestrator.git.reader import Identity
from orchestrator.git.wire import PushOutcome, Remote
from orchestrator.git.writer import Writer
from orchestrator.leftovers import PACKED_LOCK, lock_paths
from orchestrator.locks import is_held, sweep_lock_path
from orchestrator.model.marker import Marker, MarkerReading
from orchestrator.model.names import Oid, Ref, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import CostSource, Usage
from orchestrator.published import finish_publishing
from orchestrator.site import Site
from orchestrator.sweeps import (
    CLOSING_REFS,
    History,
    instance_name,
    marker_at,
    pending_ref,
    read_history,
)


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
    """Remove our stale locks and land pinned closing commits; asked before anybody looks.

    Returns:
        One sentence for each thing that was put right, or that could not be.

    Raises:
        RemoteUnreachableError: the remote stopped answering half way; nothing is lost.
    """
    return (*_stale_locks(mender), *_publish_all(mender))


def is_waiting(site: Site) -> bool:
    """Whether a closing commit is pinned here that nobody is landing right now: it was tried, and
    the remote does not take it.
    """
    slugs = (ref.removeprefix(CLOSING_REFS) for ref, _ in site.reader.refs_below(CLOSING_REFS))
    return any(not is_held(sweep_lock_path(site.reader.common_dir, slug)) for slug in slugs)


def _stale_locks(mender: Mender) -> list[str]:
    said = []
    for path in lock_paths(mender.site):
        ref = mender.site.tip_ref if path == PACKED_LOCK else Ref(path.removesuffix(".lock"))
        try:
            removed = mender.writer.break_stale_lock(ref, STALE_LOCK_SECONDS)
        except WriteFailedError as error:
            said.append(error.message)
            continue
        if removed:
            said.append(f"removed a stale lock left by a crash: {removed}")
    return said


def _publish_all(mender: Mender) -> list[str]:
    """Land the closing commits that are pinned here and not on their branches yet."""
    site, said = mender.site, []
    for ref, _ in site.reader.refs_below(CLOSING_REFS):
        sweep = SweepName.from_slug(ref.removeprefix(CLOSING_REFS))
        if sweep is None or is_held(sweep_lock_path(site.reader.common_dir, sweep.slug)):
            continue
        closing = site.reader.resolve(ref)  # the run that pinned it may have landed it meanwhile
        if closing is None or (site.remote is not None and not site.fetched):
            continue
        try:
            sentence = _publish(mender, sweep, closing)
        except WriteFailedError as error:
            sentence = f"the closing commit of {sweep.slug} waits: {error.message}"
        if sentence is not None:
            said.append(sentence)
    return said


def _publish(mender: Mender, sweep: SweepName, closing: Oid) -> str | None:
    site = mender.site
    there = _where_it_belongs(site, sweep)
    if there is not None and site.reader.is_ancestor(closing, there):
        _landed(mender, sweep, closing, there)
        return None
    if there is None and _is_merged(site, sweep, closing):
        _landed(mender, sweep, closing, None)
        return None
    if there is not None and not site.reader.is_ancestor(there, closing):
        return _publish_on_top(mender, sweep, closing, there)
    if site.remote is None:
        done = _move_here(mender.writer, sweep, closing, there)
    else:
        outcome = _push(site.remote, sweep, closing, there)
        done = outcome.flag in ("*", " ", "+")
        if outcome.flag == "!":
            words = "; ".join((*outcome.server, outcome.reason)).strip("; ")
            return f"{site.remote.name} does not take the closing commit of {sweep.slug}: {words}"
    if not done:
        return None
    _landed(mender, sweep, closing, closing)
    where = f"had not reached {site.remote_name}" if site.remote_name else "was not on its branch"
    return f"published the closing commit of {sweep.slug}, which {where}"


def _where_it_belongs(site: Site, sweep: SweepName) -> Oid | None:
    """The tip of the sweep's branch where people review it; its history is brought here."""
    ref = sweep.local_ref
    if site.remote is None:
        return site.reader.resolve(ref)
    there = site.remote.ls(ref).get(ref)
    if there is not None and not site.reader.has(there):
        return site.remote.fetch_ref(ref)
    return there


def _is_merged(site: Site, sweep: SweepName, closing: Oid) -> bool:
    """Whether the default branch has the very marker of this closing: it was published, merged
    and deleted before this clone noted that it was published.
    """
    merged = site.reader.entry(site.tip, sweep.marker_path)
    ours = site.reader.entry(closing, sweep.marker_path)
    return merged is not None and ours is not None and merged.oid == ours.oid


def _landed(mender: Mender, sweep: SweepName, closing: Oid, there: Oid | None) -> None:
    """The closing is where it belongs, its branch at `there` (None: deleted since)."""
    if mender.site.remote is not None:
        finish_publishing(mender.site, mender.writer, sweep, closing, there=there)
    mender.writer.delete_ref(pending_ref(sweep), closing)


def _move_here(writer: Writer, sweep: SweepName, closing: Oid, there: Oid | None) -> bool:
    if there is None:
        return writer.create_ref(sweep.local_ref, closing, "sweep: closing")
    return writer.move_ref(sweep.local_ref, closing, there, "sweep: closing")


def _push(remote: Remote, sweep: SweepName, closing: Oid, there: Oid | None) -> PushOutcome:
    ref = sweep.local_ref
    return remote.create(closing, ref) if there is None else remote.update(closing, ref, there)


def _publish_on_top(mender: Mender, sweep: SweepName, closing: Oid, there: Oid) -> str | None:
    """Others built on the branch since: our record goes on top of theirs, as a merge."""
    reader = mender.site.reader
    reading, history = marker_at(reader, closing, sweep), read_history(reader, sweep, closing)
    if reading is None or history.intent is None:
        return None
    opened = opened_again(mender, reading, history)._replace(intent=history.intent)
    finished = Finished(_status(history), _usage(history, reading), reading.failed)
    closer = Closer(mender.site, mender.writer, opened, mender.identity, mender.now)
    if not closer.republish(finished, closing, there).published:
        return None
    return f"published the closing commit of {sweep.slug} on top of what others added"


def opened_again(mender: Mender, reading: MarkerReading, history: History) -> Opened:
    """The sweep as its intent's marker tells it; its `intent` is the tip it was read from."""
    marker = Marker(
        sweep=reading.sweep,
        every=reading.every or "",
        at=reading.at,
        covering_since=reading.covering_since,
        adapter=reading.adapter or "",
        model=reading.model,
        cost_limit_usd=reading.cost_limit_usd,
        occurrence=reading.occurrence,
        trigger=reading.trigger,
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
