"""Everything a decision rests on, as plain values. Whoever fills them in has looked; rules do not.

Facts carry `now`: the clock is read once, at the edge, and every rule sees the same instant.
"""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from orchestrator.model.config import Registration, ScheduleEntry
from orchestrator.model.marker import MarkerReading
from orchestrator.model.names import Oid, Ref, SweepName
from orchestrator.model.problem import Problem

MANUAL = "manual"
"""A marker's `trigger` when a person asked for the sweep."""


class SweepState(StrEnum):
    """What an open sweep is waiting for."""

    IN_FLIGHT = "in_flight"
    """It has an intent commit and no closing commit: an agent is, or was, at work."""
    AWAITING_REVIEW = "awaiting_review"
    """It is closed and done: a person merges or deletes it."""
    FAILED = "failed"
    """It is closed and did not complete: a person looks, then merges or deletes it."""
    UNPUBLISHED = "unpublished"
    """It exists in this clone only, while the remote lacks it."""


class Merged(StrEnum):
    """Why a branch counts as merged."""

    MARKER = "marker"
    """Its marker is on the default-branch tip: true after merge, squash and rebase alike."""
    REACHABLE = "reachable"
    """Its tip is reachable from the default-branch tip."""


class BranchRef(NamedTuple):
    """One ref of a sweep branch: local when `remote` is None, else remote-tracking."""

    name: Ref
    tip: Oid
    remote: str | None


class SweepBranch(NamedTuple):
    """A sweep that exists as a branch, here, on a remote or both.

    Attributes:
        refs: every ref it was seen under, local first.
        merged: why it counts as merged; None is open.
        state: what it waits for; None when merged.
        intent: its intent commit, when one was found.
        since: when the intent was made.
        instance: who made it (the `Instance:` trailer).
        alive: whether an agent is at work in this clone right now; None when it runs elsewhere.
        failed: the marker's `failed` line.
        release: the command that releases the role when nobody wants this sweep.
        occurrence: what its marker stands for; the end of its day when the marker cannot be read.
    """

    sweep: SweepName
    refs: tuple[BranchRef, ...]
    merged: Merged | None = None
    state: SweepState | None = None
    intent: Oid | None = None
    since: datetime | None = None
    instance: str | None = None
    alive: bool | None = None
    failed: str | None = None
    release: str | None = None
    occurrence: datetime | None = None

    @property
    def shown_ref(self) -> str:
        """The ref people know it by: the remote-tracking one where it has one."""
        remote = [r for r in self.refs if r.remote is not None]
        ref = (remote or list(self.refs))[0]
        prefix = "refs/heads/" if ref.remote is None else "refs/remotes/"
        return ref.name.removeprefix(prefix)


def release_command(branch: SweepBranch, arbiter: str | None) -> str:
    """The command that gives the sweep up, so that the role is free again."""
    name = branch.sweep.branch
    remotes = sorted({r.remote for r in branch.refs if r.remote is not None})
    commands = [f"git push {r} --delete {name}" for r in remotes if r == arbiter]
    commands += [f"git branch -rd {r}/{name}" for r in remotes if r != arbiter]
    if any(r.remote is None for r in branch.refs):
        commands.append(f"git branch -D {name}")
    return " && ".join(commands)


class MergedSweep(NamedTuple):
    """The role's newest marker on the default-branch tip, read.

    Attributes:
        at: the dispatch time the next interval counts from.
        failed: its `failed` line; a failed sweep covered nothing.
        covering_since: its own window's start, carried over by a failed one.
        unfinished: it was merged before its closing commit, so its usage stays unknown for ever.
        marker: all that was read, for those who show what it cost; rules do not ask it.
    """

    sweep: SweepName
    at: datetime
    failed: str | None = None
    covering_since: datetime | None = None
    unfinished: bool = False
    marker: MarkerReading | None = None

    @property
    def covered_until(self) -> datetime | None:
        """Where the next sweep's window starts."""
        return self.covering_since if self.failed is not None else self.at

    @property
    def by_hand(self) -> bool:
        """Whether a person asked for it: then it covers its window and moves no schedule."""
        return self.marker is not None and self.marker.trigger == MANUAL


