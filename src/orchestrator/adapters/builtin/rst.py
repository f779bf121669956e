"""reStructuredText: the links and includes that name a file by a relative path. Reported, never
edited; roles such as `:doc:` are a site generator's business.
"""

import re

from orchestrator.adapters.builtin.document import (
    Document,
    Form,
    Link,
    Mention,
    Place,
    paths_named,
)

_DIRECTIVE = re.compile(
    r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?(?:include|literalinclude|image|figure)::[ \t]+(\S+)",
    re.MULTILINE,
)
_INLINE = re.compile(r"(?<![:\w`])`[^`<>]*<([^<>`\s]+)>`__?(?![\w`])")
_TARGET = re.compile(r"^[ \t]*\.\.[ \t]+_[^:\n]+:[ \t]+(\S+)[ \t]*$", re.MULTILINE)


def parse(text: str) -> Document:
    """Read a document. Every path named counts as text: nothing here is edited."""
    links = [
        Link(match[1], match.start(1), match.end(1), Form.BARE)
        for pattern in (_DIRECTIVE, _INLINE, _TARGET)
        for match in pattern.finditer(text)
        if not match[1].endswith("_")
    ]
    inside = [(link.start, link.end) for link in links]
    mentions = [
        Mention(path, start, end, Place.TEXT)
        for path, start, end in paths_named(text)
        if not any(s <= start < e for s, e in inside)
    ]
    return Document(tuple(sorted(links, key=lambda link: link.start)), tuple(mentions))
