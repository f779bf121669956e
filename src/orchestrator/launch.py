"""The launch: a claimed sweep's agent runs in a private copy; its changes come back as data.

Nothing the agent can write is ever trusted: its copy shares objects only, its HOME is its own, and
its changes are read file by file, checked path by path, and stored through our own object database.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from orchestrator.adapters.base import Ending, Plan, Probe, ProcessResult, Report, Request
from orchestrator.adapters.builtin import page_plan
from orchestrator.adapters.process import run_agent
from orchestrator.adapters.registry import adapter
from orchestrator.availability import operator_of, work_root
from orchestrator.claim import Claim, Claimant
from orchestrator.closing import Finished
from orchestrator.dispatch import failed_line
from orchestrator.folders import private_folder, remove_tree
from orchestrator.git.harvest import HarvestError, harvest
from orchestrator.git.history import History
from orchestrator.git.porcelain import trailers
from orchestrator.git.reader import Reader
from orchestrator.git.workcopy import workcopy
from orchestrator.locks import state_folder
from orchestrator.model.config import Registration
from orchestrator.model.names import RUNS_FOLDER, Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.prompt import build, instructions
from orchestrator.stop import StopFlag
from orchestrator.sweeps import INTENT, PHASE, SWEEP

_PAGE_TIMEOUT_S = 600.0
_MECHANICAL = {"max_files": 100_000, "max_bytes": 1_000_000_000}
"""The embedded historian's edits are links only, however many files a moved folder touches."""
_MERGE_DEPTH = 5_000
"""How many first-parent commits are looked through for the last sweep's merge."""
_INTENT_DEPTH = 200
_TRANSCRIPTS_KEPT = 50
HOME = "home"
"""The run's private HOME, beside its working copy."""


@dataclass(slots=True)
class Launcher:
    """Runs one claimed sweep's agent. `transcript` is where its output was kept, once it ran."""

    claimant: Claimant
    registration: Registration
    probe: Probe
    stop: StopFlag
    transcript: str | None = field(default=None)

    def launch(self, claimed: Claim) -> Finished:
        """Run the agent and harvest its changes.

        Raises:
            OrchestratorError, OSError: the run could not be set up (no room, no instructions).
        """
        site = self.claimant.site
        since = self._window_start(claimed)
        if site.remote is not None and site.reader.is_partial:
            site.remote.prefetch([c for c in (claimed.base, since) if c is not None])
        folder = Path(work_root(site)) / f"{claimed.sweep.slug}-{claimed.dispatch_id}"
        private_folder(folder)
        try:
            return self._in_folder(claimed, since, folder)
        finally:
            remove_tree(folder)

    def _in_folder(self, claimed: Claim, since: Oid | None, folder: Path) -> Finished:
        site, chosen = self.claimant.site, adapter(self.registration.adapter)
        request = self._request(claimed, since, folder)
        if self.registration.adapter != "builtin":
            text = instructions(site.reader, self.registration, site.tip)
            page = self._page(request, claimed, folder)
            prompt = build(text, claimed.marker, self.registration.writes, page)
            request = replace(request, prompt=prompt)
        plan = chosen.plan(request, self.probe)
        branch = claimed.sweep.branch
        with workcopy(
            site.git, site.reader, folder / "tree", claimed.intent, branch, checkout=plan.checkout
        ) as tree:
            result = self._run(plan, claimed, tree, folder / HOME, self.registration.timeout_s)
            report = chosen.parse(result, request)
            return self._harvested(claimed, plan, tree, _judged(result, report))

    def _request(self, claimed: Claim, since: Oid | None, folder: Path) -> Request:
        site, marker = self.claimant.site, claimed.marker
        return Request(
            registration=self.registration,
            sweep=claimed.sweep,
            git_dir=Path(site.reader.common_dir),
            base=claimed.base,
            since=since,
            covering_since=marker.covering_since,
            at=marker.at,
            workdir=folder / "tree",
            prompt="",
            budget_usd=marker.cost_limit_usd,
            timeout_s=self.registration.timeout_s,
            operator=operator_of(site),
            home=folder / HOME,
        )

    def _page(self, request: Request, claimed: Claim, folder: Path) -> str:
        """The built-in historian's findings, made by the same contained run as any agent's."""
        empty = private_folder(folder / "page")
        plan = page_plan(request)
        result = self._run(plan, claimed, empty, folder / "page-home", _PAGE_TIMEOUT_S, keep=False)
        if result.exit_code != 0:
            return "The findings could not be computed; look at what was merged yourself."
        return result.stdout.decode("utf-8", "replace")

    def _run(
        self,
        plan: Plan,
        claimed: Claim,
        tree: Path,
        home: Path,
        timeout_s: float,
        *,
        keep: bool = True,
    ) -> ProcessResult:
        transcripts = self._transcripts(claimed.sweep, claimed.dispatch_id) if keep else None
        return run_agent(
            plan,
            workdir=tree,
            home=home,
            timeout_s=timeout_s,
            environ=self.claimant.site.settings.environ,
            stop=self.stop,
            dispatch_id=claimed.dispatch_id,
            transcripts=transcripts,
        )

    def _transcripts(self, sweep: SweepName, dispatch_id: str) -> Path:
        """Where this run's output goes; older runs' folders beyond a few dozen are removed."""
        root = Path(state_folder(self.claimant.site.reader.common_dir)) / "transcripts"
        private_folder(root)
        kept = sorted(root.iterdir(), key=lambda p: p.lstat().st_mtime, reverse=True)
        for old in kept[_TRANSCRIPTS_KEPT - 1 :]:
            remove_tree(old)
        folder = root / f"{sweep.slug}-{dispatch_id[:8]}"
        self.transcript = str(folder)
        return folder

    def _harvested(self, claimed: Claim, plan: Plan, tree: Path, report: Report) -> Finished:
        """What came back, also of a run that failed: a reviewer decides what it is worth."""
        try:
            found = harvest(
                self.claimant.writer,
                self.claimant.site.reader,
                tree,
                claimed.intent,
                writes=self.registration.writes,
                sweep=claimed.sweep,
                checkout=plan.checkout,
                environ=self.claimant.site.settings.environ,
                **_limits(self.registration),
            )
        except HarvestError as error:
            line = self._line(f"{Status.BAD_OUTPUT.value}: {error.message}")
            return Finished(Status.BAD_OUTPUT, report.usage, line)
        status, words = report.status, report.error
        if status is Status.OK and not found.changes:
            status, words = _without_changes(report)
        failed = None
        if not status.completed:
            failed = self._line(f"{status.value}: {words or 'it did not say why'}")
        left_out = found.left_out
        if found.more:
            left_out = (*left_out, (f"{found.more} more paths", "not listed"))
        return Finished(status, report.usage, failed, found.changes, left_out)

    def _line(self, text: str) -> str:
        return failed_line(text, self.claimant.site.settings.environ)

    def _window_start(self, claimed: Claim) -> Oid | None:
        site = self.claimant.site
        since = claimed.marker.covering_since
        if since is None:
            return None
        known = last_base(site.reader, claimed.base, self._last(claimed), since)
        if known is not None and site.reader.has(known):
            return known
        return History.open(site.reader.common_dir).window_start(claimed.base, since)

    def _last(self, claimed: Claim) -> SweepName | None:
        """The merged sweep the window starts at: the newest one dispatched at that time."""
        since = claimed.marker.covering_since
        names = self.claimant.site.reader.names(claimed.base, RUNS_FOLDER)
        sweeps = [SweepName.from_slug(name) for name, kind in names if kind == "tree"]
        return next(
            (
                s
                for s in sorted((s for s in sweeps if s is not None), key=lambda s: s.date)
                if s.role == claimed.sweep.role and since is not None and s.date == since.date()
            ),
            None,
        )


