"""What a survey is asked and what it answers, as values."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.adapters.builtin.document import DOCUMENT_SUFFIXES, Form, Place
from orchestrator.adapters.builtin.targets import Listing
from orchestrator.model.names import RUNS_FOLDER

DOCUMENT_LIMIT = 1024 * 1024
"""The largest document that is read, bytes."""

_SKIPPED_FOLDER = re.compile(
    r"(?:^|/)(?:node_modules|vendor(?:ed)?|third[_-]party|dist|_?build|site-packages|"
    r"(?:__)?(?:tests?|fixtures?|snapshots)(?:__)?|test[_-]?data|testing[_-]?data)/",
    re.IGNORECASE,
)
_SKIPPED_NAME = re.compile(
    r"(?:changelogs?|changes|history|news|releases?(?:[-_ ]?notes)?)(?:[-_.].*)?", re.IGNORECASE
)


class Kind(StrEnum):
    """What broke."""

    LINK = "link"
    ANCHOR = "anchor"
    PATH = "path"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that resolved at the window's start and does not at its end.

    Attributes:
        line: in the document at the window's end, from 1.
        written: the destination or path as it stands there.
        start, end: where it stands, characters.
        target: the path it led to at the start.
        now: where that is at the end, when it was renamed one to one (or only the document moved).
        trace: the path whose history tells which commit did it.
        candidates: paths (or, for an anchor, the one heading) it may mean now.
        anchor: the destination's anchor, decoded; empty without one.
        place: where a path is named; None for links and anchors.
    """

    document: str
    line: int
    kind: Kind
    written: str
    form: Form
    start: int
    end: int
    target: str
    now: str | None
    trace: str
    candidates: tuple[str, ...] = ()
    anchor: str = ""
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Two commits, side by side. Without a start there is nothing to compare with."""

    end: Listing
    start: Listing | None = None
    deleted: frozenset[str] = frozenset()
    modified: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found.

    Attributes:
        texts: the text of each document with a finding.
        locked: documents that may not be edited, and why.
        old_breakage: links whose target was there neither at the start nor at the end.
        stale: document untouched in the window -> files it names that changed in it.
        mentioned: those of the names asked for that some document mentions.
        documents: how many documents there are.
        unread: documents left out, and why.
    """

    findings: tuple[Finding, ...]
    texts: Mapping[str, str]
    locked: Mapping[str, str]
    old_breakage: int
    stale: Mapping[str, tuple[str, ...]]
    mentioned: frozenset[str]
    documents: int
    unread: Mapping[str, str]


def is_document(path: str) -> bool:
    """Whether a path is a document somebody maintains: no vendored, generated or test material,
    no record of the past (a changelog, a run's folder).
    """
    if not path.lower().endswith(DOCUMENT_SUFFIXES) or path.startswith(f"{RUNS_FOLDER}/"):
        return False
    stem = posixpath.basename(path).rpartition(".")[0]
    return not _SKIPPED_FOLDER.search(path) and not _SKIPPED_NAME.fullmatch(stem)