class BrokenMarker(NamedTuple):
    """The role's newest marker on the default-branch tip cannot be used; `sweep` says which."""

    problem: Problem
    sweep: SweepName | None = None


BACKOFF_FOLDER = "backoff"
"""Below the clone's own folder: one file for each role whose agent could not be used lately."""


class Backoff(NamedTuple):
    """This clone waits before it tries the role's agent again: its service could not be used.

    Attributes:
        until: when it is tried again.
        failures: how often in a row it could not be used.
        agent: the adapter and its model.
        reason: why, one line.
    """

    until: datetime
    failures: int
    agent: str
    reason: str


class TimingSince(NamedTuple):
    """The commit since which a schedule's timing stands as it does, and its time."""

    commit: Oid
    at: datetime


class RoleFacts(NamedTuple):
    """All that is known about one role at one instant.

    Attributes:
        entry: the role's schedule, or why it cannot be read.
        registration: how it would be run, or why that cannot be said.
        estimate_usd: what SB compares with the cap, US dollars.
        estimate_source: where the estimate comes from, for evidence.
        branches: every sweep branch of the role, merged ones too, newest first.
        last: the newest merged marker; None on a role that never swept.
        today_merged: today's marker is on the default tip.
        obstacle: why today's marker could not be written on top of the default tip, if so.
        config_place: `orchestrator.yaml`, for evidence.
        config_commit: the commit the policy was read from (the default-branch tip).
        tip_name: the default branch as people write it (`origin/main`).
        remote: the remote that arbitrates; None when everything happens here.
        backoff: why this clone does not try the role's agent yet, if so.
        paced_by: the newest merged sweep that was not asked for by hand; looked up, and asked, only
            where `last` was.
        newest_occurrence: of a calendar schedule, the newest occurrence that a merged or open
            marker stands for, as far as it could matter.
        timing_since: of a calendar schedule, what last changed its timing, if that may be as late
            as the latest occurrence.
        by_hand: a person asks for this sweep now; S0 and S2 do not hold it back.
    """

    role: str
    now: datetime
    entry: ScheduleEntry | Problem
    registration: Registration | Problem
    tip: Oid
    tip_name: str
    config_place: str
    config_commit: Oid | None
    branches: tuple[SweepBranch, ...] = ()
    last: MergedSweep | BrokenMarker | None = None
    today_merged: bool = False
    obstacle: Problem | None = None
    estimate_usd: float | None = None
    estimate_source: str = ""
    remote: str | None = None
    backoff: Backoff | None = None
    paced_by: MergedSweep | BrokenMarker | None = None
    newest_occurrence: datetime | None = None
    timing_since: TimingSince | None = None
    by_hand: bool = False

    @property
    def occurrence(self) -> datetime | None:
        """The latest occurrence that is due, of a calendar schedule that nobody overrides."""
        if self.by_hand or isinstance(self.entry, Problem) or self.entry.calendar is None:
            return None
        return self.entry.calendar.latest_due(self.role, self.now)

    @property
    def today(self) -> SweepName:
        """The sweep this role would start now: of today, or of the day its occurrence is on."""
        return SweepName.on(self.role, self.occurrence or self.now)

    @property
    def paced(self) -> MergedSweep | BrokenMarker | None:
        """What the interval counts from: the newest merged sweep that was not asked for by hand."""
        newest = self.last
        by_hand = isinstance(newest, MergedSweep) and newest.by_hand
        return self.paced_by if by_hand else newest

    @property
    def open_branches(self) -> tuple[SweepBranch, ...]:
        return tuple(b for b in self.branches if b.merged is None)
