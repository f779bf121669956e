"""One window, everything the page says about it, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.adapters.builtin.findings import Finding
from orchestrator.adapters.builtin.mend import Mending


@dataclass(frozen=True, slots=True)
class CommitLine:
    """A commit as the page names it.

    Attributes:
        short: the first ten digits of its id.
        date: the committer's day, UTC, `YYYY-MM-DD`.
        subject: as committed, not yet made printable.
    """

    short: str
    date: str
    subject: str


@dataclass(frozen=True, slots=True)
class MergedRun:
    """A folder below `runs/` that is not a sweep's own.

    Attributes:
        files: its files, relative to it, sorted.
        commit: what merged it; None when that was not looked for (a first sweep).
    """

    name: str
    files: tuple[str, ...]
    commit: CommitLine | None


@dataclass(frozen=True, slots=True)
class Stale:
    """A document that did not change while files it names did.

    Attributes:
        files: (path, number of commits of the window that changed it), most changed first.
    """

    document: str
    files: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """Sizes of the window: first-parent commits, and files by what happened to them."""

    commits: int = 0
    added: int = 0
    deleted: int = 0
    renamed: int = 0
    modified: int = 0

    @property
    def files(self) -> int:
        return self.added + self.deleted + self.renamed + self.modified


@dataclass(frozen=True, slots=True)
class Delta:
    """What one sweep found and did.

    Attributes:
        start: the window's first commit (not in the window itself); None on a first sweep.
        editing: whether the edits are made by this run or only proposed (an agent's findings).
        notes: sentences about what limits the window or the reading of it.
        causes: finding -> the commit of the window that did it.
        unmentioned: runs of the window that no document mentions.
        old_breakage: links that resolve neither at the start nor at the end.
        unread: documents that were left out -> why.
    """

    slug: str
    base: CommitLine
    start: CommitLine | None
    covering_since: datetime | None
    editing: bool
    counts: Counts
    runs: tuple[MergedRun, ...]
    sweeps: int
    mending: Mending
    causes: Mapping[Finding, CommitLine]
    stale: tuple[Stale, ...]
    unmentioned: tuple[str, ...]
    old_breakage: int
    documents: int
    notes: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Nothing changed in the window, so there was nothing to reconcile."""
        return self.start is not None and not self.counts.files
