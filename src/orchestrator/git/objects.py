"""Git's raw objects, read and written as bytes: pure functions, no repository.

pygit2's own attributes raise on absurd dates and foreign encodings, cannot tell an absent entry
from an object a partial clone lacks, and cost 5 µs an entry; the formats are small and fixed.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from orchestrator.model.names import Oid

_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_PERSON = re.compile(rb"(.*?) ?<([^>]*)>(?: (-?[0-9]{1,18}) [+-][0-9]+)?", re.DOTALL)
_CRUD = "".join(map(chr, range(33))) + ".,:;<>\"\\'\x7f"


class Mode(IntEnum):
    """The modes a tree entry can have."""

    FOLDER = 0o040000
    FILE = 0o100644
    EXECUTABLE = 0o100755
    SYMLINK = 0o120000
    GITLINK = 0o160000


_KINDS = {0o04: "tree", 0o12: "symlink", 0o16: "gitlink"}


def kind_of(mode: int) -> str:
    """`blob`, `executable`, `symlink`, `tree` or `gitlink`; old trees also say 100664."""
    return _KINDS.get(mode >> 12, "executable" if mode & 0o100 else "blob")


_MODE_OF = {
    "tree": Mode.FOLDER,
    "blob": Mode.FILE,
    "executable": Mode.EXECUTABLE,
    "symlink": Mode.SYMLINK,
    "gitlink": Mode.GITLINK,
}


def mode_of(kind: str) -> int:
    """The mode git writes for a kind that `kind_of` names."""
    return int(_MODE_OF[kind])


class CommitInfo(NamedTuple):
    """One commit.

    Attributes:
        message: decoded as its encoding header says; what does not decode is replaced.
        time: when it was committed, seconds since 1970 UTC; 0 when it does not say.
        author: the author's name.
    """

    oid: Oid
    parents: tuple[Oid, ...]
    tree: Oid
    message: str
    time: int
    author: str


def read_tree(data: bytes) -> dict[bytes, tuple[int, Oid]]:
    """The entries of a raw tree object, `name -> (mode, oid)`, in its order.

    Raises:
        ValueError: these are not a tree's bytes.
    """
    found = _ENTRY.findall(data)
    # An entry is mode, blank, name, NUL and 20 bytes: nothing may lie between or after them.
    if sum([len(mode) + len(name) for mode, name, _ in found]) + 22 * len(found) != len(data):
        raise ValueError("not a tree")
    return {name: (int(mode, 8), Oid(oid.hex())) for mode, name, oid in found}


def write_tree(entries: Iterable[tuple[bytes, int, Oid]]) -> bytes:
    """The raw tree object of these (name, mode, oid), in git's order: a folder sorts as `name/`."""

    def order(entry: tuple[bytes, int, Oid]) -> bytes:
        return entry[0] + b"/" if entry[1] == Mode.FOLDER else entry[0]

    return b"".join(
        b"%o %s\0%s" % (mode, name, bytes.fromhex(oid))
        for name, mode, oid in sorted(entries, key=order)
    )


def edit_tree(data: bytes, changes: Mapping[bytes, tuple[int, Oid] | None]) -> bytes:
    """A raw tree object with some names set to (mode, id) or, with None, taken out.

    What stays is not looked at twice: a folder of thousands of runs gets one more for the price of
    a search in it.

    Raises:
        ValueError: `data` are not a tree's bytes.
    """
    entries = _ENTRY.findall(data)
    if _length(entries) != len(data):
        raise ValueError("not a tree")
    for name, change in changes.items():
        for key in (name, name + b"/"):  # as a file, or as a folder
            at = bisect_left(entries, key, key=_order)
            if at < len(entries) and entries[at][1] == name:
                start = _length(entries[:at])
                data = data[:start] + data[start + _length(entries[at : at + 1]) :]
                del entries[at]
        if change is not None:
            new = (b"%o" % change[0], name, bytes.fromhex(change[1]))
            at = bisect_left(entries, _order(new), key=_order)
            start = _length(entries[:at])
            data = data[:start] + b"%b %b\0%b" % new + data[start:]
            entries.insert(at, new)
    return data


def _order(entry: tuple[bytes, bytes, bytes]) -> bytes:
    """Git's order: a folder sorts as `name/`."""
    mode, name, _ = entry
    return name + b"/" if mode in (b"40000", b"040000") else name


def _length(entries: Sequence[tuple[bytes, bytes, bytes]]) -> int:
    """How many bytes these entries take: mode, blank, name, NUL and 20 bytes of id each."""
    return sum([len(mode) + len(name) for mode, name, _ in entries]) + 22 * len(entries)


def read_commit(oid: Oid, data: bytes) -> CommitInfo:
    """Read a raw commit object; a strange date, name or encoding is no error.

    Raises:
        ValueError: it names no tree, so these are not a commit's bytes.
    """
    head, _, body = data.partition(b"\n\n")
    tree, parents, fields = None, [], dict[bytes, bytes]()
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree" and tree is None:
            tree = _oid(value)
        elif key == b"parent":
            parents.append(_oid(value))
        else:
            fields.setdefault(key, value)
    if tree is None:
        raise ValueError("not a commit")
    author, committer = (_PERSON.match(fields.get(k, b"")) for k in (b"author", b"committer"))
    encoding = fields.get(b"encoding", b"utf-8").decode("ascii", "replace")
    return CommitInfo(
        oid,
        tuple(parents),
        tree,
        _decode(body, encoding),
        int(committer[3] or 0) if committer else 0,
        _decode(author[1], encoding) if author else "",
    )


def write_commit(
    tree: Oid, parents: Iterable[Oid], message: str, person: tuple[str, str], epoch: int
) -> bytes:
    """The raw commit object, author and committer one `person` (name, email), in UTC."""
    name, email = person
    who = f"{name} <{email}> {epoch} +0000"
    lines = [f"tree {tree}", *(f"parent {p}" for p in parents)]
    lines += [f"author {who}", f"committer {who}", "", message]
    return "\n".join(lines).encode("utf-8", "replace")


def clean_person(text: str) -> str:
    """`text` as git would take it for a name or email: no brackets, newlines or outer crud."""
    return re.sub(r"[<>\n\r\0]", "", text).strip(_CRUD)


def _oid(value: bytes) -> Oid:
    if not re.fullmatch(rb"[0-9a-f]{40}", value):
        raise ValueError("not an object id")
    return Oid(value.decode("ascii"))


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding, "replace")
    except (LookupError, ValueError):  # an unknown codec, or one that is not for text
        return data.decode("utf-8", "replace")
