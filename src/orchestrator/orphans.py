"""Sweeps in flight that nobody works on any more, and what runs of this clone left behind.

Whether a run was ours is not asked of any name: its lock file is signed with its dispatch, and is
free because the kernel let go of it. Everything is read again under that lock, so that a run which
just ended well is never taken for one that was interrupted.
"""

import os
from collections.abc import Mapping

from orchestrator.closing import Closer, Finished
from orchestrator.errors import WriteFailedError
from orchestrator.locks import (
    FileLock,
    Signature,
    acquire,
    is_held,
    signatures_at,
    signed_slugs,
    sweep_lock_path,
)
from orchestrator.model.config import Registration
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.model.timing import elapsed_ms, iso
from orchestrator.recover import Mender, opened_again
from orchestrator.rules.facts import RoleFacts, SweepBranch, SweepState
from orchestrator.sweeps import History, instance_name, marker_at, pending_ref, read_history
from orchestrator.withdraw import withdraw

_DAY_MS = 86_400_000
_ON_ITS_WAY_S = 600.0
"""How long a push may live on after the tick that started it was killed."""
_LONGEST_S = 86_400.0
"""Assumed time limit of a role whose registration cannot be read."""


def close_orphans(mender: Mender, facts: Mapping[str, RoleFacts]) -> tuple[str, ...]:
    """Settle what runs of this clone left, then close other open sweeps nobody works on any more.

    Returns:
        One sentence for each thing that was put right, or that could not be.

    Raises:
        RemoteUnreachableError: the remote stopped answering half way; nothing is lost.
    """
    said = []
    for slug in signed_slugs(mender.site.reader.common_dir):
        sweep = SweepName.from_slug(slug)
        if sweep is not None:
            said.append(_settled(mender, sweep))
    for role_facts in facts.values():
        for branch in role_facts.open_branches:
            if branch.state in (SweepState.IN_FLIGHT, SweepState.UNPUBLISHED):
                sentence = _others(mender, role_facts, branch)
                said.append(sentence)
    return tuple(sentence for sentence in said if sentence is not None)


# -- a run of this clone -------------------------------------------------------------------------


def _settled(mender: Mender, sweep: SweepName) -> str | None:
    lock = acquire(sweep_lock_path(mender.site.reader.common_dir, sweep.slug))
    if lock is None:
        return None  # at work
    done = False
    try:
        sentence, done = _settle(mender, sweep, lock)
    except WriteFailedError as error:
        sentence = f"{sweep.branch} waits: {error.message}"
    finally:
        lock.release(remove=done)
    return sentence


def _settle(mender: Mender, sweep: SweepName, lock: FileLock) -> tuple[str | None, bool]:
    """What was done, and whether everything of the run is in order now."""
    site = mender.site
    signed = {s.dispatch_id: s for s in lock.signatures()}
    if not signed:
        return None, True  # killed before it signed, so before it claimed anything
    for signature in signed.values():
        _end_run(mender, sweep, signature)
    if site.reader.resolve(pending_ref(sweep)) is not None:
        return None, False  # its closing commit is pinned and waits for its branch
    if site.remote is not None and not site.fetched:
        return None, False
    ref = sweep.local_ref if site.remote is None else sweep.tracking_ref(site.remote.name)
    there = site.reader.resolve(ref)
    history = read_history(site.reader, sweep, there) if there is not None else None
    ours = signed.get((history and history.dispatch_id) or "")
    if history is None or history.closed or ours is None:
        # A push outlives the tick that was killed: what it claimed may be there in a moment.
        waits = not all(s.launched for s in signed.values()) and lock.signed_s_ago() < _ON_ITS_WAY_S
        return _forget_local(mender, sweep, signed, gone=there is None), not waits
    if not ours.launched and history.tip == history.intent:
        return _withdrawn(mender, sweep, history.tip)
    failed = "interrupted: the tick that ran it ended before the agent did"
    sentence = _close(mender, history, sweep, failed, Status.INTERRUPTED)
    if sentence is None:
        return None, False
    _forget_local(mender, sweep, signed, gone=False)
    return sentence, True


def _end_run(mender: Mender, sweep: SweepName, signed: Signature) -> None:
    """End what the run left running on this machine, and remove its working copy."""
    from pathlib import Path  # only after a crash, as the rest of these

    from orchestrator.adapters.process import kill_leftovers
    from orchestrator.availability import work_root
    from orchestrator.folders import remove_tree

    if not signed.launched:
        return
    kill_leftovers(signed.dispatch_id)
    remove_tree(Path(os.path.join(work_root(mender.site), f"{sweep.slug}-{signed.dispatch_id}")))


