"""One thing a document says, at both ends of a window: did it lead somewhere, does it now, and
where did that go. Knows nothing of where the thing stands in the document.
"""

import posixpath
from dataclasses import dataclass
from difflib import SequenceMatcher

from orchestrator.adapters.builtin import markdown
from orchestrator.adapters.builtin.document import DOCUMENT_SUFFIXES, Document
from orchestrator.adapters.builtin.findings import Window
from orchestrator.adapters.builtin.scan import anchors_at_a_glance
from orchestrator.adapters.builtin.targets import (
    Destination,
    Listing,
    folder_rename,
    target_path,
)
from orchestrator.git.ignored import Ignored
from orchestrator.model.names import Oid

_MARKDOWN_SUFFIXES = tuple(suffix for suffix in DOCUMENT_SUFFIXES if suffix != ".rst")


@dataclass(frozen=True, slots=True)
class Seen:
    """One document, at both ends.

    Attributes:
        path: at the window's end.
        before: at its start; None when it is new.
        raws: the destinations it had at the start.
    """

    path: str
    before: str | None = None
    raws: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LostAnchor:
    """An anchor that a page had at the start and has no more.

    Attributes:
        page: the page at the start.
        instead: `page#anchor` of the one heading that stands in its place, or None.
    """

    page: str
    instead: str | None


class Comparison:
    """A window's start against its end."""

    def __init__(self, window: Window, start: Listing) -> None:
        self._window = window
        self._start = start
        self._end = window.end
        self._ignored = Ignored(window.end.contents)
        self._folders: dict[str, str | None] = {}
        self._parsed: dict[Oid, Document] = {}
        self._glanced: dict[Oid, frozenset[str]] = {}

    def led_to(self, seen: Seen, raw: str, destination: Destination) -> tuple[str, str] | None:
        """What a destination meant at the start, and the document's path it was seen from.

        A destination that the document had at the start is seen from where the document was then.
        None when it led nowhere, or to a file that git ignores by now.
        """
        base = seen.before if seen.before is not None and raw in seen.raws else seen.path
        wanted = target_path(destination, base)
        target = self._start.find(wanted) if wanted is not None else None
        if target is None or self._ignored.matches(target):
            return None
        return target, base

    def now(self, target: str) -> str | None:
        """Where a file or folder of the start is at the end, when that is one place."""
        if self._end.find(target) == target:
            return target
        if target in self._window.renames:
            return self._window.renames[target]
        if target not in self._start.folders:
            return None
        if target not in self._folders:
            self._folders[target] = folder_rename(
                target, self._start, self._window.renames, self._window.deleted
            )
        return self._folders[target]

    def candidates(self, target: str) -> tuple[str, ...]:
        """What a lost file may be now: the same bytes elsewhere, or its page in another format."""
        known = self._window.candidates.get(target)
        if known or not target.lower().endswith(DOCUMENT_SUFFIXES):
            return known or ()
        stem = target.rpartition(".")[0]
        return tuple(p for s in DOCUMENT_SUFFIXES if (p := stem + s) in self._end.files)

    def lost_path(self, seen: Seen, name: str) -> str | None:
        """The file that a named path meant at the start, when it means none at the end."""
        if seen.before is None or meant(name, seen.path, self._end) is not None:
            return None
        target = meant(name, seen.before, self._start)
        if target is None or target in self._end.files or self._ignored.matches(target):
            return None
        return target

    def lost_anchor(self, seen: Seen, raw: str, destination: Destination) -> LostAnchor | None:
        """The anchor of a destination, when its page had it at the start and lost it."""
        if not destination.anchor or seen.before is None or raw not in seen.raws:
            return None
        wanted = target_path(destination, seen.before)
        old = self._start.find(wanted) if wanted is not None else None
        new = self.now(old) if old is not None else None
        if old is None or new is None or not old.lower().endswith(_MARKDOWN_SUFFIXES):
            return None
        was, is_now = self._start.files.get(old), self._end.files.get(new)
        if was is None or is_now is None or was[1] == is_now[1]:
            return None
        anchor = destination.anchor
        if anchor in self._glance(is_now[1], new, self._end):
            return None
        if anchor not in self._glance(was[1], old, self._start):
            return None
        before = self._read(was[1], old, self._start)
        after = self._read(is_now[1], new, self._end)
        if anchor not in before.anchors or anchor in after.anchors:
            return None
        instead = _replacement(before, after, anchor)
        return LostAnchor(old, f"{new}#{instead}" if instead else None)

    def _read(self, oid: Oid, path: str, listing: Listing) -> Document:
        if oid not in self._parsed:
            self._parsed[oid] = markdown.parse(text_of(path, listing))
        return self._parsed[oid]

    def _glance(self, oid: Oid, path: str, listing: Listing) -> frozenset[str]:
        if oid not in self._glanced:
            self._glanced[oid] = anchors_at_a_glance(text_of(path, listing))
        return self._glanced[oid]


def text_of(path: str, listing: Listing) -> str:
    """A file's text, empty when it cannot be read; good enough to look something up in it."""
    return (listing.read(path) or b"").decode("utf-8", "replace")


def meant(name: str, document: str, listing: Listing) -> str | None:
    """The file that a named path means: from the root, else from the document's folder."""
    local = posixpath.join(posixpath.dirname(document), name)
    for path in (posixpath.normpath(name), posixpath.normpath(local)):
        if path in listing.files:
            return path
    return None


def _replacement(before: Document, after: Document, anchor: str) -> str | None:
    """The anchor of the heading that stands where the lost one stood, when exactly one does."""
    old = [h.anchor for h in before.headings]
    new = [h.anchor for h in after.headings]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "replace" and j - i == 1 and m - k == 1 and old[i] == anchor:
            return new[k]
    return None
