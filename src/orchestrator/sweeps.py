"""Reading sweep branches: which are merged, and what the open ones wait for.

A branch's history says it all: the intent commit (trailer `Sweep-Phase: intent`) names when and
by which instance, the closing commit says that the agent is done. Branches made by other hands
have no trailers; there the marker's own numbers, or its `failed`, close it.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, time
from typing import NamedTuple

from orchestrator.errors import MissingObjectError
from orchestrator.git.porcelain import trailers
from orchestrator.git.reader import Reader, SweepRef
from orchestrator.locks import is_held, signatures_at, state_folder, sweep_lock_path
from orchestrator.markerfile import MarkerError, read_marker
from orchestrator.model.config import Registration
from orchestrator.model.marker import MarkerReading
from orchestrator.model.names import Oid, Ref, SweepName
from orchestrator.model.timing import from_epoch
from orchestrator.rules.facts import (
    BACKOFF_FOLDER,
    Backoff,
    BranchRef,
    Merged,
    MergedSweep,
    SweepBranch,
    SweepState,
    release_command,
)
from orchestrator.site import Site

SWEEP, PHASE, DISPATCH_ID, INSTANCE = "Sweep", "Sweep-Phase", "Dispatch-Id", "Instance"
STATUS, COST_SOURCE = "Sweep-Status", "Cost-Source"
INTENT, WORK, CLOSING = "intent", "work", "closing"

CLOSING_REFS = "refs/orchestrator/closing/"
"""Private refs that pin closing commits until the remote has them, one a slug."""

_COMPLETED = ("ok", "no_change")
_DEPTH = 200
"""How far a branch is read back for its intent: the sweep's three commits and what people add."""
_MARKER_BYTES = 64 * 1024


class History(NamedTuple):
    """What a sweep branch's own commits say.

    Attributes:
        tip: where it was read from.
        intent: the intent commit, when there is one.
        since: when the intent was made.
        dispatch_id, instance: its trailers.
        closed: a closing commit, or a marker closed by other hands.
        status, cost_source: the closing's trailers.
        completed: whether the closing says the sweep did its work.
        marker: the marker at `tip`; None when it is absent or cannot be read.
    """

    tip: Oid
    intent: Oid | None = None
    since: datetime | None = None
    dispatch_id: str | None = None
    instance: str | None = None
    closed: bool = False
    status: str | None = None
    cost_source: str | None = None
    completed: bool = False
    failed: str | None = None
    marker: MarkerReading | None = None


def pending_ref(sweep: SweepName) -> Ref:
    """Pins a closing commit until it is published."""
    return Ref(CLOSING_REFS + sweep.slug)


def read_history(reader: Reader, sweep: SweepName, tip: Oid) -> History:
    """Read one branch back from `tip` to its intent. Never raises for what a branch may hold."""
    found = History(tip)
    for commit in reader.first_parents(tip, _DEPTH):
        said = trailers(commit.message)
        if said.get(SWEEP) != sweep.slug:
            continue
        phase = said.get(PHASE)
        if phase == CLOSING and not found.closed:
            found = found._replace(
                closed=True,
                status=said.get(STATUS),
                cost_source=said.get(COST_SOURCE),
                completed=said.get(STATUS) in _COMPLETED,
            )
        if phase == INTENT:
            found = found._replace(
                intent=commit.oid,
                since=from_epoch(commit.time),
                dispatch_id=said.get(DISPATCH_ID),
                instance=said.get(INSTANCE),
            )
            break
    marker = marker_at(reader, tip, sweep)
    if marker is None:
        return found
    found = found._replace(marker=marker)
    if found.closed:
        return found._replace(failed=marker.failed)
    done = marker.has_numbers or marker.failed is not None
    return found._replace(closed=done, completed=marker.failed is None, failed=marker.failed)


def marker_at(reader: Reader, commit: Oid, sweep: SweepName) -> MarkerReading | None:
    """The sweep's marker on a commit; None when it is absent, unreadable or not in this clone."""
    entry = reader.entry(commit, sweep.marker_path)
    if entry is None or entry.kind not in ("blob", "executable"):
        return None
    if entry.size is not None and entry.size > _MARKER_BYTES:
        return None
    try:
        return read_marker(reader.read_blob(entry.oid, _MARKER_BYTES), sweep)
    except (MarkerError, MissingObjectError):
        return None


def read_branches(
    site: Site, refs: Sequence[SweepRef], has_marker: Callable[[SweepName], bool]
) -> tuple[SweepBranch, ...]:
    """The sweeps behind `refs`, newest first; each judged against the default tip."""
    by_sweep: dict[SweepName, list[SweepRef]] = {}
    for ref in refs:
        by_sweep.setdefault(ref.sweep, []).append(ref)
    newest_first = sorted(by_sweep, key=lambda s: s.date, reverse=True)
    return tuple(_read_branch(site, s, by_sweep[s], has_marker(s)) for s in newest_first)


