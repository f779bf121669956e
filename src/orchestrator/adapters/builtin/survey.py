"""What the documents of a window's end say that was true at its start and no longer is.

Pure: two listings with texts, what was renamed between them, no git. A link, anchor or named path
is *broken in the window* only when it resolved at the start and does not at the end; what never
resolved is only counted. Each document is scanned fast; only those with something suspicious are
parsed in full, so that what stands in code is not taken for a link.
"""

import re
from collections.abc import Collection, Iterable

from orchestrator.adapters.builtin import markdown, rst
from orchestrator.adapters.builtin.compare import Comparison, Seen, meant, text_of
from orchestrator.adapters.builtin.document import (
    DOCUMENT_SUFFIXES,
    Document,
    Form,
    Lines,
    Link,
    Mention,
    paths_named,
)
from orchestrator.adapters.builtin.findings import (
    DOCUMENT_LIMIT,
    Finding,
    Kind,
    Survey,
    Window,
    is_document,
)
from orchestrator.adapters.builtin.scan import scan, without_code
from orchestrator.adapters.builtin.targets import Destination, read_destination, target_path

_PLAIN_FILES = (0o100644, 0o100755, 0o100664)
_GENERATED = re.compile(
    r"@generated\b|\bDO NOT EDIT\b|\b(?:auto-?)?generated (?:by|from)\b", re.IGNORECASE
)

Raw = tuple[str, Form]


def survey(window: Window, names: frozenset[str] = frozenset()) -> Survey:
    """Compare every document of the window's end with its start.

    Args:
        window: the two commits.
        names: names (of run folders) to look for in the documents.
    """
    return _Survey(window, names).run()


