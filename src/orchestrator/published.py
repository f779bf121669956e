"""After a closing commit has reached the remote: what this clone kept of the sweep goes."""

from orchestrator.git.porcelain import trailers
from orchestrator.git.reader import Reader
from orchestrator.git.writer import Writer
from orchestrator.model.names import Oid, SweepName
from orchestrator.site import Site
from orchestrator.sweeps import CLOSING, DISPATCH_ID, PHASE, SWEEP, pending_ref


def finish_publishing(
    site: Site, writer: Writer, sweep: SweepName, closing: Oid, *, there: Oid | None
) -> None:
    """The remote had the closing commit: a sweep has one home, so what was kept here goes.

    `there` is the branch's tip on the remote now, None when it was deleted since. A local branch
    that somebody checked out, or put commits on, is theirs and stays. The pin goes last.
    """
    remote = site.remote_name
    if remote is not None:
        writer.set_tracking(sweep.tracking_ref(remote), there)
    ref = sweep.local_ref
    local = site.reader.resolve(ref)
    checked_out = ref in site.reader.worktree_branches()
    if local is not None and not checked_out and _is_ours(site.reader, sweep, local, closing):
        writer.delete_ref(ref, local)
    writer.delete_ref(pending_ref(sweep), closing)


def _is_ours(reader: Reader, sweep: SweepName, local: Oid, closing: Oid) -> bool:
    """Whether the local branch holds nothing but what the closing tells as well.

    An earlier closing of the same dispatch does: this one was made anew on top of other people's
    commits, and is no descendant of that.
    """
    if local == closing or reader.is_ancestor(local, closing):
        return True
    mine, landed = (trailers(reader.commit(oid).message) for oid in (local, closing))
    return (
        mine.get(SWEEP) == sweep.slug
        and mine.get(PHASE) == CLOSING
        and mine.get(DISPATCH_ID) is not None
        and mine.get(DISPATCH_ID) == landed.get(DISPATCH_ID)
    )