def _read_branch(
    site: Site, sweep: SweepName, refs: list[SweepRef], marker_merged: bool
) -> SweepBranch:
    ordered = sorted(refs, key=lambda r: (r.remote is not None, r.remote != site.remote_name))
    branch = SweepBranch(sweep, tuple(BranchRef(r.name, r.oid, r.remote) for r in ordered))
    if marker_merged:
        return branch._replace(merged=Merged.MARKER)
    if all(site.reader.is_ancestor(r.oid, site.tip) for r in ordered):
        return branch._replace(merged=Merged.REACHABLE)
    return _judge_open(site, branch)


def _judge_open(site: Site, branch: SweepBranch) -> SweepBranch:
    sweep, arbiter = branch.sweep, site.remote_name
    local = next((r for r in branch.refs if r.remote is None), None)
    shared = next((r for r in branch.refs if r.remote == arbiter), None) if arbiter else None
    leading = shared or local or branch.refs[0]
    history = read_history(site.reader, sweep, leading.tip)
    state = _state(history)
    if arbiter is not None and local is not None and (shared is None or not history.closed):
        here = history if leading is local else read_history(site.reader, sweep, local.tip)
        if shared is None or here.closed:
            history, state = here, SweepState.UNPUBLISHED
    return branch._replace(
        state=state,
        intent=history.intent,
        since=history.since,
        instance=history.instance,
        alive=_alive(site, sweep, history) if not history.closed else None,
        failed=history.failed,
        release=_release(site, branch),
        occurrence=_occurrence(sweep, history),
    )


def _occurrence(sweep: SweepName, history: History) -> datetime | None:
    """What the marker stands for. One that cannot be read stands for its whole day: never due on
    doubt.
    """
    if history.marker is not None:
        return history.marker.occurrence
    return datetime.combine(sweep.date, time.max, tzinfo=UTC)


def _release(site: Site, branch: SweepBranch) -> str:
    """What gives the sweep up; a closing commit that is pinned here would bring it back."""
    command = release_command(branch, site.remote_name)
    pinned = pending_ref(branch.sweep)
    if site.reader.resolve(pinned) is None:
        return command
    return " && ".join(part for part in (command, f"git update-ref -d {pinned}") if part)


def _state(history: History) -> SweepState:
    if not history.closed:
        return SweepState.IN_FLIGHT
    return SweepState.AWAITING_REVIEW if history.completed else SweepState.FAILED


def _alive(site: Site, sweep: SweepName, history: History) -> bool | None:
    """True while this clone's agent runs; False when it was ours and is gone; None elsewhere."""
    lock = sweep_lock_path(site.reader.common_dir, sweep.slug)
    if is_held(lock):
        return True
    if site.remote is None:
        return False
    ours = any(s.dispatch_id == history.dispatch_id for s in signatures_at(lock))
    return False if ours else None


def instance_name(reader: Reader) -> str:
    """This clone, as the intent's `Instance:` trailer names it: `<host>:<clone>`, or git config.

    For people: nothing is decided by it, because two containers can share host name and path.
    The second part tells clones of one host apart; it is a digest, so that no path of this
    machine gets into a commit.
    """
    configured = reader.config("orchestrator.instance")
    if configured and configured.isprintable():
        return configured[:100]
    from hashlib import sha256  # only where an in-flight sweep is looked at, or made
    from socket import gethostname

    host = "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in gethostname())
    clone = sha256(os.fsencode(os.path.realpath(reader.common_dir))).hexdigest()[:6]
    return f"{host[:60] or 'host'}:{clone}"


def merged_before_closing(site: Site, last: MergedSweep, branches: Iterable[SweepBranch]) -> bool:
    """Whether people merged `last` before its closing commit, as far as its branch still tells.

    Then its usage never reaches the default branch: worth a sentence, because nobody would guess.
    """
    if last.marker is None or last.marker.has_numbers or last.failed is not None:
        return False
    branch = next((b for b in branches if b.sweep == last.sweep), None)
    if branch is None:
        return False
    path, tip = last.sweep.marker_path, branch.refs[-1].tip
    merged, there = site.reader.entry(site.tip, path), site.reader.entry(tip, path)
    if merged is None or there is None or merged.oid != there.oid:
        return True
    return not read_history(site.reader, last.sweep, tip).closed


def backoff_of(site: Site, registration: Registration | None, now: datetime) -> Backoff | None:
    """Whether this clone waits before it tries the role's agent again; most clones never did."""
    folder = f"{state_folder(site.reader.common_dir)}/{BACKOFF_FOLDER}"
    if registration is None or not os.path.isfile(f"{folder}/{registration.role}"):
        return None
    from orchestrator.backoff import remembered

    return remembered(site.reader.common_dir, registration, now)
