"""The run itself: read the window, compare, edit in memory, and hand back what to write."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from orchestrator.adapters.builtin.delta import CommitLine, Counts, Delta, MergedRun, Stale
from orchestrator.adapters.builtin.findings import DOCUMENT_LIMIT, Finding, Kind, Survey, Window
from orchestrator.adapters.builtin.mend import mend
from orchestrator.adapters.builtin.request import Ask
from orchestrator.adapters.builtin.scan import anchors_at_a_glance
from orchestrator.adapters.builtin.survey import survey
from orchestrator.adapters.builtin.targets import Listing
from orchestrator.git.history import Changes, File, History, Log, PastCommit, Touch
from orchestrator.model.names import MARKER_NAME, RUNS_FOLDER, Oid, SweepName
from orchestrator.model.paths import refusal
from orchestrator.model.timing import from_epoch

_NOTHING = Changes(frozenset(), frozenset(), frozenset())
_MOST_VERSIONS_READ = 50


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found, and the new text of each edited document with its file mode."""

    delta: Delta
    texts: Mapping[str, tuple[str, int]]


def reconcile(history: History, ask: Ask) -> Outcome:
    """Do a sweep's work, in memory.

    Raises:
        MissingObjectError: the base commit or one of the trees is not in this clone.
    """
    start, notes = _start(history, ask)
    log = history.log(start, ask.base) if start else Log((), met=True, shallow=False)
    changes = history.changes(start, ask.base) if start else _NOTHING
    files = history.files(ask.base)
    end = _listing(history, files)
    runs, sweeps = _runs(files, log, ask.slug, first=start is None)
    window = Window(
        end,
        _listing(history, history.files(start)) if start else None,
        changes.deleted,
        changes.modified,
        changes.renames,
        changes.candidates,
    )
    found = survey(window, frozenset(run.name for run in runs))
    mending = mend(found, end, partial(_refusal, ask, files))
    interest = {f.trace for f in found.findings} | {p for s in found.stale.values() for p in s}
    touches = history.trace(log, interest)
    delta = Delta(
        slug=ask.slug,
        base=_line(history.commit(ask.base)),
        start=_line(history.commit(start)) if start else None,
        covering_since=ask.covering_since,
        editing=ask.mode == "sweep",
        counts=_counts(log, changes),
        runs=runs,
        sweeps=sweeps,
        mending=mending,
        causes=_causes(history, found.findings, touches),
        stale=_stale(found, touches),
        unmentioned=tuple(run.name for run in runs if run.name not in found.mentioned),
        old_breakage=found.old_breakage,
        documents=found.documents,
        notes=(*notes, *_limits(log, changes)),
        unread=found.unread,
    )
    return Outcome(delta, {p: (text, files[p][0]) for p, text in mending.texts.items()})


def _refusal(ask: Ask, files: Mapping[str, File], path: str) -> str | None:
    sweep = SweepName.from_slug(ask.slug)
    if sweep is None:
        return "not a sweep"
    return refusal(path, files[path][0], ask.writes, sweep)


def _start(history: History, ask: Ask) -> tuple[Oid | None, list[str]]:
    """The commit to compare with, and what has to be said about it."""
    notes: list[str] = []
    start = ask.since
    if start is not None and not history.has(start):
        notes.append(
            f"the window's first commit ({start[:10]}) is not in this clone, "
            "so the window starts at what is here"
        )
        start = None
    if start is None:
        start = history.window_start(ask.base, ask.covering_since)
    if start is not None and ask.covering_since is not None and history.at_boundary(start):
        late = history.commit(start).time > ask.covering_since.timestamp()
        if late or notes:
            notes.append("the window starts at a shallow boundary: this clone has nothing older")
    return start, notes


def _limits(log: Log, changes: Changes) -> list[str]:
    notes = []
    if log.shallow:
        notes.append("this clone is shallow: the window's oldest commits are not listed")
    elif not log.met:
        notes.append("the window's first commit is not part of the default branch's history")
    if not changes.complete:
        notes.append("only renames that left a file's bytes alone were looked for")
    return notes


def _listing(history: History, files: dict[str, File]) -> Listing:
    def read(path: str) -> bytes | None:
        return history.read(files[path][1], DOCUMENT_LIMIT)

    return Listing(files, read)


def _line(commit: PastCommit) -> CommitLine:
    date = from_epoch(commit.time).date().isoformat()
    return CommitLine(commit.short, date, commit.subject)


def _counts(log: Log, changes: Changes) -> Counts:
    renamed = len(changes.renames)
    return Counts(
        commits=len(log.commits),
        added=len(changes.added) - renamed,
        deleted=len(changes.deleted) - renamed,
        renamed=renamed,
        modified=len(changes.modified),
    )


def _runs(
    files: Iterable[str], log: Log, slug: str, *, first: bool
) -> tuple[tuple[MergedRun, ...], int]:
    """The runs merged in the window (all of them on a first sweep), and how many sweeps' own."""
    inside: dict[str, list[str]] = {}
    for path in files:
        if path.startswith(f"{RUNS_FOLDER}/"):
            name, _, rest = path[len(RUNS_FOLDER) + 1 :].partition("/")
            if rest:
                inside.setdefault(name, []).append(rest)
    merged: dict[str, CommitLine | None] = {}
    for commit in log.commits:
        for name in commit.runs:
            merged.setdefault(name, _line(commit))
    if first:
        merged = dict.fromkeys(sorted(inside))
    runs, sweeps = [], 0
    for name, line in merged.items():
        if name == slug or name not in inside:
            continue
        if MARKER_NAME in inside[name]:
            sweeps += 1
        else:
            runs.append(MergedRun(name, tuple(sorted(inside[name])), line))
    return tuple(runs), sweeps


def _causes(
    history: History, findings: Iterable[Finding], touches: Mapping[str, tuple[Touch, ...]]
) -> dict[Finding, CommitLine]:
    causes: dict[Finding, CommitLine] = {}
    anchors: dict[Oid, frozenset[str]] = {}

    def has_anchor(oid: Oid | None, anchor: str) -> bool:
        if oid is None:
            return False
        if oid not in anchors:
            data = history.read(oid, DOCUMENT_LIMIT) or b""
            anchors[oid] = anchors_at_a_glance(data.decode("utf-8", "replace"))
        return anchor in anchors[oid]

    for finding in findings:
        for touch in touches.get(finding.trace, ())[:_MOST_VERSIONS_READ]:
            if finding.kind is Kind.ANCHOR:
                did = has_anchor(touch.before, finding.anchor) and not has_anchor(
                    touch.after, finding.anchor
                )
            else:
                did = touch.before is not None and touch.after is None
            if did:
                causes[finding] = _line(touch.commit)
                break
    return causes


def _stale(found: Survey, touches: Mapping[str, tuple[Touch, ...]]) -> tuple[Stale, ...]:
    often: Callable[[str], int] = Counter({p: len(t) for p, t in touches.items()}).__getitem__
    rows = [
        Stale(
            document,
            tuple((p, often(p)) for p in sorted(paths, key=lambda p: (-often(p), p))),
        )
        for document, paths in found.stale.items()
    ]
    return tuple(
        sorted(rows, key=lambda r: (-len(r.files), -sum(n for _, n in r.files), r.document))
    )
