"""Did a crash leave anything? A question every tick asks, so it is a cheap one.

The answer only decides whether `orchestrator.recover` takes a closer look; it changes nothing.
"""

import os

from orchestrator.observe import Snapshot
from orchestrator.rules.facts import SweepState

CLOSING_REFS = "refs/orchestrator/closing/"
"""Private refs that pin closing commits until the remote has them, one a slug."""


def is_anything_left(snapshot: Snapshot) -> bool:
    """Whether an open sweep may be an orphan, a closing commit is pinned, or a lock file stands."""
    open_sweeps = (b for facts in snapshot.facts.values() for b in facts.open_branches)
    if any(b.state in (SweepState.IN_FLIGHT, SweepState.UNPUBLISHED) for b in open_sweeps):
        return True
    site = snapshot.site
    if any(os.path.lexists(f"{site.reader.common_dir}/{ref}.lock") for ref in _our_refs(snapshot)):
        return True
    return bool(site.reader.refs_below(CLOSING_REFS))


def _our_refs(snapshot: Snapshot) -> set[str]:
    refs = {r.name for f in snapshot.facts.values() for b in f.branches for r in b.refs}
    today = {f.today.local_ref for f in snapshot.facts.values()}
    return {snapshot.site.tip_ref, *refs, *today}