def _withdrawn(mender: Mender, sweep: SweepName, intent: Oid) -> tuple[str | None, bool]:
    """A claim whose agent was never started: given back, so that nobody has to look at it."""
    remote = mender.site.remote
    if remote is None:
        gone = mender.writer.delete_ref(sweep.local_ref, intent)
    else:
        gone = withdraw(remote, mender.writer, sweep, intent)
    return (f"withdrew {sweep.branch}: its agent was never started" if gone else None), gone


def _forget_local(
    mender: Mender, sweep: SweepName, signed: Mapping[str, Signature], *, gone: bool
) -> str | None:
    """With a remote, the local branch a run left is of no use once the remote tells the story.

    Only if it is still what the run made, and nobody checked it out.
    """
    site, ref = mender.site, sweep.local_ref
    local = site.reader.resolve(ref)
    if site.remote is None or local is None or ref in site.reader.worktree_branches():
        return None
    history = read_history(site.reader, sweep, local)
    if history.dispatch_id not in signed or history.intent != local:
        return None
    if not mender.writer.delete_ref(ref, local):
        return None
    return f"dropped {sweep.branch}: {site.remote.name} does not have it" if gone else None


# -- anybody's -----------------------------------------------------------------------------------


def _others(mender: Mender, facts: RoleFacts, branch: SweepBranch) -> str | None:
    """A sweep in flight that no lock of this clone speaks of."""
    site, sweep = mender.site, branch.sweep
    path = sweep_lock_path(site.reader.common_dir, sweep.slug)
    if is_held(path) or site.reader.resolve(pending_ref(sweep)) is not None:
        return None
    shared = next((r for r in branch.refs if r.remote and r.remote == site.remote_name), None)
    tip = site.reader.resolve((shared or branch.refs[0]).name)
    history = read_history(site.reader, sweep, tip) if tip is not None else None
    if history is None or history.closed or history.intent is None:
        return None
    if any(s.dispatch_id == history.dispatch_id for s in signatures_at(path)):
        return None  # settled just now, or it waits for the remote
    try:
        if site.remote is None:
            return _interrupted_here(mender, sweep, history)
        if shared is None:
            return _never_arrived(mender, branch, history)
        return _abandoned(mender, facts, sweep, history)
    except WriteFailedError as error:
        return f"{sweep.branch} waits: {error.message}"


def _interrupted_here(mender: Mender, sweep: SweepName, history: History) -> str | None:
    """Without a remote every sweep is this repository's, and nobody holds this one's lock."""
    if history.dispatch_id is not None:
        from orchestrator.adapters.process import kill_leftovers  # only after a crash

        kill_leftovers(history.dispatch_id)
    failed = "interrupted: nobody works on it in this repository"
    return _close(mender, history, sweep, failed, Status.INTERRUPTED)


def _never_arrived(mender: Mender, branch: SweepBranch, history: History) -> str | None:
    """An intent of this instance the remote does not have: nobody else will ever close it."""
    site = mender.site
    local = branch.refs[0]
    if not site.fetched or any(r.remote is not None for r in branch.refs):
        return None
    made_here = history.instance == instance_name(site.reader)  # a reviewer's copy is not
    if not made_here or local.tip != history.intent:
        return None
    if local.name in site.reader.worktree_branches():
        return None
    if not mender.writer.delete_ref(local.name, local.tip):
        return None
    return f"dropped {branch.sweep.branch}: its claim never reached {site.remote_name}"


def _abandoned(mender: Mender, facts: RoleFacts, sweep: SweepName, history: History) -> str | None:
    """Somebody else's sweep, past its role's time limit plus a day."""
    if history.since is None or not mender.site.fetched:
        return None
    known = facts.registration
    limit_s = known.timeout_s if isinstance(known, Registration) else _LONGEST_S
    if elapsed_ms(history.since, mender.now) <= int(limit_s * 1000) + _DAY_MS:
        return None
    failed = f"abandoned: in flight since {iso(history.since)} by {history.instance}"
    return _close(mender, history, sweep, failed, Status.FAILED)


def _close(
    mender: Mender, history: History, sweep: SweepName, failed: str, status: Status
) -> str | None:
    reading = marker_at(mender.site.reader, history.tip, sweep)
    if reading is None or history.intent is None:
        return None
    opened = opened_again(mender, reading, history)
    closer = Closer(mender.site, mender.writer, opened, mender.identity, mender.now)
    if closer.give_up(Finished(status, failed=failed)) is None:
        return None
    return f"closed {sweep.branch} as failed: {failed.partition(':')[0]}"
