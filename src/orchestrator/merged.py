"""The `runs` folder on the default-branch tip: what was merged, and each role's newest marker."""

from collections.abc import Iterator
from datetime import date

from orchestrator.git.reader import Entry
from orchestrator.markerfile import MarkerError, read_marker
from orchestrator.model.names import RUNS_FOLDER, SweepName
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.policy import FILE_KINDS, MAX_FILE_BYTES, WHAT
from orchestrator.rules.facts import BrokenMarker, MergedSweep
from orchestrator.site import Site


class Runs:
    """The `runs` folder on the default tip: which slugs have a marker, and each role's newest."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = site.reader
        self._folder = self._reader.entry(site.tip, RUNS_FOLDER)
        self._by_role: dict[str, list[SweepName]] | None = None
        self._entries: dict[SweepName, Entry | None] = {}
        self._readings: dict[SweepName, MergedSweep | BrokenMarker] = {}

    def has_marker(self, sweep: SweepName) -> bool:
        entry = self._marker_entry(sweep)
        return entry is not None and entry.kind in FILE_KINDS

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
        return next(self._merged(role), None)

    def paced_by(self, role: str, last: MergedSweep) -> MergedSweep | BrokenMarker | None:
        """The newest marker that no person asked for; None where `last` is that one."""
        if not last.by_hand:
            return None
        found = self._merged(role)
        return next((m for m in found if isinstance(m, BrokenMarker) or not m.by_hand), None)

    def since(self, role: str, day: date) -> Iterator[MergedSweep | BrokenMarker]:
        """The role's markers of `day` and later, newest first."""
        for sweep in self._sweeps(role):
            if sweep.date < day:
                return
            entry = self._marker_entry(sweep)
            if entry is not None:
                yield self._read(sweep, entry)

    def _merged(self, role: str) -> Iterator[MergedSweep | BrokenMarker]:
        yield from self.since(role, date.min)

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
        if sweep not in self._readings:
            self._readings[sweep] = self._read_anew(sweep, entry)
        return self._readings[sweep]

    def _read_anew(self, sweep: SweepName, entry: Entry) -> MergedSweep | BrokenMarker:
        place = f"on {self._site.tip_name}"
        path = sweep.marker_path
        if entry.kind not in FILE_KINDS:
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
        return WHAT.get(entry.kind, "a file")
