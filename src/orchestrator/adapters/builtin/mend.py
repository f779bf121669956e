"""Findings -> edits: only destinations and whole paths in code spans, only one-to-one renames.

Every edit is checked before it counts: the edited document is parsed again, its edited links must
lead to their targets and everything else in it must read as before. A document that does not pass
keeps its text, and its findings are reported instead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.adapters.builtin import markdown
from orchestrator.adapters.builtin.document import Form, Place, paths_named
from orchestrator.adapters.builtin.findings import Finding, Kind, Survey
from orchestrator.adapters.builtin.targets import (
    Listing,
    read_destination,
    relative,
    rewrite,
    target_path,
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement: `finding.written`, where it stands, becomes `new`."""

    finding: Finding
    new: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A finding that is not edited, and why; no reason when nothing could be done."""

    finding: Finding
    reason: str | None


@dataclass(frozen=True, slots=True)
class Mending:
    """What is edited and what is only reported.

    Attributes:
        texts: the new text of each edited document.
    """

    edits: tuple[Edit, ...]
    kept: tuple[Kept, ...]
    texts: Mapping[str, str]


def mend(survey: Survey, end: Listing, refusal: Callable[[str], str | None]) -> Mending:
    """Decide what to edit, and edit it (in memory).

    Args:
        survey: what was found.
        end: the listing of the window's end.
        refusal: why the role may not change a path, as a phrase; None when it may.
    """
    proposed: dict[str, list[Edit]] = {}
    kept: list[Kept] = []
    for finding in survey.findings:
        reason = _refusal(finding, survey, refusal)
        new = None if reason is not None else _replacement(finding)
        if new is not None and new != finding.written:
            proposed.setdefault(finding.document, []).append(Edit(finding, new))
        else:
            kept.append(Kept(finding, reason or None))
    edits: list[Edit] = []
    texts: dict[str, str] = {}
    for document, wanted in proposed.items():
        text = _applied(survey.texts[document], wanted)
        if _holds(survey.texts[document], text, wanted, document, end):
            texts[document] = text
            edits.extend(wanted)
        else:
            reason = "the edit would have changed more than the path"
            kept.extend(Kept(edit.finding, reason) for edit in wanted)
    return Mending(
        tuple(sorted(edits, key=lambda e: _order(e.finding))),
        tuple(sorted(kept, key=lambda k: _order(k.finding))),
        texts,
    )


def _order(finding: Finding) -> tuple[str, int, str, str]:
    return finding.document, finding.start, finding.kind.value, finding.written


def _refusal(finding: Finding, survey: Survey, refusal: Callable[[str], str | None]) -> str | None:
    """Why a finding is only reported; "" when there is nothing that an edit could say."""
    if finding.now is None:
        return ""
    if finding.document in survey.locked:
        return survey.locked[finding.document]
    refused = refusal(finding.document)
    if refused is not None:
        return refused
    if finding.kind is Kind.PATH and finding.place is Place.FENCE:
        return "in a code block"
    if finding.kind is Kind.PATH and finding.place is Place.TEXT:
        return "in running text"
    return None


def _replacement(finding: Finding) -> str | None:
    now = finding.now
    if now is None:
        return None
    if finding.kind is Kind.PATH:
        new = now
        if finding.written != finding.target:  # seen from the document's folder
            new = relative(finding.written, finding.document, now)
        return new if [new] == [path for path, _, _ in paths_named(new)] else None
    destination = read_destination(finding.written, finding.form)
    if destination is None:
        return None
    return rewrite(finding.written, finding.form, destination, finding.document, now)


def _applied(text: str, edits: list[Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: e.finding.start):
        parts += [text[at : edit.finding.start], edit.new]
        at = edit.finding.end
    return "".join([*parts, text[at:]])


def _holds(old: str, new: str, edits: list[Edit], document: str, end: Listing) -> bool:
    """Whether the edited text says the same but for the edits, and each edited link resolves."""
    before, after = markdown.parse(old), markdown.parse(new)
    links = {e.finding.start: e for e in edits if e.finding.kind is Kind.LINK}
    paths = {e.finding.start: e for e in edits if e.finding.kind is Kind.PATH}
    if len(before.links) != len(after.links) or before.anchors != after.anchors:
        return False
    for was, now in zip(before.links, after.links, strict=True):
        edit = links.get(was.start)
        if now.raw != (edit.new if edit else was.raw) or now.form is not was.form:
            return False
        if edit and not _leads(now.raw, now.form, document, edit.finding.now, end):
            return False
    if len(before.mentions) != len(after.mentions):
        return False
    return all(
        now.path == (paths[was.start].new if was.start in paths else was.path)
        for was, now in zip(before.mentions, after.mentions, strict=True)
    )


def _leads(raw: str, form: Form, document: str, target: str | None, end: Listing) -> bool:
    destination = read_destination(raw, form)
    path = target_path(destination, document) if destination else None
    return path is not None and end.find(path) == target