def _limits(registration: Registration) -> dict[str, int]:
    """How much may come back: what the role says, else what the adapter's kind of edits needs."""
    limits = dict(_MECHANICAL) if registration.adapter == "builtin" else {}
    if registration.max_files is not None:
        limits["max_files"] = registration.max_files
    if registration.max_bytes is not None:
        limits["max_bytes"] = registration.max_bytes
    return limits


def _without_changes(report: Report) -> tuple[Status, str | None]:
    """Nothing to do, or nothing allowed: an agent that was refused something says ok as well."""
    if report.denied is None:
        return Status.NO_CHANGE, None
    return Status.DENIED, report.denied


def _judged(result: ProcessResult, report: Report) -> Report:
    """A run that was ended by us is what it was ended for, whatever the adapter made of it."""
    if result.ending is Ending.NOT_STARTED and report.status.completed:
        return Report(Status.UNAVAILABLE, report.usage, result.error or report.error)
    if result.ending is Ending.TIMEOUT and report.status is not Status.TIMEOUT:
        return Report(Status.TIMEOUT, report.usage, report.error)
    if result.ending is Ending.INTERRUPTED and report.status is not Status.INTERRUPTED:
        return Report(Status.INTERRUPTED, report.usage, report.error)
    return report


def last_base(reader: Reader, tip: Oid, last: SweepName | None, at: datetime) -> Oid | None:
    """The commit the last sweep started from, where the history still tells: its intent's parent.

    Better than any clock. It is known after a merge commit and a fast-forward; a squash or a rebase
    has made new commits (whose time is no longer the dispatch's `at`), and then the caller goes by
    time.
    """
    if last is None:
        return None
    previous = None
    for commit in reader.first_parents(tip, _MERGE_DEPTH):
        if reader.entry(commit.oid, last.marker_path) is None:
            break
        previous = commit
    if previous is None:
        return None
    for parent in (previous.oid, *previous.parents[1:]):
        found = _intent_parent(reader, parent, last, at)
        if found is not None:
            return found
    return None


def _intent_parent(reader: Reader, tip: Oid, sweep: SweepName, at: datetime) -> Oid | None:
    for commit in reader.first_parents(tip, _INTENT_DEPTH):
        said = trailers(commit.message)
        if said.get(SWEEP) == sweep.slug and said.get(PHASE) == INTENT:
            same = commit.time == int(at.timestamp()) and bool(commit.parents)
            return commit.parents[0] if same else None
    return None
