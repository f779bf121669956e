"""Did a crash leave anything? A question every tick asks, so it is a cheap one.

The answer only decides whether `orchestrator.recover` takes a closer look; it changes nothing.
"""

import os

from orchestrator.locks import signed_slugs
from orchestrator.model.names import BRANCH_FOLDER
from orchestrator.observe import Snapshot
from orchestrator.rules.facts import SweepState
from orchestrator.site import Site
from orchestrator.sweeps import CLOSING_REFS

PACKED_LOCK = "packed-refs.lock"
"""Taken by every deletion of a ref."""


def is_anything_left(snapshot: Snapshot) -> bool:
    """Whether a run of this clone ended without tidying up, an open sweep may be an orphan, a
    closing commit is pinned, or a lock file stands.
    """
    open_sweeps = (b for facts in snapshot.facts.values() for b in facts.open_branches)
    if any(b.state in (SweepState.IN_FLIGHT, SweepState.UNPUBLISHED) for b in open_sweeps):
        return True
    site = snapshot.site
    if signed_slugs(site.reader.common_dir) or lock_paths(site):
        return True
    return bool(site.reader.refs_below(CLOSING_REFS))


def lock_paths(site: Site) -> list[str]:
    """The lock files beside our refs, below the common directory, by what their folders hold."""
    folders = [f"refs/heads/{BRANCH_FOLDER}", CLOSING_REFS.rstrip("/")]
    if site.remote_name is not None:
        folders.append(f"refs/remotes/{site.remote_name}/{BRANCH_FOLDER}")
    found = [f"{folder}/{name}" for folder in folders for name in _locks_in(site, folder)]
    single = (f"{site.tip_ref}.lock", PACKED_LOCK)
    found += [path for path in single if os.path.lexists(f"{site.reader.common_dir}/{path}")]
    return found


def _locks_in(site: Site, folder: str) -> list[str]:
    try:
        names = os.listdir(f"{site.reader.common_dir}/{folder}")
    except OSError:  # every ref of it is packed, or there is none
        return []
    return [name for name in names if name.endswith(".lock")]
