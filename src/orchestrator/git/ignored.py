"""Whether a path is one that git ignores, by the `.gitignore` files of a commit.

Not by those on disk: an agent can write them. And not by git: nothing runs in an agent's folder.
"""

import os
import posixpath
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_LONGEST = 256 * 1024
"""A larger `.gitignore` is not read, bytes."""

_MISREAD = re.compile(r"\[[^]]*(?:\[|--|&&|~~|\|\|)")
"""In brackets, what git and the library's regular expressions do not read alike: `[[:alpha:]]`."""


class Ignored:
    """The `.gitignore` files of one commit, read as they are needed.

    Args:
        read: the contents of a file of the commit; None where there is none.
        never: a folder that is not ignored, nor what is in it, whatever the files say.
    """

    def __init__(self, read: Callable[[str], bytes | None], *, never: str | None = None) -> None:
        self._read = read
        self._never = never.split("/") if never else None
        self._rules: dict[str, GitIgnoreSpec] = {}

    def matches(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether git would ignore `path`: itself, or a folder that it is in."""
        parts = path.split("/")
        if self._never and all(a == b for a, b in zip(parts, self._never, strict=False)):
            return False
        above = ["/".join(parts[:count]) + "/" for count in range(1, len(parts))]
        return any(self._decided(p) for p in (*above, f"{path}/" if is_folder else path))

    def _decided(self, path: str) -> bool:
        """The deepest file with a rule that matches decides; a folder's path ends in a slash."""
        folder = posixpath.dirname(path.rstrip("/"))
        while True:
            start = f"{folder}/" if folder else ""
            found = self._of(start).check_file(path.removeprefix(start)).include
            if found is not None or not folder:
                return bool(found)
            folder = posixpath.dirname(folder)

    def _of(self, folder: str) -> "GitIgnoreSpec":
        if folder not in self._rules:
            from pathspec import GitIgnoreSpec  # only when something new is to be judged

            data = self._read(f"{folder}.gitignore") or b""
            text = os.fsdecode(data.removeprefix(BOM_UTF8)) if len(data) <= _LONGEST else ""
            self._rules[folder] = GitIgnoreSpec(p for line in text.split("\n") for p in _rule(line))
        return self._rules[folder]


def _rule(line: str) -> "list[GitIgnoreSpecPattern]":
    """A line's rule; none for a comment, nor for what git or the library does not understand."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if _MISREAD.search(line):
        return []
    with suppress(ValueError):
        return [GitIgnoreSpecPattern(line.removesuffix("\r"))]
    return []
