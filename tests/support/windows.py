"""Windows without git: two sets of files, and what was renamed between them."""

import hashlib
from collections.abc import Callable, Mapping

from orchestrator.adapters.builtin.findings import Survey, Window
from orchestrator.adapters.builtin.mend import Mending, mend
from orchestrator.adapters.builtin.survey import survey
from orchestrator.adapters.builtin.targets import Listing
from orchestrator.git.history import _same_bytes
from orchestrator.model.names import Oid

Texts = Mapping[str, str | bytes]
FILE = 0o100644


def listing(texts: Texts, modes: Mapping[str, int] | None = None) -> Listing:
    data = {p: t.encode() if isinstance(t, str) else t for p, t in texts.items()}
    files = {
        p: ((modes or {}).get(p, FILE), Oid(hashlib.sha1(d).hexdigest()))  # noqa: S324
        for p, d in data.items()
    }
    return Listing(files, lambda path: data[path] if len(data[path]) <= 1024 * 1024 else None)


def window(
    start: Texts | None,
    end: Texts,
    renames: Mapping[str, str] | None = None,
    modes: Mapping[str, int] | None = None,
) -> Window:
    """Files with the same bytes count as renamed; `renames` adds others (changed ones)."""
    after = listing(end, modes)
    if start is None:
        return Window(after)
    before = listing(start)
    deleted = {p: f for p, f in before.files.items() if p not in after.files}
    added = {p: f for p, f in after.files.items() if p not in before.files}
    same, several = _same_bytes(deleted, added)
    modified = {p for p, f in after.files.items() if before.files.get(p, f) != f}
    return Window(
        after,
        before,
        frozenset(deleted),
        frozenset(modified),
        {**same, **(renames or {})},
        several,
    )


def surveyed(start: Texts | None, end: Texts, renames: Mapping[str, str] | None = None) -> Survey:
    return survey(window(start, end, renames))


def mended(
    start: Texts,
    end: Texts,
    renames: Mapping[str, str] | None = None,
    refusal: Callable[[str], str | None] = lambda _: None,
) -> Mending:
    compared = window(start, end, renames)
    return mend(survey(compared), compared.end, refusal)
