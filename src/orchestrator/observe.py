"""From a repository to facts: one `now`, one default tip, one ref listing. Changes nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from orchestrator.adapters.registry import resolve
from orchestrator.configfile import read_config, refused
from orchestrator.errors import UsageError
from orchestrator.git.reader import Entry, Reader
from orchestrator.markerfile import MarkerError, read_marker
from orchestrator.model.config import Config, Registration, ScheduleEntry
from orchestrator.model.names import (
    BRANCH_FOLDER,
    CONFIG_PATH,
    RUNS_FOLDER,
    Oid,
    SweepName,
)
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.model.timing import iso
from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.rules.engine import evaluate
from orchestrator.rules.facts import BrokenMarker, MergedSweep, RoleFacts
from orchestrator.site import Settings, Site, open_site
from orchestrator.sweeps import backoff_of, merged_before_closing, read_branches

MAX_FILE_BYTES = 64 * 1024
_FILE_KINDS = ("blob", "executable")
_WHAT = {"tree": "a folder", "symlink": "a symbolic link", "gitlink": "a submodule"}


class Snapshot(NamedTuple):
    """One look at a repository: every role's facts, from the same instant and the same refs."""

    site: Site
    now: datetime
    config: Config
    facts: Mapping[str, RoleFacts]


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
    outcomes = tuple(
        RoleOutcome(evaluate(snapshot.facts[role]), snapshot.facts[role])
        for role in chosen_roles(snapshot.config, roles)
    )
    return Evaluation(iso(now), site.info, snapshot.config, outcomes, notes=site.reader.notes)


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


def observe(site: Site, now: datetime, *, config_ref: str | None = None) -> Snapshot:
    """Look once: policy, sweep branches, merged markers."""
    commit = site.tip if config_ref is None else site.reader.revision(config_ref)
    config = read_policy(site.reader, commit)
    runs = _Runs(site)
    refs = site.reader.sweep_refs(site.reader.remotes())
    facts = {}
    for role, entry in config.schedules.items():
        branches = read_branches(site, [r for r in refs if r.sweep.role == role], runs.has_marker)
        last = runs.last_merged(role)
        if isinstance(last, MergedSweep) and merged_before_closing(site, last, branches):
            last = last._replace(unfinished=True)
        registration = _registration(entry, config)
        known = registration if isinstance(registration, Registration) else None
        facts[role] = RoleFacts(
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
            today_merged=runs.has_marker(SweepName.on(role, now)),
            obstacle=_obstacle(site, SweepName.on(role, now)),
            remote=site.remote_name,
            estimate_usd=known.estimate_usd if known else None,
            estimate_source=known.source if known else "",
            backoff=backoff_of(site, known, now),
        )
    return Snapshot(site, now, config, facts)


def read_policy(reader: Reader, commit: Oid) -> Config:
    """Read `orchestrator.yaml` from a commit, never from a checkout.

    Raises:
        MissingObjectError: a partial clone lacks the file and nothing may be fetched now.
    """
    entry = reader.entry(commit, CONFIG_PATH)
    if entry is None:
        return read_config(None, commit=commit)
    if entry.kind not in _FILE_KINDS:
        return refused(
            f"{CONFIG_PATH} is {_WHAT[entry.kind]}, but must be a plain file",
            "commit the file itself at that path",
            path=CONFIG_PATH,
            commit=commit,
        )
    if entry.size is not None and entry.size > MAX_FILE_BYTES:
        return refused(
            f"{CONFIG_PATH} is {entry.size:,} bytes long, more than the {MAX_FILE_BYTES:,} allowed",
            "a policy needs a few lines a role; was another file committed at that path?",
            path=CONFIG_PATH,
            commit=commit,
        )
    return read_config(reader.read_blob(entry.oid, MAX_FILE_BYTES), commit=commit)


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


class _Runs:
    """The `runs` folder on the default tip: which slugs have a marker, and each role's newest."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = site.reader
        self._folder = self._reader.entry(site.tip, RUNS_FOLDER)
        self._by_role: dict[str, list[SweepName]] | None = None
        self._entries: dict[SweepName, Entry | None] = {}

    def has_marker(self, sweep: SweepName) -> bool:
        entry = self._marker_entry(sweep)
        return entry is not None and entry.kind in _FILE_KINDS

    def last_merged(self, role: str) -> MergedSweep | BrokenMarker | None:
        """The role's newest slug that has a marker; only that one is read."""
        if self._folder is not None and self._folder.kind != "tree":
            return BrokenMarker(
                self._problem(
                    RUNS_FOLDER,
                    f"{RUNS_FOLDER} on {self._site.tip_name} is {self._kind(self._folder)}, so no "
                    "marker can be read or written",
                    f"make {RUNS_FOLDER} a folder on {self._site.tip_name}",
                )
            )
        for sweep in self._sweeps(role):
            entry = self._marker_entry(sweep)
            if entry is not None:
                return self._read(sweep, entry)
        return None

    def _sweeps(self, role: str) -> list[SweepName]:
        if self._by_role is None:
            self._by_role = {}
            for name, kind in self._reader.names(self._site.tip, RUNS_FOLDER):
                sweep = SweepName.from_slug(name) if kind == "tree" else None
                if sweep is not None:
                    self._by_role.setdefault(sweep.role, []).append(sweep)
        return sorted(self._by_role.get(role, []), key=lambda s: s.date, reverse=True)

    def _marker_entry(self, sweep: SweepName) -> Entry | None:
        if sweep not in self._entries:
            self._entries[sweep] = self._reader.entry(self._site.tip, sweep.marker_path)
        return self._entries[sweep]

    def _read(self, sweep: SweepName, entry: Entry) -> MergedSweep | BrokenMarker:
        place = f"on {self._site.tip_name}"
        path = sweep.marker_path
        if entry.kind not in _FILE_KINDS:
            return self._broken(sweep, f"{path} {place} is {self._kind(entry)}, not a plain file")
        if entry.size is not None and entry.size > MAX_FILE_BYTES:
            long = f"{entry.size:,} bytes long, more than the {MAX_FILE_BYTES:,} allowed"
            return self._broken(sweep, f"{path} {place} is {long}")
        try:
            reading = read_marker(self._reader.read_blob(entry.oid, MAX_FILE_BYTES), sweep)
        except MarkerError as error:
            return self._broken(sweep, f"{path} {place}: {error.message}", error.line, error.column)
        return MergedSweep(
            sweep=sweep,
            at=reading.at,
            failed=reading.failed,
            covering_since=reading.covering_since,
            marker=reading,
        )

    def _broken(
        self, sweep: SweepName, message: str, line: int | None = None, column: int | None = None
    ) -> BrokenMarker:
        hint = f"mend {sweep.marker_path} on {self._site.tip_name}; the role waits until then"
        return BrokenMarker(
            self._problem(sweep.marker_path, message, hint, line=line, column=column), sweep
        )

    def _problem(
        self,
        path: str,
        message: str,
        hint: str,
        *,
        line: int | None = None,
        column: int | None = None,
    ) -> Problem:
        return Problem(
            ErrorCode.MARKER_ERROR,
            message,
            hint,
            path=path,
            commit=self._site.tip,
            line=line,
            column=column,
        )

    @staticmethod
    def _kind(entry: Entry) -> str:
        return _WHAT.get(entry.kind, "a file")
