"""A window's delta -> `docs-delta.md`. The same delta gives the same bytes.

Whatever comes from the repository stands in a code span, stripped of escapes and control
characters: there it can neither break the page nor link, mention or render anything.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from orchestrator.adapters.builtin.delta import CommitLine, Delta, MergedRun, Stale
from orchestrator.adapters.builtin.document import Place
from orchestrator.adapters.builtin.findings import Finding, Kind
from orchestrator.adapters.builtin.mend import Edit, Kept
from orchestrator.model.timing import iso
from orchestrator.text import one_line

_MOST_ENTRIES = 200
_MOST_DOCUMENTS = 30
_MOST_FILES = 6
_MOST_LINES = 20
_SUBJECT_LIMIT = 100
_PATH_LIMIT = 400
_TICKS = re.compile("`+")

T = TypeVar("T")


def render(delta: Delta) -> str:
    """The page, ending in one newline."""
    sections = [
        (None, _head(delta)),
        ("Merged in this window" if delta.start else "Merged so far", _merged(delta)),
        ("Edits made" if delta.editing else "Edits that can be made", _edits(delta)),
        ("Broken in this window", _broken(delta)),
        ("Documents to look at", _stale(delta)),
        ("Runs no document mentions", _unmentioned(delta)),
        ("Old breakage", _old(delta)),
    ]
    blocks = []
    for title, lines in sections:
        if title is not None:
            blocks.append(f"## {title}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def code(text: str, limit: int = _PATH_LIMIT) -> str:
    """A code span that shows `text` and nothing else, whatever is in it."""
    shown = one_line(text, limit) or "(no text)"
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _capped(items: Iterable[T], limit: int, more: str) -> Iterator[T | str]:
    listed = list(items)
    yield from listed[:limit]
    if len(listed) > limit:
        yield f"- and {len(listed) - limit} more {more}"


def _commit(commit: CommitLine) -> str:
    return f"{code(commit.short)} ({commit.date}, {code(commit.subject, _SUBJECT_LIMIT)})"


def _head(delta: Delta) -> list[str]:
    lines = [f"# What changed for the documentation: {code(delta.slug)}", ""]
    if delta.start is None:
        lines.append(
            f"First sweep, at {_commit(delta.base)}: there is no earlier sweep to compare with, "
            "so nothing was edited. The next sweep compares from here."
        )
    else:
        lines.append(f"From {_commit(delta.start)} to {_commit(delta.base)}.")
    if delta.covering_since is not None:
        lines.append(f"Covering what was merged since {iso(delta.covering_since)}.")
    lines += [f"- Note: {note}" for note in delta.notes]
    if delta.notes:
        lines.insert(-len(delta.notes), "")
    return lines


def _merged(delta: Delta) -> list[str]:
    lines = []
    if delta.start is not None:
        c = delta.counts
        renamed = f", {c.renamed} renamed" if c.renamed else ""
        lines += [
            f"{_count(c.commits, 'commit')} on the default branch; {_count(c.files, 'file')} "
            f"changed ({c.added} added, {c.modified} modified, {c.deleted} deleted{renamed})."
            if c.files
            else f"{_count(c.commits, 'commit')}, no file changed."
        ]
    if not delta.runs:
        lines += ["No runs were merged." if delta.start else "No runs are here yet."]
    else:
        lines += [""] if lines else []
        lines += _capped(map(_run, delta.runs), _MOST_ENTRIES, "runs")
    if delta.sweeps:
        lines += ["", f"{_count(delta.sweeps, 'sweep')} beside them, not listed."]
    return lines


def _run(run: MergedRun) -> str:
    names = ", ".join(code(name) for name in run.files[:_MOST_FILES])
    more = f" and {len(run.files) - _MOST_FILES} more" if len(run.files) > _MOST_FILES else ""
    where = f", merged in {_commit(run.commit)}" if run.commit else ""
    return f"- {code(f'runs/{run.name}/')}{where}: {names or 'no files any more'}{more}"


def _edits(delta: Delta) -> list[str]:
    if delta.start is None:
        return ["None: this is the first sweep."]
    if not delta.mending.edits:
        return ["None: nothing that a document links to was renamed one to one."]
    entries = (_edit(edit, delta) for edit in delta.mending.edits)
    return list(_capped(entries, _MOST_ENTRIES, "edits, all of them in the diff"))


def _place(finding: Finding) -> str:
    return code(f"{finding.document}:{finding.line}")


def _edit(edit: Edit, delta: Delta) -> str:
    finding = edit.finding
    why = "its target was renamed"
    if finding.kind is Kind.PATH:
        why = "the file it names was renamed"
    elif finding.now == finding.target:
        why = "this document moved"
    cause = delta.causes.get(finding)
    where = f" in {_commit(cause)}" if cause else ""
    return f"- {_place(finding)}: {code(finding.written)} → {code(edit.new)}; {why}{where}"


def _broken(delta: Delta) -> list[str]:
    if delta.start is None:
        return ["Not known: there is no earlier commit to compare with."]
    if not delta.mending.kept:
        return ["Nothing."]
    # What a document says several times is one entry with several lines.
    places: dict[tuple[object, ...], list[Kept]] = {}
    for kept in delta.mending.kept:
        f = kept.finding
        same = (f.document, f.kind, f.place, f.written, f.target, f.now, kept.reason)
        places.setdefault(same, []).append(kept)
    entries = (_kept(same, delta) for same in places.values())
    return list(_capped(entries, _MOST_ENTRIES, "of them"))


def _kept(same: list[Kept], delta: Delta) -> str:
    kept, finding = same[0], same[0].finding
    others = sorted({k.finding.line for k in same} - {finding.line})
    cause = delta.causes.get(finding)
    where = f" in {_commit(cause)}" if cause else ""
    noun = "lines" if len(others) > 1 else "line"
    also = f" (also {noun} {', '.join(map(str, others[:_MOST_LINES]))})" if others else ""
    said = f"- {_place(finding)}{also}: {_what(finding)} {code(finding.written)}"
    if finding.kind is Kind.ANCHOR:
        said += f": {code(finding.target)} lost the heading or anchor {code(finding.anchor)}{where}"
    elif finding.now == finding.target:
        said += f": this document moved{where}, {code(finding.target)} did not"
    elif finding.now is not None:
        said += f": {code(finding.target)} was renamed to {code(finding.now)}{where}"
    else:
        said += f": {code(finding.target)} was removed{where}"
    if finding.candidates:
        options = " or ".join(code(path) for path in finding.candidates[:_MOST_FILES])
        said += f"; perhaps {options} now"
    return f"{said}; not edited: {kept.reason}" if kept.reason else said


def _what(finding: Finding) -> str:
    if finding.kind is not Kind.PATH:
        return "the link"
    return "a code block names" if finding.place is Place.FENCE else "the text names"


def _stale(delta: Delta) -> list[str]:
    if delta.start is None:
        return ["Not known: there is no earlier commit to compare with."]
    if not delta.stale:
        return ["None: no untouched document names a file that changed."]
    intro = "These did not change while files that they name did:"
    entries = map(_stale_entry, delta.stale)
    return [intro, "", *_capped(entries, _MOST_DOCUMENTS, "documents")]


def _stale_entry(stale: Stale) -> str:
    shown = [
        f"{code(path)} ({_count(commits, 'commit')})" if commits else code(path)
        for path, commits in stale.files[:_MOST_FILES]
    ]
    more = len(stale.files) - _MOST_FILES
    return f"- {code(stale.document)}: {', '.join(shown)}" + (
        f" and {more} more" if more > 0 else ""
    )


def _unmentioned(delta: Delta) -> list[str]:
    if not delta.runs:
        return ["None: no runs to mention."]
    if not delta.unmentioned:
        return ["None: each is mentioned."]
    names = (f"- {code(f'runs/{name}/')}" for name in delta.unmentioned)
    return list(_capped(names, _MOST_ENTRIES, "runs"))


def _old(delta: Delta) -> list[str]:
    before = " and did not when this window began" if delta.start else ""
    links, documents = _count(delta.old_breakage, "link"), _count(delta.documents, "document")
    verb = "does" if delta.old_breakage == 1 else "do"
    lines = [f"{links} in {documents} {verb} not lead to a file{before}."]
    if delta.unread:
        lines += ["", "Not read:", ""]
        entries = (f"- {code(path)}: {why}" for path, why in sorted(delta.unread.items()))
        lines += list(_capped(entries, _MOST_DOCUMENTS, "documents"))
    return lines
