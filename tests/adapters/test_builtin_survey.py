"""What counts as broken in a window, and what does not."""

import pytest

from orchestrator.adapters.builtin.findings import Kind, is_document
from orchestrator.adapters.builtin.survey import survey
from tests.support.windows import surveyed, window


def said(start: dict[str, str], end: dict[str, str], **renames: str) -> list[tuple[object, ...]]:
    found = surveyed(start, end, renames or None)
    return [(f.document, f.line, f.kind.value, f.written, f.now) for f in found.findings]


@pytest.mark.parametrize(
    ("path", "yes"),
    [
        ("README.md", True),
        ("docs/testing.md", True),
        ("docs/a.rst", True),
        ("docs/vendoring.mdx", True),
        ("CHANGELOG.md", False),
        ("docs/release-notes.md", False),
        ("node_modules/x/README.md", False),
        ("tests/data/a.md", False),
        ("a/fixtures/b.md", False),
        ("runs/historian-2026-11-30/docs-delta.md", False),
        ("src/a.py", False),
    ],
)
def test_documents_are_what_somebody_maintains(path: str, yes: bool) -> None:
    assert is_document(path) is yes


def test_a_link_to_a_removed_file_broke_in_the_window() -> None:
    start = {"README.md": "x\n\n[a](docs/a.md)\n", "docs/a.md": "gone soon"}
    assert said(start, {"README.md": start["README.md"]}) == [
        ("README.md", 3, "link", "docs/a.md", None)
    ]


def test_a_link_that_never_resolved_is_only_counted() -> None:
    text = {"README.md": "[a](docs/none.md) `[b](in-code.md)`\n\n```\n[c](fenced.md)\n```\n"}
    found = surveyed(text, text)
    assert (found.findings, found.old_breakage) == ((), 1)


def test_on_a_first_sweep_nothing_is_broken_in_the_window() -> None:
    found = surveyed(None, {"README.md": "[a](none.md) `src/gone.py`"})
    assert (found.findings, found.old_breakage, found.stale) == ((), 1, {})


def test_a_link_in_code_is_not_a_link() -> None:
    start = {"README.md": "`[a](a.md)`\n\n    [a](a.md)\n\n<!-- [a](a.md) -->\n", "a.md": "x"}
    assert said(start, {"README.md": start["README.md"]}) == []


def test_what_site_generators_answer_is_not_broken() -> None:
    page = "[a](guide) [b](page.html) [c](../img/x.png) ![d](e.png) [f](/site/absolute.png)\n"
    start = {
        "docs/de/index.md": page,
        "docs/de/guide": "", "docs/de/page.html": "",
        "docs/img/x.png": "1", "docs/de/e.png": "2", "site/absolute.png": "3",
    }  # fmt: skip
    end = {
        "docs/de/index.md": page,
        "docs/de/guide.md": "", "docs/de/page.rst": "",
        "docs/de/img/x.png": "other", "docs/en/e.png": "2b",
    }  # fmt: skip
    assert said(start, end) == []


def test_a_file_that_is_ignored_now_is_still_on_everybodys_disk() -> None:
    start = {"README.md": "`state/db.json` [it](state/db.json)", "state/db.json": "{}"}
    assert said(start, {"README.md": start["README.md"], ".gitignore": "state/\n"}) == []


def test_a_path_named_in_the_text_is_broken_when_its_file_is_gone() -> None:
    start = {
        "docs/a.md": "`src/a.py` and src/b.py:3\n\n```sh\nrun src/c.py\n```\n",
        "src/a.py": "a", "src/b.py": "b", "src/c.py": "c",
    }  # fmt: skip
    assert said(start, {"docs/a.md": start["docs/a.md"], "lib/b.py": "b"}) == [
        ("docs/a.md", 1, "path", "src/a.py", None),
        ("docs/a.md", 1, "path", "src/b.py", "lib/b.py"),
        ("docs/a.md", 4, "path", "src/c.py", None),
    ]


def test_a_path_named_only_since_the_file_is_gone_tells_of_the_past() -> None:
    start = {"docs/a.md": "before", "src/a.py": "a"}
    assert said(start, {"docs/a.md": "`src/a.py` was removed"}) == []


def test_a_line_that_tells_of_the_rename_itself_is_right() -> None:
    text = "move `src/a.py` to `lib/a.py`"
    assert said({"d.md": text, "src/a.py": "a"}, {"d.md": text, "lib/a.py": "a"}) == []


