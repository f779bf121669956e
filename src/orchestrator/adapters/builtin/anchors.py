"""Headings -> anchors, the way GitHub makes them, and anchors that a document states itself."""

import re
import unicodedata

from orchestrator.adapters.builtin.document import Heading

_STATED = re.compile(r"\{:?[^{}#]{0,200}#([\w.:-]{1,200})[^{}]{0,200}\}$")
_MYST_TARGET = re.compile(r"^\(([\w.-]+)\)=\s*$", re.MULTILINE)


def slug(text: str) -> str:
    """A heading's anchor: lower case, letters, digits, marks, `-` and `_`; spaces become `-`."""
    kept = (
        c
        for c in text.strip().lower()
        if c in "-_ "
        or c.isalnum()
        or unicodedata.category(c)[0] == "M"
        or unicodedata.category(c) == "Pc"
    )
    return "".join(kept).replace(" ", "-")


class Anchors:
    """Collects a document's anchors in reading order; a repeated heading gets `-1`, `-2`, ..."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._headings: list[Heading] = []
        self._explicit: set[str] = set()

    def heading(self, text: str) -> None:
        """A heading's visible text. `{#name}` at its end states a second anchor."""
        text = text.strip()
        stated = _STATED.search(text)
        if stated:
            self.explicit(stated[1])
            text = text[: stated.start()]
        base = anchor = slug(text)
        while anchor in self._seen:
            self._seen[base] += 1
            anchor = f"{base}-{self._seen[base]}"
        self._seen[anchor] = 0
        self._headings.append(Heading(" ".join(text.split()), stated[1] if stated else anchor))

    def explicit(self, name: str) -> None:
        """An anchor stated by an `id` or `name`."""
        self._explicit.add(name.lower())

    @property
    def headings(self) -> tuple[Heading, ...]:
        return tuple(self._headings)

    @property
    def all(self) -> frozenset[str]:
        return frozenset(self._explicit | self._seen.keys())


def stated_targets(text: str) -> frozenset[str]:
    """MyST's `(name)=` lines."""
    return frozenset(m[1].lower() for m in _MYST_TARGET.finditer(text))
