"""The `runs` folder on the default-branch tip: what was merged, and each role's newest marker."""

from orchestrator.git.reader import Entry
from orchestrator.markerfile import MarkerError, read_marker
from orchestrator.model.names import RUNS_FOLDER, SweepName
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.rules.facts import BrokenMarker, MergedSweep
from orchestrator.site import Site

MAX_FILE_BYTES = 64 * 1024
FILE_KINDS = ("blob", "executable")
WHAT = {"tree": "a folder", "symlink": "a symbolic link", "gitlink": "a submodule"}


class Runs:
    """The `runs` folder on the default tip: which slugs have a marker, and each role's newest."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._reader = site.reader
        self._folder = self._reader.entry(site.tip, RUNS_FOLDER)
        self._by_role: dict[str, list[SweepName]] | None = None
        self._entries: dict[SweepName, Entry | None] = {}

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