def test_a_lost_heading_breaks_its_links_and_its_successor_is_suggested() -> None:
    start = {"a.md": "[x](b.md#old-name) [y](b.md#kept)\n", "b.md": "# Kept\n# Old name\n# End\n"}
    end = {"a.md": start["a.md"], "b.md": "# Kept\n# New name\n# End\n"}
    (found,) = surveyed(start, end).findings
    assert (found.kind, found.anchor, found.target) == (Kind.ANCHOR, "old-name", "b.md")
    assert found.candidates == ("b.md#new-name",)


def test_a_lost_heading_has_no_successor_when_several_things_changed_there() -> None:
    start = {"a.md": "[x](#old)\n\n# Old\n# Other\n"}
    (found,) = surveyed(start, {"a.md": "[x](#old)\n\n# New\n# Also new\n"}).findings
    assert (found.kind, found.candidates) == (Kind.ANCHOR, ())


@pytest.mark.parametrize(
    "after", ["# Old {#old}\n", '<a id="old"></a>\n', "(old)=\n# New\n", "Old\n---\n"]
)
def test_an_anchor_may_come_to_be_stated_otherwise(after: str) -> None:
    assert said({"a.md": "[x](#old)\n\n# Old\n"}, {"a.md": f"[x](#old)\n\n{after}"}) == []


def test_several_files_with_the_same_bytes_are_suggestions() -> None:
    start = {"a.md": "[x](old.txt)", "old.txt": "same"}
    (found,) = surveyed(start, {"a.md": "[x](old.txt)", "b.txt": "same", "c.txt": "same"}).findings
    assert (found.now, found.candidates) == (None, ("b.txt", "c.txt"))


def test_a_page_in_another_format_is_a_suggestion() -> None:
    start = {"a.md": "[x](docs/p.rst)", "docs/p.rst": "old words"}
    (found,) = surveyed(start, {"a.md": "[x](docs/p.rst)", "docs/p.md": "new ones"}).findings
    assert (found.now, found.candidates) == (None, ("docs/p.md",))


def test_names_that_differ_only_in_unicode_form_are_the_same() -> None:
    start = {"a.md": "[x](\u00fcber.md)", "u\u0308ber.md": "x"}
    assert said(start, start) == []


def test_an_untouched_document_that_names_changed_files_is_worth_a_look() -> None:
    start = {
        "d.md": "`src/a.py` [b](src/b.py) [m](m.md)",
        "src/a.py": "1",
        "src/b.py": "1",
        "m.md": "1",
    }
    end = {**start, "src/a.py": "2", "src/b.py": "2", "m.md": "2"}
    assert surveyed(start, end).stale == {"d.md": ("src/a.py", "src/b.py")}
    assert surveyed(start, {**end, "d.md": start["d.md"] + "!"}).stale == {}


def test_a_root_file_named_in_a_guide_is_the_readers_own() -> None:
    start = {
        "pyproject.toml": "a",
        "docs/g.md": "Write `./pyproject.toml`",
        "d.md": "Read `./pyproject.toml`",
    }
    end = {**start, "pyproject.toml": "b"}
    assert surveyed(start, end).stale == {"d.md": ("pyproject.toml",)}


def test_runs_are_looked_for_by_name() -> None:
    compared = window(None, {"d.md": "see runs/fix-the-door/notes.md"})
    assert survey(compared, frozenset({"fix-the-door", "other"})).mentioned == {"fix-the-door"}


def test_what_cannot_be_read_is_said_and_what_is_odd_is_not_edited() -> None:
    end: dict[str, str | bytes] = {
        "big.md": "x" * (1024 * 1024 + 1), "latin.md": b"caf\xe9", "b\udce9.md": "x",
        "gen.md": "<!-- DO NOT EDIT: generated -->", "a.rst": "x",
    }  # fmt: skip
    found = survey(window(end, end))
    assert sorted(found.unread) == ["big.md", "b\udce9.md"]
    assert sorted(found.locked) == ["a.rst", "gen.md", "latin.md"]


def test_a_symlink_is_no_document() -> None:
    compared = window(None, {"a.md": "b.md"}, modes={"a.md": 0o120000})
    assert survey(compared).documents == 0
