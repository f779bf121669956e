"""The closing: what the agent did and cost reaches the branch, whatever happened to it meanwhile.

The order makes a crash at any point safe. The closing commit is stored, a private ref
(`refs/orchestrator/closing/<slug>`) pins it, the local branch moves to it, and only then is it
pushed. Whoever finds the private ref later pushes again; it goes when the remote has the commit.

Nobody's work is dropped: a commit a person pushed to the branch stays, and ours goes on top of it
as a merge, so that even a file both changed keeps both versions in the history. A branch that was
deleted meanwhile is made again, because it says what was spent.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from orchestrator.errors import OrchestratorError, RemoteUnreachableError, WriteFailedError
from orchestrator.git.objects import mode_of
from orchestrator.git.reader import Identity, Reader
from orchestrator.git.wire import Remote
from orchestrator.git.writer import RefBlockedError, TreeChange, Writer
from orchestrator.model.marker import Marker
from orchestrator.model.names import Oid, Ref, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, Usage
from orchestrator.published import finish_publishing
from orchestrator.record import closing_message, marker_change, work_message
from orchestrator.site import Site
from orchestrator.sweeps import pending_ref

_ATTEMPTS = 5
_LOCK_WAITS = 50
_LOCK_WAIT_SECONDS = 0.2


_UNCHANGED: Mapping[str, TreeChange | None] = MappingProxyType({})


class NotLandedError(OrchestratorError):
    """The remote would not take the closing commit; it stays here, pinned, and is tried again."""


class Finished(NamedTuple):
    """How a run ended, ready to be recorded.

    Attributes:
        failed: one line, secrets masked and cut; None when it completed.
        changes: what the agent changed and may change, by path.
        left_out: what it changed and may not, with the reason of each.
    """

    status: Status
    usage: Usage = UNKNOWN_USAGE
    failed: str | None = None
    changes: Mapping[str, TreeChange | None] = _UNCHANGED
    left_out: Sequence[tuple[str, str]] = ()


class Opened(NamedTuple):
    """The sweep as its branch knows it: what a closing needs of a claim, or of an orphan."""

    marker: Marker
    intent: Oid
    dispatch_id: str | None
    instance: str

    @property
    def sweep(self) -> SweepName:
        return self.marker.sweep


class Closed(NamedTuple):
    """The closing commit, and whether it reached the place people review (the remote, if any)."""

    commit: Oid
    published: bool
    note: str | None = None


class Closer:
    """Writes one sweep's work and closing commits and lands them on its branch."""

    def __init__(
        self, site: Site, writer: Writer, opened: Opened, identity: Identity, now: datetime
    ) -> None:
        self._site = site
        self._writer = writer
        self._opened = opened
        self._identity = identity
        self._now = now

    def close(self, finished: Finished) -> Closed:
        """Record `finished` and land it.

        Raises:
            WriteFailedError: the commits could not be stored; the branch is left in flight.
        """
        return self._land(finished, self._work(finished), self._opened.intent)

    def republish(self, finished: Finished, closing: Oid, theirs: Oid) -> Closed:
        """Land an earlier closing commit on top of what others put on the branch since."""
        return self._land(finished, closing, theirs)

    def _land(self, finished: Finished, work: Oid, top: Oid) -> Closed:
        closing = self._closing(finished, work, top)
        self._pin(closing)
        if self._site.remote is None:
            return self._land_locally(finished, work, closing, top)
        self._move_local(closing)
        try:
            closing = self._land_remotely(self._site.remote, finished, work, closing, top)
        except (RemoteUnreachableError, NotLandedError) as error:
            return Closed(closing, published=False, note=error.message)
        with suppress(WriteFailedError):  # the pin is then still there, and the next tick tidies up
            finish_publishing(self._site, self._writer, self._opened.sweep, closing, there=closing)
        return Closed(closing, published=True)

    def give_up(self, finished: Finished) -> Oid | None:
        """Close a sweep nobody works on, if its branch is still where it was read.

        This closing is a guess, so it yields to everybody: it goes on top of nothing it has not
        seen, makes no deleted branch again, and is pinned nowhere. None: the branch has moved or
        is gone, or the remote did not take it; then the next tick looks again.

        Raises:
            RemoteUnreachableError: the remote cannot be asked whether it took it.
            WriteFailedError: the commit could not be stored, or a lock is in the way.
        """
        tip, remote = self._opened.intent, self._site.remote
        closing = self._closing(finished, tip, tip)
        ref = self._opened.sweep.local_ref
        if remote is None:
            landed = self._writer.move_ref(ref, closing, tip, "sweep: closing")
            return closing if landed else None
        outcome = remote.update(closing, ref, tip)
        if outcome.flag not in (" ", "+") and remote.ls(ref).get(ref) != closing:
            return None
        with suppress(WriteFailedError):
            self._writer.set_tracking(self._opened.sweep.tracking_ref(remote.name), closing)
        return closing

    def _work(self, finished: Finished) -> Oid:
        """The work commit on the intent, or the intent itself when nothing came back."""
        opened, changes = self._opened, finished.changes
        if not changes:
            return opened.intent
        tree = self._writer.tree(opened.intent, changes)
        if tree == self._site.reader.commit(opened.intent).tree:
            return opened.intent
        text = work_message(opened.sweep, opened.dispatch_id or "-", opened.instance, len(changes))
        return self._writer.commit(tree, [opened.intent], text, self._identity, self._now)

    def _closing(self, finished: Finished, work: Oid, top: Oid) -> Oid:
        """The closing commit on the work commit, or on top of what others put on the branch."""
        opened = self._opened
        marker = opened.marker.closed(finished.usage, finished.failed)
        changes: dict[str, TreeChange | None] = dict(marker_change(self._writer, marker))
        kept_theirs: tuple[str, ...] = ()
        if top == opened.intent:
            base, parents = work, [work]
        else:
            base, parents = top, [top, work] if work != opened.intent else [top]
            ours, kept_theirs = carry_over(
                self._site.reader, opened.intent, work, top, leave=opened.sweep.marker_path
            )
            changes = {**ours, **changes}
        text = closing_message(
            opened.sweep,
            dispatch_id=opened.dispatch_id,
            instance=opened.instance,
            status=finished.status,
            usage=finished.usage,
            failed=finished.failed,
            left_out=finished.left_out,
            kept_theirs=kept_theirs,
        )
        tree = self._writer.tree(base, changes)
        return self._writer.commit(tree, parents, text, self._identity, self._now)

    def _pin(self, closing: Oid) -> None:
        ref = pending_ref(self._opened.sweep)
        current = self._site.reader.resolve(ref)
        if current is None:
            self._writer.create_ref(ref, closing, "sweep: closing")
        else:
            self._writer.move_ref(ref, closing, current, "sweep: closing")

    def _move_local(self, closing: Oid) -> None:
        """With a remote the local branch is only our own reminder: moved if it is still ours."""
        ref = self._opened.sweep.local_ref
        if ref in self._site.reader.worktree_branches():
            return
        try:
            self._writer.move_ref(ref, closing, self._opened.intent, "sweep: closing")
        except RefBlockedError:
            return  # the private ref holds the commit; the branch is not needed

    def _land_remotely(
        self, remote: Remote, finished: Finished, work: Oid, closing: Oid, expected: Oid
    ) -> Oid:
        ref = self._opened.sweep.local_ref
        for _ in range(_ATTEMPTS):
            outcome = remote.update(closing, ref, expected)
            if outcome.flag in (" ", "+"):
                return closing
            there = remote.ls(ref).get(ref)
            if there == closing:
                return closing
            if there is None:
                if remote.create(closing, ref).flag == "*":
                    return closing
                continue
            if there == expected and outcome.answered:
                words = "; ".join((*outcome.server, outcome.reason)).strip("; ")
                raise NotLandedError(f"{remote.name} refused the closing commit: {words}")
            remote.fetch_ref(ref)
            expected = there
            closing = self._closing(finished, work, there)
            self._pin(closing)
        raise NotLandedError(f"{self._opened.sweep.branch} on {remote.name} keeps moving")

    def _land_locally(self, finished: Finished, work: Oid, closing: Oid, expected: Oid) -> Closed:
        ref = self._opened.sweep.local_ref
        for _ in range(_LOCK_WAITS):
            try:
                if self._writer.move_ref(ref, closing, expected, "sweep: closing"):
                    break
                there = self._site.reader.resolve(ref)
                if there is None:
                    if self._writer.create_ref(ref, closing, "sweep: closing"):
                        break
                    continue
            except RefBlockedError:
                time.sleep(_LOCK_WAIT_SECONDS)
                continue
            expected = there
            closing = self._closing(finished, work, there)
            self._pin(closing)
        else:
            return Closed(closing, published=False, note=f"{ref} is locked by another process")
        self._writer.delete_ref(pending_ref(self._opened.sweep), closing)
        return Closed(closing, published=True, note=self._checked_out_note(ref))

    def _checked_out_note(self, ref: Ref) -> str | None:
        where = self._site.reader.worktree_branches().get(ref)
        if where is None:
            return None
        return (
            f"{self._opened.sweep.branch} is checked out in {where} and moved on: "
            f"git -C {where} reset --keep brings its files up to date"
        )


def carry_over(
    reader: Reader, base: Oid, ours: Oid, theirs: Oid, *, leave: str
) -> tuple[dict[str, TreeChange | None], tuple[str, ...]]:
    """What changed from `base` to `ours`, as changes to make on `theirs`.

    Returns:
        The changes, and the paths both sides changed differently: there theirs is kept. `leave`
        is a path to take no part in this.
    """
    changes: dict[str, TreeChange | None] = {}
    kept = []
    for path in reader.changed_paths(base, ours):
        mine, there = reader.entry(ours, path), reader.entry(theirs, path)
        if path == leave or mine == there:
            continue
        if there == reader.entry(base, path):
            changes[path] = None if mine is None else TreeChange(mine.oid, mode_of(mine.kind))
        else:
            kept.append(path)
    return changes, tuple(kept)
