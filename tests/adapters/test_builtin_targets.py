"""A destination as written, and the path it means: both ways."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.builtin.document import Form
from orchestrator.adapters.builtin.targets import (
    folder_rename,
    read_destination,
    rewrite,
    target_path,
)
from orchestrator.git.ignored import Ignored
from tests.support.windows import listing


@pytest.mark.parametrize(
    "raw",
    [
        "https://example.org/x.md", "mailto:a@example.org", "//cdn.example.org/x.js", "@site/x.md",
        "{{ base }}/x.md", "{% link x.md %}", "${ROOT}/x.md", "~/x.md", "<placeholder>", "...",
        "url", "", "a*b.md", "bad%ff.md", "nul%00.md", "C:\\x.md", "javascript:void(0)",
    ],
)  # fmt: skip
def test_what_is_not_a_path_of_this_repository_is_left_alone(raw: str) -> None:
    assert read_destination(raw, Form.BARE) is None


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("x.md", "docs/x.md"),
        ("./x.md#part", "docs/x.md"),
        ("../src/a.py?plain=1#L3", "src/a.py"),
        ("sub/", "docs/sub"),
        ("with%20blank.md", "docs/with blank.md"),
        ("..", "docs/.."),
        ("#part", "docs/a.md"),
        ("../../outside.md", None),
        ("/docs/x.md", "docs/x.md"),
        ("/img/logo.png", None),
        ("\\_x.md", "docs/_x.md"),
        ("a&amp;b.md", "docs/a&b.md"),
    ],
)
def test_a_destination_is_seen_from_its_document(raw: str, path: str | None) -> None:
    destination = read_destination(raw, Form.BARE)
    if path == "docs/..":
        assert destination is None  # too often a placeholder
        return
    assert destination is not None
    assert target_path(destination, "docs/a.md") == path


@pytest.mark.parametrize(
    ("raw", "form", "document", "target", "new"),
    [
        ("old.md", Form.BARE, "docs/a.md", "docs/new.md", "new.md"),
        ("./old.md#part", Form.BARE, "docs/a.md", "docs/new.md", "./new.md#part"),
        ("../src/old.py?p=1#L3", Form.BARE, "docs/a.md", "src/new.py", "../src/new.py?p=1#L3"),
        ("../docs/old.md", Form.BARE, "docs/a.md", "docs/sub/new.md", "../docs/sub/new.md"),
        ("old.md", Form.BARE, "docs/a.md", "other/old.md", "../other/old.md"),
        ("./old.md", Form.BARE, "docs/a.md", "other/old.md", "../other/old.md"),
        ("/docs/old.md", Form.BARE, "docs/a.md", "docs/new.md", "/docs/new.md"),
        ("old/", Form.BARE, "docs/a.md", "docs/new", "new/"),
        ("old%20one.md", Form.BARE, "a.md", "new one.md", "new%20one.md"),
        ("old one.md", Form.ANGLE, "a.md", "new one.md", "new one.md"),
        ("old.md", Form.BARE, "a.md", "new one.md", "new%20one.md"),
        ("%C3%A4.md", Form.BARE, "a.md", "ö.md", "%C3%B6.md"),
        ("ä.md", Form.BARE, "a.md", "ö.md", "ö.md"),
        ("old.md", Form.BARE, "a.md", "new (1).md", "new%20(1).md"),
        ("old.md", Form.BARE, "a.md", "new).md", "new%29.md"),
        ("old.md", Form.BARE, "a.md", "100%.md", "100%25.md"),
        ("old.md", Form.BARE, "a.md", "c#.md", "c%23.md"),
        ("old.md", Form.DOUBLE_QUOTED, "a.md", 'say "hi".md', "say %22hi%22.md"),
        ("old.md", Form.SINGLE_QUOTED, "a.md", "it's.md", "it%27s.md"),
        ("old.md", Form.UNQUOTED, "a.md", "a b.md", "a%20b.md"),
        ("old.md", Form.BARE, "a.md", "a&copy.md", "a%26copy.md"),
        ("old.md", Form.BARE, "a.md", "x:y.md", "./x:y.md"),
    ],
)  # fmt: skip
def test_a_rewritten_destination_keeps_the_style_of_the_old_one(
    raw: str, form: Form, document: str, target: str, new: str
) -> None:
    destination = read_destination(raw, form)
    assert destination is not None
    assert rewrite(raw, form, destination, document, target) == new


def test_a_destination_with_escapes_is_not_rewritten() -> None:
    destination = read_destination("o\\_ld.md", Form.BARE)
    assert destination is not None
    assert rewrite("o\\_ld.md", Form.BARE, destination, "a.md", "new.md") is None


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="/{}$<>*|\\"),
    min_size=1,
    max_size=8,
).filter(lambda name: name.strip(".") and not name.startswith(("~", "@")))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@given(document=PATHS, target=PATHS, old=PATHS, form=st.sampled_from(Form))
def test_a_rewritten_destination_leads_to_its_target(
    document: str, target: str, old: str, form: Form
) -> None:
    destination = read_destination(old, form)
    if destination is None or f"{document}/".startswith(f"{target}/"):
        return
    new = rewrite(old, form, destination, document, target)
    if new is None or destination.rooted:
        return
    again = read_destination(new, form)
    assert again is not None
    assert target_path(again, document) == target


def test_names_are_found_in_either_unicode_form() -> None:
    there = listing({"docs/u\u0308ber.md": ""})
    assert there.find("docs/\u00fcber.md") == "docs/u\u0308ber.md"
    assert there.find("docs/UBER.md") is None


def test_a_folder_follows_its_files_only_when_they_agree() -> None:
    start = listing({"old/a": "1", "old/b": "2", "old/c": "3"})
    gone = frozenset(start.files)
    assert folder_rename("old", start, {"old/a": "new/a", "old/b": "new/b"}, gone) == "new"
    assert folder_rename("old", start, {"old/a": "new/a", "old/b": "else/b"}, gone) is None
    assert folder_rename("old", start, {"old/a": "new/z", "old/b": "new/b"}, gone) is None
    assert folder_rename("old", start, {"old/a": "new/a"}, gone) is None
    some = frozenset({"old/a", "old/b"})
    assert folder_rename("old", start, {"old/a": "new/a", "old/b": "new/b"}, some) is None


@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("build/x.md", True),
        ("sub/build/x.md", True),
        ("logs/a.log", True),
        ("logs/keep.log", False),
        ("top.txt", True),
        ("sub/top.txt", False),
        ("sub/local.cfg", True),
        ("local.cfg", False),
        ("a/deep/down/z.tmp", True),
        ("x1.dat", True),
        ("xa.dat", False),
        ("kept.md", False),
    ],
)
def test_what_git_ignores_is_known_from_the_commit(path: str, ignored: bool) -> None:
    there = listing(
        {
            ".gitignore": (
                "# comment\nbuild/\n*.log\n!keep.log\n/top.txt\na/**/z.tmp\nx[0-9].dat\n[bad\n"
            ),
            "sub/.gitignore": "local.cfg\n",
        }
    )
    assert Ignored(there.contents).matches(path) is ignored
