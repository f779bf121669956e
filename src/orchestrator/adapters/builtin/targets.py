"""A destination as written <-> a path inside the repository. Pure text, both ways.

Only destinations that a file of the repository can answer are judged. Everything a site generator,
a template engine or the network answers (URLs, `{{ }}`, aliases, links that leave the repository)
is left alone.
"""

import html
import posixpath
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote_to_bytes

from markdown_it.common.utils import unescapeAll

from orchestrator.adapters.builtin.document import DOCUMENT_SUFFIXES, Form
from orchestrator.model.names import Oid

_NOT_OURS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|[~@]|.*[{}$<>*|\\\x00-\x1f\x7f]", re.DOTALL)
_PLACEHOLDERS = frozenset({"url", "link", "path", "...", "..", ".", "TODO", "TBD", "\u2026"})
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")
_ENTITY = re.compile(r"&(?=[A-Za-z#])")


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination, taken apart.

    Attributes:
        path: decoded; empty for a link into the same document.
        rooted: it started with `/`: meant from the repository's root (or from a site's).
        suffix: the query and anchor as written, kept by an edit.
        anchor: the decoded anchor in lower case, or empty.
        plain: the path stands there without escapes that an edit could not give back.
    """

    path: str
    rooted: bool
    suffix: str
    anchor: str
    plain: bool


def read_destination(raw: str, form: Form) -> Destination | None:
    """Take a destination apart; None when it is not a relative path for us to judge."""
    text = html.unescape(raw) if form.html else unescapeAll(raw)
    text = text.strip()
    if not text or _NOT_OURS.match(text) or text in _PLACEHOLDERS:
        return None
    cut = min((i for i in (text.find("?"), text.find("#")) if i >= 0), default=len(text))
    path, suffix = text[:cut], text[cut:]
    anchor = suffix.partition("#")[2]
    decoded, decoded_anchor = _unquote(path), _unquote(anchor)
    if decoded is None or decoded_anchor is None or _NOT_OURS.match(decoded):
        return None
    return Destination(
        decoded, path.startswith("/"), suffix, decoded_anchor.lower(), plain=text == raw
    )


def _unquote(text: str) -> str | None:
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        return None


def target_path(destination: Destination, document: str) -> str | None:
    """The path a destination means, seen from a document; None when it leaves the repository.

    A rooted destination is only ours when it names a document: `/img/x.png` is a site's business.
    """
    if destination.rooted:
        path = posixpath.normpath(destination.path.lstrip("/"))
        return path if path.lower().endswith(DOCUMENT_SUFFIXES) else None
    if not destination.path:
        return document
    joined = posixpath.join(posixpath.dirname(document), destination.path)
    path = posixpath.normpath(joined)
    if path == ".." or path.startswith("../"):
        return None
    return "" if path == "." else path


class Listing:
    """A commit's files, and the folders they make; what a path resolves to."""

    def __init__(
        self, files: Mapping[str, tuple[int, Oid]], read: Callable[[str], bytes | None]
    ) -> None:
        self.files = files
        self.read = read

    def contents(self, path: str) -> bytes | None:
        """A file's contents; None where there is no such file, or it cannot be read."""
        return self.read(path) if path in self.files else None

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder, the root ("") included."""
        found = {""}
        for path in self.files:
            folder = posixpath.dirname(path)
            while folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    @cached_property
    def _composed(self) -> Mapping[str, str]:
        """Names that are not ASCII, composed (NFC): file systems disagree about the form."""
        names = (p for p in (*self.files, *self.folders) if not p.isascii())
        return {unicodedata.normalize("NFC", name): name for name in names}

    def find(self, path: str) -> str | None:
        """The file or folder that `path` names, as it is spelled in the commit; or None."""
        if path in self.files or path in self.folders:
            return path
        return None if path.isascii() else self._composed.get(unicodedata.normalize("NFC", path))

    def answers(self, destination: Destination, document: str) -> bool:
        """Whether a destination leads anywhere, by the ways of site generators too: `guide` or
        `guide.html` for `guide.md`, a page seen as a folder (`docs/a.md` served as `docs/a/`), a
        translation that falls back to English. What only a site can tell is not for us to judge.
        """
        target = target_path(destination, document)
        if target is None or self._leads(target):
            return True
        if destination.rooted or not destination.path:
            return False
        page = target_path(destination, document.rpartition(".")[0] + "/x")
        return page is not None and self._leads(page)

    def _leads(self, path: str) -> bool:
        if self.find(path) is not None:
            return True
        stem = path.removesuffix(".html")
        if any(self.find(stem + suffix) is not None for suffix in DOCUMENT_SUFFIXES):
            return True
        parts = path.split("/")
        return any(
            self.find("/".join([*parts[:i], english, *parts[i + 1 :]])) is not None
            for i, part in enumerate(parts)
            if _LANGUAGE.fullmatch(part)
            for english in ("en", "en-us", "en-US")
        )


def folder_rename(
    folder: str, start: Listing, renames: Mapping[str, str], deleted: Collection[str]
) -> str | None:
    """Where a folder went: every file below it that was renamed kept its place below one other
    folder, and that was at least half of them; None otherwise.
    """
    below = f"{folder}/"
    files = [p for p in deleted if p.startswith(below)]
    total = sum(p.startswith(below) for p in start.files)
    moved = [(p[len(below) :], renames[p]) for p in files if p in renames]
    if not moved or len(files) < total or 2 * len(moved) < total:
        return None
    new = {to.removesuffix(f"/{rest}") if to.endswith(f"/{rest}") else None for rest, to in moved}
    return new.pop() if len(new) == 1 else None


def rewrite(
    raw: str, form: Form, destination: Destination, document: str, target: str
) -> str | None:
    """The destination that leads from `document` to `target`, in the style of the old one.

    Kept: the anchor and query as written, `./` and other leading folders where they still lead
    there, a leading `/`, a closing `/`, percent-encoding. None when it cannot be kept.
    """
    if not destination.plain or not destination.path:
        return None
    path = f"/{target}" if destination.rooted else relative(destination.path, document, target)
    if destination.path.endswith("/") and not path.endswith("/"):
        path += "/"
    old = raw[: len(raw) - len(destination.suffix)]
    return _encoded(path, old, form) + destination.suffix


def relative(old: str, document: str, target: str) -> str:
    """`target` seen from `document`, with as many leading folders of `old` as still hold."""
    here = posixpath.dirname(document)
    parts = old.rstrip("/").split("/")
    for count in range(len(parts) - 1, 0, -1):
        prefix = "/".join(parts[:count])
        folder = posixpath.normpath(posixpath.join(here, prefix))
        folder = "" if folder == "." else f"{folder}/"
        if not folder.startswith("../") and target.startswith(folder):
            return f"{prefix}/{target[len(folder) :]}"
    return posixpath.relpath(target or ".", here or ".")


def _encoded(path: str, old: str, form: Form) -> str:
    """Escape what cannot stand there, and what the old destination escaped too."""
    unsafe = set('%?#\\<>"') | ({"'"} if form.html else set())
    if form in (Form.BARE, Form.UNQUOTED) or "%20" in old:
        unsafe.add(" ")
    if form is Form.BARE and not _balanced(path):
        unsafe |= set("()")
    if form is Form.UNQUOTED:
        unsafe |= set("'`=")
    everything = "%" in old and old.isascii()
    text = "".join(
        quote(c, safe="")
        if c in unsafe or not c.isprintable() or c == "|" or (everything and not c.isascii())
        else c
        for c in path
    )
    if ":" in text.split("/", 1)[0]:
        text = f"./{text}"
    return _ENTITY.sub("%26", text)


def _balanced(path: str) -> bool:
    depth = 0
    for c in path:
        depth += (c == "(") - (c == ")")
        if depth < 0:
            return False
    return depth == 0
