"""Whether a path is one that git ignores, by the `.gitignore` files of a commit.

A file that was removed because it is ignored now (state, caches, a generated file) still appears
on everybody's disk: a document that names it is right.
"""

import posixpath
import re

from orchestrator.adapters.builtin.targets import Listing

_PIECE = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?[^\]\\/]+\]|\\.|[^*?\[\\]+|.", re.DOTALL)


class Ignored:
    """The `.gitignore` files of one commit, read as they are needed."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._rules: dict[str, list[tuple[re.Pattern[str], bool, bool]]] = {}

    def matches(self, path: str) -> bool:
        """Whether git would ignore `path` (a file): itself, or a folder that it is in."""
        parts = path.split("/")
        return any(
            self._decided("/".join(parts[:count]), is_folder=count < len(parts))
            for count in range(1, len(parts) + 1)
        )

    def _decided(self, path: str, *, is_folder: bool) -> bool:
        """The last rule that matches decides, and a deeper file comes after its parents'."""
        ignored = False
        folder = ""
        for part in ["", *posixpath.dirname(path).split("/")]:
            folder = f"{folder}{part}/" if part else folder
            inside = path[len(folder) :]
            for pattern, negated, only_folders in self._of(folder):
                if (is_folder or not only_folders) and pattern.fullmatch(inside):
                    ignored = not negated
        return ignored

    def _of(self, folder: str) -> list[tuple[re.Pattern[str], bool, bool]]:
        if folder not in self._rules:
            name = f"{folder}.gitignore"
            data = self._listing.read(name) if name in self._listing.files else None
            lines = (data or b"").decode("utf-8", "replace").splitlines()
            self._rules[folder] = [rule for line in lines if (rule := _rule(line)) is not None]
        return self._rules[folder]


def _rule(line: str) -> tuple[re.Pattern[str], bool, bool] | None:
    text = line.rstrip()
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    body = "".join(map(_translated, _PIECE.findall(text.removeprefix("/"))))
    try:
        return re.compile(body if anchored else f"(?:.*/)?{body}"), negated, only_folders
    except re.error:
        return None


def _translated(piece: str) -> str:
    known = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if piece in known:
        return known[piece]
    if len(piece) > 2 and piece[0] == "[":  # noqa: PLR2004 - an empty class is no class
        inside = re.sub(r"([\[&~|])", r"\\\1", piece[1:-1])
        return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(piece[1:] if piece[0] == "\\" and len(piece) > 1 else piece)
