"""Edits: one rename, one destination, nothing else."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.adapters.builtin.document import Form
from orchestrator.adapters.builtin.targets import read_destination, target_path
from tests.support.windows import Texts, mended, window


def new_text(
    start: Texts, end: Texts, renames: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    return mended(start, end, renames).texts


@pytest.mark.parametrize(
    ("written", "mended_text"),
    [
        ("[a](src/old.py)", "[a](lib/new.py)"),
        ("[a](./src/old.py#L3 'title')", "[a](./lib/new.py#L3 'title')"),
        ("![a](<src/old.py>)", "![a](<lib/new.py>)"),
        ("[r]: src/old.py\n\n[r]", "[r]: lib/new.py\n\n[r]"),
        ('<a href="src/old.py?x=1">a</a>', '<a href="lib/new.py?x=1">a</a>'),
        ("see `src/old.py`", "see `lib/new.py`"),
        ("`python src/old.py --fast`", "`python lib/new.py --fast`"),
        (
            "| [a](src/old.py) | [a](src/old.py) |\n|---|---|\n",
            "| [a](lib/new.py) | [a](lib/new.py) |\n|---|---|\n",
        ),
        ("[`src/old.py`](src/old.py)", "[`lib/new.py`](lib/new.py)"),
        (
            "> [a](src/old.py)\r\n> `[b](src/old.py)`\r\n",
            "> [a](lib/new.py)\r\n> `[b](lib/new.py)`\r\n",
        ),
        ("\ufeff[a](src/old.py)", "\ufeff[a](lib/new.py)"),
    ],
)  # fmt: skip
def test_a_destination_follows_a_file_renamed_one_to_one(written: str, mended_text: str) -> None:
    start = {"README.md": written, "src/old.py": "print()"}
    end = {"README.md": written, "lib/new.py": "print()"}
    assert new_text(start, end) == {"README.md": mended_text}


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("in words src/old.py here", "in running text"),
        ("```\ncat src/old.py\n```", "in a code block"),
        ("see `src/old.py`\n<!-- @generated -->", "it says that it is generated"),
    ],
)
def test_what_is_not_edited_is_reported_with_its_reason(written: str, reason: str) -> None:
    start = {"README.md": written, "src/old.py": "print()"}
    result = mended(start, {"README.md": written, "lib/new.py": "print()"})
    assert (dict(result.texts), [k.reason for k in result.kept]) == ({}, [reason])


def test_nothing_outside_of_writes_is_edited() -> None:
    start = {"README.md": "[a](old.md)", "old.md": "x"}
    end = {"README.md": "[a](old.md)", "new.md": "x"}
    result = mended(start, end, refusal=lambda path: f"no: {path}")
    assert (result.edits, [k.reason for k in result.kept]) == ((), ["no: README.md"])


def test_a_folder_is_followed_and_keeps_its_closing_slash() -> None:
    text = "[f](old/) [g](old) [x](old/x.md)\n"
    start = {"a.md": text, "old/x.md": "1", "old/y.md": "2"}
    end = {"a.md": text, "new/x.md": "1", "new/y.md": "2"}
    assert new_text(start, end) == {"a.md": "[f](new/) [g](new) [x](new/x.md)\n"}


def test_a_rename_of_case_only_is_a_rename() -> None:
    start = {"a.md": "[x](docs/Setup.md)", "docs/Setup.md": "1"}
    end = {"a.md": "[x](docs/Setup.md)", "docs/setup.md": "1"}
    assert new_text(start, end) == {"a.md": "[x](docs/setup.md)"}


def test_a_document_that_moved_takes_its_links_along() -> None:
    text = "[x](x.md#part) [self](#part) [out](https://example.org)\n"
    start = {"docs/a.md": text, "docs/x.md": "# Part"}
    end = {"docs/deep/er/a.md": text, "docs/x.md": "# Part"}
    assert new_text(start, end) == {
        "docs/deep/er/a.md": text.replace("(x.md", "(../../x.md"),
    }


def test_a_document_and_its_target_moved_to_different_places() -> None:
    text = "[x](x.md)\n"
    start = {"docs/a.md": text, "docs/x.md": "1"}
    end = {"guide/a.md": text, "reference/x.md": "1"}
    assert new_text(start, end) == {"guide/a.md": "[x](../reference/x.md)\n"}


def test_a_document_and_its_target_moved_together_needs_nothing() -> None:
    text = "[x](x.md)\n"
    result = mended({"docs/a.md": text, "docs/x.md": "1"}, {"g/a.md": text, "g/x.md": "1"})
    assert (result.edits, result.kept) == ((), ())


def test_a_link_written_after_the_move_is_seen_from_the_new_place() -> None:
    start = {"docs/a.md": "text " * 20, "docs/x.md": "1", "x.md": "2"}
    end = {"sub/docs/a.md": "text " * 20 + "[x](x.md)", "docs/x.md": "1", "x.md": "2"}
    result = mended(start, end, {"docs/a.md": "sub/docs/a.md"})
    assert (result.edits, result.kept) == ((), ())


def test_a_lost_anchor_is_reported_beside_the_mended_path() -> None:
    start = {"a.md": "[x](old.md#one)", "old.md": "# One\n" + "text\n" * 9}
    end = {"a.md": "[x](old.md#one)", "new.md": "# Two\n" + "text\n" * 9}
    result = mended(start, end, {"old.md": "new.md"})
    assert result.texts == {"a.md": "[x](new.md#one)"}
    assert [k.finding.candidates for k in result.kept] == [("new.md#two",)]


def test_an_unmendable_spelling_is_reported() -> None:
    start = {"a.md": "[x](o\\_ld.md)", "o_ld.md": "1"}
    result = mended(start, {"a.md": "[x](o\\_ld.md)", "new.md": "1"})
    assert (result.edits, len(result.kept)) == ((), 1)


def test_a_path_seen_from_the_documents_folder_stays_so() -> None:
    start = {"docs/a.md": "`../src/old.py` `img/x.png`", "src/old.py": "1", "docs/img/x.png": "2"}
    end = {"docs/a.md": start["docs/a.md"], "src/new.py": "1", "docs/pics/x.png": "2"}
    assert new_text(start, end) == {"docs/a.md": "`../src/new.py` `pics/x.png`"}


NAME = st.sampled_from(
    ["a", "b", "c d", "é", "x(1", "e)", "100%", "f#1", "q?", "it's", 'w"', "&lt"]
)
FOLDER = st.lists(NAME, max_size=2)
TARGET = st.builds(lambda f, n: "/".join([*f, f"{n}.txt"]), FOLDER, NAME)
STYLE = st.sampled_from(
    [
        "[t]({})",
        "[t](<{}>)",
        "![t]({} 'title')",
        "[r]: <{}>\n",
        '<a href="{}">',
        "`{}`",
        "> [t]({})",
    ]
)


def _written(style: str, path: str) -> str:
    encoded = "".join(c if c.isalnum() or c in "/.-" else f"%{ord(c):02X}" for c in path)
    return style.format(encoded)


@settings(max_examples=100, deadline=None)
@given(
    places=st.lists(st.tuples(TARGET, TARGET), min_size=1, max_size=4, unique_by=lambda p: p[0]),
    styles=st.lists(STYLE, min_size=1, max_size=4),
    folder=st.sampled_from(["", "docs/", "docs/deep/"]),
)
def test_mending_changes_only_destinations_resolves_them_and_is_done_at_once(
    places: list[tuple[str, str]], styles: list[str], folder: str
) -> None:
    up = "../" * folder.count("/")
    text = "\n\n".join(_written(style, f"{up}old/{was}") for was, _ in places for style in styles)
    document = f"{folder}doc.md"
    start: dict[str, str | bytes] = {document: text}
    end: dict[str, str | bytes] = {document: text}
    for number, (was, now) in enumerate(places):
        start[f"old/{was}"] = f"file {number}"
        end[f"new/{number}/{now}"] = f"file {number}"
    result = mended(start, end)
    after = result.texts.get(document, text)

    # Only the destinations changed: put the old ones back and the old text is there again.
    at, back = 0, []
    moved = 0
    for edit in sorted(result.edits, key=lambda e: e.finding.start):
        begin = edit.finding.start + moved
        back += [after[at:begin], edit.finding.written]
        at = begin + len(edit.new)
        moved += len(edit.new) - len(edit.finding.written)
    assert "".join([*back, after[at:]]) == text

    # Every edited link resolves.
    there = window(None, end).end
    for edit in result.edits:
        if edit.finding.place is None:
            destination = read_destination(edit.new, edit.finding.form)
            assert destination is not None
            assert target_path(destination, document) == edit.finding.now
            assert edit.finding.now in there.files
    assert all(e.finding.form in Form for e in result.edits)

    # A second time there is nothing left to edit.
    again = mended({**start, document: after}, {**end, document: after})
    assert again.edits == ()