class _Survey:
    def __init__(self, window: Window, names: frozenset[str]) -> None:
        self.window = window
        self.names = names
        self.comparison = Comparison(window, window.start) if window.start is not None else None
        self.origin = {new: old for old, new in window.renames.items()}
        self.findings: list[Finding] = []
        self.texts: dict[str, str] = {}
        self.locked: dict[str, str] = {}
        self.unread: dict[str, str] = {}
        self.stale: dict[str, tuple[str, ...]] = {}
        self.mentioned: set[str] = set()
        self.old = 0

    def run(self) -> Survey:
        files = sorted(self.window.end.files.items())
        documents = [p for p, (mode, _) in files if is_document(p) and mode in _PLAIN_FILES]
        for path in documents:
            text = self._text(path)
            if text is not None:
                self._document(path, text)
        return Survey(
            tuple(self.findings),
            self.texts,
            self.locked,
            self.old,
            self.stale,
            frozenset(self.mentioned),
            len(documents),
            self.unread,
        )

    def _text(self, path: str) -> str | None:
        if not path.isprintable():
            self.unread[path] = "its name is not printable text"
            return None
        data = self.window.end.read(path)
        if data is None:
            self.unread[path] = f"larger than {DOCUMENT_LIMIT // 1024} KiB, or not in this clone"
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            self.locked[path] = "it is not UTF-8"
            return data.decode("utf-8", "replace")
        if _is_rst(path):
            self.locked[path] = "reStructuredText is not edited"
        elif _GENERATED.search(text[:600]):
            self.locked[path] = "it says that it is generated"
        return text

    def _document(self, path: str, text: str) -> None:
        self.mentioned.update(name for name in self.names - self.mentioned if name in text)
        raws = _raws(path, text)
        unanswered = {raw for raw, form in raws if self._unanswered(path, raw, form)}
        if self.comparison is None:
            self.old += _count(path, text, unanswered)
            return
        named = {name for name, _, _ in paths_named(text)}
        self._note_stale(path, raws, named)
        seen = self._seen(path, raws)
        broken = {raw for raw, form in raws if raw in unanswered and self._led(seen, raw, form)}
        self.old += _count(path, text, unanswered - broken)
        gone = any(self.comparison.lost_path(seen, name) for name in named)
        if broken or gone or any(self._anchor_lost(seen, raw, form) for raw, form in raws):
            self.texts[path] = text
            self._read_in_full(self.comparison, seen, text)

    def _read_in_full(self, comparison: Comparison, seen: Seen, text: str) -> None:
        lines = Lines(text)
        document = _parse(seen.path, text)
        for link in document.links:
            self._link(comparison, seen, lines, link)
        said = self._said_before(seen)
        for mention in document.mentions:
            if mention.path in said:
                self._mention(comparison, seen, lines, mention)

    def _seen(self, path: str, raws: list[Raw]) -> Seen:
        start = self.window.start
        before = path if start and path in start.files else self.origin.get(path)
        if start is None or before is None:
            return Seen(path)
        if start.files[before][1] != self.window.end.files[path][1]:
            raws = _raws(before, text_of(before, start))
        return Seen(path, before, frozenset(raw for raw, _ in raws))

    def _said_before(self, seen: Seen) -> frozenset[str]:
        """The paths that a document named at the start."""
        start = self.window.start
        text = text_of(seen.before, start) if start and seen.before else ""
        return frozenset(path for path, _, _ in paths_named(text))

    def _unanswered(self, path: str, raw: str, form: Form) -> bool:
        destination = read_destination(raw, form)
        return destination is not None and not self.window.end.answers(destination, path)

    def _led(self, seen: Seen, raw: str, form: Form) -> bool:
        destination = read_destination(raw, form)
        if self.comparison is None or destination is None:
            return False
        return self.comparison.led_to(seen, raw, destination) is not None

    def _anchor_lost(self, seen: Seen, raw: str, form: Form) -> bool:
        destination = read_destination(raw, form) if "#" in raw else None
        if self.comparison is None or destination is None:
            return False
        return self.comparison.lost_anchor(seen, raw, destination) is not None

    def _link(self, comparison: Comparison, seen: Seen, lines: Lines, link: Link) -> None:
        destination = read_destination(link.raw, link.form)
        if destination is None:
            return
        led = None
        if self._unanswered(seen.path, link.raw, link.form):
            led = comparison.led_to(seen, link.raw, destination)
        if led is not None:
            self._broken(comparison, seen, lines, link, destination, *led)
        lost = comparison.lost_anchor(seen, link.raw, destination)
        if lost is not None:
            self.findings.append(
                Finding(
                    seen.path, lines.number(link.start), Kind.ANCHOR, link.raw, link.form,
                    link.start, link.end, lost.page, None, lost.page,
                    (lost.instead,) if lost.instead else (), destination.anchor,
                )
            )  # fmt: skip

    def _broken(
        self,
        comparison: Comparison,
        seen: Seen,
        lines: Lines,
        link: Link,
        destination: Destination,
        target: str,
        base: str,
    ) -> None:
        moved = base != seen.path and self.window.end.find(target) == target
        self.findings.append(
            Finding(
                seen.path, lines.number(link.start), Kind.LINK, link.raw, link.form,
                link.start, link.end, target, comparison.now(target), base if moved else target,
                comparison.candidates(target), destination.anchor,
            )
        )  # fmt: skip

    def _mention(self, comparison: Comparison, seen: Seen, lines: Lines, mention: Mention) -> None:
        target = comparison.lost_path(seen, mention.path)
        if target is None:
            return
        now = comparison.now(target)
        line = lines.number(mention.start)
        if now is not None and now in lines.text[line - 1]:
            return  # the line tells of the rename itself
        self.findings.append(
            Finding(
                seen.path, line, Kind.PATH, mention.path, Form.BARE, mention.start, mention.end,
                target, now, target, comparison.candidates(target), place=mention.place,
            )
        )  # fmt: skip

    def _note_stale(self, path: str, raws: list[Raw], named: Iterable[str]) -> None:
        """Note the files that an untouched document names and that did change."""
        start, end = self.window.start, self.window.end
        if start is None or start.files.get(path) != end.files[path]:
            return
        files: set[str | None] = {meant(name, path, end) for name in named}
        if "/" in path:  # `./pyproject.toml` in a guide is the reader's, not this repository's
            files = {f for f in files if f is not None and "/" in f}
        for raw, form in raws:
            destination = read_destination(raw, form)
            files.add(target_path(destination, path) if destination else None)
        changed = {f for f in files if f is not None and f in self.window.modified}
        kept = sorted(f for f in changed if not f.lower().endswith(DOCUMENT_SUFFIXES))
        if kept:
            self.stale[path] = tuple(kept)


def _is_rst(path: str) -> bool:
    return path.lower().endswith(".rst")


def _parse(path: str, text: str) -> Document:
    return rst.parse(text) if _is_rst(path) else markdown.parse(text)


def _raws(path: str, text: str) -> list[Raw]:
    """Everything that could be a destination, once each."""
    found = rst.parse(text).links if _is_rst(path) else scan(text)
    return list(dict.fromkeys((link.raw, link.form) for link in found))


def _count(path: str, text: str, raws: Collection[str]) -> int:
    """How many links of a document have one of these destinations."""
    if not raws:
        return 0
    links: Iterable[Link]
    links = rst.parse(text).links if _is_rst(path) else scan(without_code(text))
    return sum(link.raw in raws for link in links)
