"""From a repository to facts: one `now`, one default tip, one ref listing. Changes nothing."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from orchestrator.adapters.registry import resolve
from orchestrator.errors import UsageError
from orchestrator.git.reader import SweepRef
from orchestrator.merged import Runs
from orchestrator.model.config import Config, Registration, ScheduleEntry
from orchestrator.model.names import BRANCH_FOLDER, Oid, SweepName
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.model.timing import iso
from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.policy import read_policy
from orchestrator.rules.engine import evaluate
from orchestrator.rules.facts import BrokenMarker, MergedSweep, RoleFacts
from orchestrator.rules.verdict import Action
from orchestrator.site import Settings, Site, open_site
from orchestrator.sweeps import backoff_of, merged_before_closing, read_branches


class Snapshot(NamedTuple):
    """One look at a repository: every role's facts, from the same instant and the same refs.

    Attributes:
        strays: one sentence for each open sweep of a role that is not scheduled any more.
    """

    site: Site
    now: datetime
    config: Config
    facts: Mapping[str, RoleFacts]
    strays: tuple[str, ...] = ()


def evaluate_repository(
    settings: Settings,
    now: datetime,
    *,
    roles: Sequence[str] = (),
    fetch: bool = False,
    config_ref: str | None = None,
) -> Evaluation:
    """What `explain` and `status` show; `tick` acts on the same evaluation.

    Args:
        settings: where to look.
        now: the instant the question is about (aware).
        roles: the roles asked for; none asks for all.
        fetch: ask the remote first.
        config_ref: read the policy from this revision instead of the default-branch tip.

    Raises:
        CannotLookError: nothing could be evaluated.
        UsageError: a role was asked for that has no schedule.
    """
    site = open_site(settings, fetch=fetch)
    snapshot = observe(site, now, config_ref=config_ref)
    chosen = chosen_roles(snapshot.config, roles)
    outcomes = tuple(_looked_at(site, snapshot.facts[role]) for role in chosen)
    notes = (*site.reader.notes, *snapshot.strays)
    return Evaluation(iso(now), site.info, snapshot.config, outcomes, notes=notes)


def _looked_at(site: Site, facts: RoleFacts) -> RoleOutcome:
    """The verdict on a role; of a due one also whether its agent could be started here."""
    verdict = evaluate(facts)
    if verdict.action is Action.DISPATCH and isinstance(facts.registration, Registration):
        from orchestrator.availability import doubt  # a resting look does without adapters

        warning = doubt(site, facts.registration)
        if warning is not None:
            verdict = verdict._replace(warnings=(*verdict.warnings, warning))
    return RoleOutcome(verdict, facts)


def chosen_roles(config: Config, asked: Sequence[str]) -> tuple[str, ...]:
    """The roles to look at, in file order.

    Raises:
        UsageError: a role was asked for that has no schedule, in a file that could be read.
    """
    scheduled = tuple(config.schedules)
    if not scheduled and config.errors:
        return ()
    for role in asked:
        if role not in scheduled:
            from difflib import get_close_matches  # only on the way out: it costs an import

            close = get_close_matches(role, scheduled, 1)
            hint = f"did you mean {close[0]}?" if close else "scheduled: " + ", ".join(scheduled)
            where = f"{config.path} on the default branch"
            raise UsageError(
                f'no role "{role}" is scheduled in {where}',
                hint if scheduled else f"{where} schedules nothing",
            )
    return tuple(r for r in scheduled if not asked or r in asked)


def observe(
    site: Site, now: datetime, *, config_ref: str | None = None, by_hand: bool = False
) -> Snapshot:
    """Look once: policy, sweep branches, merged markers. `by_hand`: a person asks for a sweep."""
    commit = site.tip if config_ref is None else site.reader.revision(config_ref)
    config = read_policy(site.reader, commit)
    runs = Runs(site)
    refs = site.reader.sweep_refs(site.reader.remotes())
    facts = {}
    for role, entry in config.schedules.items():
        branches = read_branches(site, [r for r in refs if r.sweep.role == role], runs.has_marker)
        last = runs.last_merged(role)
        paced_by = runs.paced_by(role, last) if isinstance(last, MergedSweep) else None
        if isinstance(last, MergedSweep) and merged_before_closing(site, last, branches):
            last = last._replace(unfinished=True)
        registration = _registration(entry, config)
        known = registration if isinstance(registration, Registration) else None
        found = RoleFacts(
            role=role,
            now=now,
            entry=entry,
            registration=registration,
            tip=site.tip,
            tip_name=site.tip_name,
            config_place=config.path,
            config_commit=config.commit,
            branches=branches,
            last=last,
            remote=site.remote_name,
            estimate_usd=known.estimate_usd if known else None,
            estimate_source=known.source if known else "",
            backoff=None if by_hand else backoff_of(site, known, now),
            paced_by=paced_by,
            by_hand=by_hand,
        )
        facts[role] = _dated(site, runs, commit, found)
    others = [r for r in refs if r.sweep.role not in config.schedules]
    return Snapshot(site, now, config, facts, _strays(site, others, runs))


def _strays(site: Site, refs: Sequence[SweepRef], runs: Runs) -> tuple[str, ...]:
    """Open sweeps that no verdict speaks of, because their role is gone from the policy."""
    unmerged = [r for r in refs if not runs.has_marker(r.sweep)]
    return tuple(
        f"{branch.shown_ref} is open ({branch.state}), but {branch.sweep.role} is not scheduled: "
        f"merge it, or give it up with: {branch.release}"
        for branch in read_branches(site, unmerged, runs.has_marker)
        if branch.merged is None
    )


def _dated(site: Site, runs: Runs, commit: Oid, facts: RoleFacts) -> RoleFacts:
    """What depends on which day's sweep it would be: a calendar schedule says so by its occurrence.

    What last changed its timing is only asked when the occurrence is not swept, because it is the
    one question whose answer takes a walk through history.
    """
    latest, entry = facts.occurrence, facts.entry
    if latest is not None and isinstance(entry, ScheduleEntry):
        merged = list(runs.since(facts.role, latest.astimezone(UTC).date()))
        broken = next((m for m in merged if isinstance(m, BrokenMarker)), None)
        swept = [m.marker.occurrence for m in merged if isinstance(m, MergedSweep) and m.marker]
        swept += [b.occurrence for b in facts.open_branches]
        newest = max((o for o in swept if o is not None), default=None)
        since = None
        if newest is None or newest < latest:
            from orchestrator.policyhistory import timing_since  # only such schedules, when due

            since = timing_since(site.reader, commit, entry, latest)
        facts = facts._replace(
            newest_occurrence=newest, timing_since=since, paced_by=broken or facts.paced_by
        )
    today = facts.today
    return facts._replace(today_merged=runs.has_marker(today), obstacle=_obstacle(site, today))


def _registration(entry: ScheduleEntry | Problem, config: Config) -> Registration | Problem:
    if isinstance(entry, Problem):
        return entry  # never asked: an entry that cannot be read comes before all rules
    return resolve(entry, config.roles, path=config.path, commit=config.commit)


def _obstacle(site: Site, today: SweepName) -> Problem | None:
    """What would keep today's marker or branch from being written at all."""
    if site.run_branch is not None:
        return Problem(
            ErrorCode.REFUSED,
            f"a branch called {BRANCH_FOLDER} exists {site.run_branch}, so git cannot hold any "
            f"branch {BRANCH_FOLDER}/<slug> there",
            f"rename it: git branch -m {BRANCH_FOLDER} NEW-NAME (and on the remote too)",
        )
    folder = site.reader.entry(site.tip, today.folder)
    if folder is not None and folder.kind != "tree":
        return Problem(
            ErrorCode.MARKER_ERROR,
            f"{today.folder} on {site.tip_name} is not a folder, so its marker has no place",
            f"remove {today.folder} on {site.tip_name}",
            path=today.folder,
            commit=site.tip,
        )
    return None
