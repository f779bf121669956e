"""Raw objects: what git wrote is read, and what is written is what git would have written."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.git import objects
from orchestrator.model.names import Oid
from tests.support import repos

OID = Oid("1" * 40)


def commit(text: bytes) -> objects.CommitInfo:
    return objects.read_commit(OID, text)


def test_a_tree_is_read_and_written_as_git_does(tmp_path: Path) -> None:
    names = ("a", "a.b", "a-b", "ab", "caf\u00e9", "z z")
    files = {f"{name}/f" if n % 2 else name: f"{n}" for n, name in enumerate(names)}
    path = repos.make_repo(tmp_path / "r", files)
    repo = repos.opened(path)
    raw = repo.revparse_single("HEAD^{tree}").read_raw()
    entries = objects.read_tree(raw)
    shuffled = sorted((name, mode, oid) for name, (mode, oid) in entries.items())
    assert objects.write_tree(shuffled) == raw
    assert len(entries) == len(names)


def test_a_person_of_no_fixed_date_is_read() -> None:
    text = b"tree %s\nauthor A <a@x> 99999999999999999 +9999\ncommitter B <b> -5 -0000\n\nhi\n"
    info = commit(text % OID.encode())
    assert (info.author, info.time, info.message, info.parents) == ("A", -5, "hi\n", ())


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"author Ren\xe9 <r> 1 +0000\nencoding ISO-8859-1", "Ren\u00e9"),
        (b"author Ren\xe9 <r> 1 +0000", "Ren\ufffd"),
        (b"author Ren\xe9 <r> 1 +0000\nencoding rot13", "Ren\ufffd"),
        (b"author Ren\xe9 <r> 1 +0000\nencoding no-such", "Ren\ufffd"),
        (b"author <r> 1 +0000", ""),
        (b"author nobody", ""),
        (b"x y", ""),
    ],
)
def test_a_name_in_any_encoding_is_read(header: bytes, name: str) -> None:
    assert commit(b"tree %s\n%s\n\nm" % (OID.encode(), header)).author == name


def test_a_signed_commit_is_read() -> None:
    text = (
        b"tree %s\nauthor A <a> 1 +0000\ncommitter A <a> 7 +0000\ngpgsig -----BEGIN\n"
        b" tree 2222\n \n -----END\n\nsubject\n\nbody\n"
    ) % OID.encode()
    info = commit(text)
    assert (info.tree, info.time, info.message) == (OID, 7, "subject\n\nbody\n")


def test_a_written_commit_passes_gits_own_check(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    repo = repos.opened(path)
    tree = Oid(str(repo.head.peel().tree.id))
    data = objects.write_commit(tree, [repos.tip(path)], "Subject\n", ("A B", "a@x"), 0)
    done = repos.git(path, "hash-object", "-t", "commit", "-w", "--stdin", stdin=data)
    repos.git(path, "fsck", "--strict")
    assert repos.git(path, "log", "-1", "--format=%an <%ae> %at %s", done) == "A B <a@x> 0 Subject"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [("Ann <x>", "Ann x"), ("  Ann\n", "Ann"), ("<>", ""), (".,;", ""), ("A. B.", "A. B")],
)
def test_a_name_git_would_not_take_is_cleaned(text: str, cleaned: str) -> None:
    assert objects.clean_person(text) == cleaned


@given(st.binary(max_size=200))
def test_nonsense_is_a_value_error(data: bytes) -> None:
    for read in (objects.read_tree, lambda d: objects.read_commit(OID, d)):
        with contextlib.suppress(ValueError):
            read(data)


@given(st.binary(max_size=100))
def test_whatever_follows_a_tree_line_is_a_commit(data: bytes) -> None:
    try:
        info = objects.read_commit(OID, b"tree " + OID.encode() + b"\n" + data)
    except ValueError:
        assert b"parent" in data
    else:
        assert info.tree == OID


_NAMES = st.binary(min_size=1, max_size=6).filter(lambda n: not set(n) & set(b"/\0"))
_MODES = st.sampled_from([0o040000, 0o100644, 0o100755, 0o120000, 0o160000])
_OIDS = st.binary(min_size=20, max_size=20).map(lambda b: Oid(b.hex()))
_ENTRIES = st.dictionaries(_NAMES, st.tuples(_MODES, _OIDS), max_size=12)


@given(_ENTRIES, st.dictionaries(_NAMES, st.none() | st.tuples(_MODES, _OIDS), max_size=5))
def test_editing_a_tree_is_writing_the_edited_entries(
    entries: dict[bytes, tuple[int, Oid]], changes: dict[bytes, tuple[int, Oid] | None]
) -> None:
    raw = objects.write_tree((n, m, o) for n, (m, o) in entries.items())
    edited = {n: e for n, e in {**entries, **changes}.items() if e is not None}
    expected = objects.write_tree((n, m, o) for n, (m, o) in edited.items())
    assert objects.edit_tree(raw, changes) == expected


def test_bytes_that_are_no_tree_are_not_edited() -> None:
    with pytest.raises(ValueError, match="not a tree"):
        objects.edit_tree(b"100644 a\0short", {})
