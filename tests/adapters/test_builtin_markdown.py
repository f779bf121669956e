"""Where a document's destinations stand, to the character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.adapters.builtin import rst
from orchestrator.adapters.builtin.anchors import slug
from orchestrator.adapters.builtin.document import Document, Form, Lines, Place, paths_named
from orchestrator.adapters.builtin.markdown import parse
from orchestrator.adapters.builtin.scan import anchors_at_a_glance, scan

DOCUMENT = """---
title: "[not a link](front.md)"
---
# Head [line](in-heading.md)

> A quote with [a link](<a b.md#x> "title") and `src/app/core.py`,
>   and a second ![image](../img/x.png) line.

| one | two |
|---|---|
| [a](cell.md) | [a](cell.md) and `lib/a.py` |

- item [![badge](badge.svg)](behind-badge.md)
    - nested [over
      two lines](
      nested.md)

[ref]: ./defined.md#top 'title'
[other]: <defined too.md>
[^1]: footnote.md

Used [ref], [text][other], `[no](code.md)`, \\[no](escaped.md), <https://example.org/a.md>.

<a href="html.md" id="Stated">x</a> <img src='single.png'> <!-- <a href="comment.md"> -->

<p align=center><img src=bare.png></p>

```sh
cat src/fenced.py  # [no](fenced.md)
```

    indented [no](indented.md)

Setext [s](setext.md)
======
## Twice
## Twice
## Named {#my-name}
"""

LINKS = [
    ("in-heading.md", Form.BARE),
    ("a b.md#x", Form.ANGLE),
    ("../img/x.png", Form.BARE),
    ("cell.md", Form.BARE),
    ("cell.md", Form.BARE),
    ("badge.svg", Form.BARE),
    ("behind-badge.md", Form.BARE),
    ("nested.md", Form.BARE),
    ("./defined.md#top", Form.BARE),
    ("defined too.md", Form.ANGLE),
    ("html.md", Form.DOUBLE_QUOTED),
    ("single.png", Form.SINGLE_QUOTED),
    ("bare.png", Form.UNQUOTED),
    ("setext.md", Form.BARE),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_destination_is_found_where_it_stands(newline: str) -> None:
    text = DOCUMENT.replace("\n", newline)
    document = parse(text)
    links = [link for link in document.links if not link.raw.startswith("https:")]
    assert [(link.raw, link.form) for link in links] == LINKS
    assert all(text[link.start : link.end] == link.raw for link in document.links)
    assert len({link.start for link in links}) == len(LINKS)


def test_paths_are_told_apart_by_where_they_are_named() -> None:
    found = [(m.path, m.place) for m in parse(DOCUMENT).mentions]
    assert found == [
        ("src/app/core.py", Place.CODE),
        ("lib/a.py", Place.CODE),
        ("src/fenced.py", Place.FENCE),
    ]


def test_anchors_are_those_of_the_headings_and_the_stated_ones() -> None:
    document = parse(DOCUMENT)
    assert [h.anchor for h in document.headings] == [
        "head-line",
        "setext-s",
        "twice",
        "twice-1",
        "my-name",
    ]
    assert {"stated", "named", "my-name"} <= document.anchors


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Hello, World!", "hello-world"),
        ("`code` & more", "code--more"),
        ("Über uns", "über-uns"),
        ("snake_case and-dash", "snake_case-and-dash"),
        ("1.2 Version", "12-version"),
    ],
)
def test_an_anchor_is_made_as_github_makes_it(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_repeated_heading_never_takes_an_anchor_twice() -> None:
    document = parse("# a\n# a\n# a-1\n# a\n")
    assert [h.anchor for h in document.headings] == ["a", "a-1", "a-1-1", "a-2"]


def test_a_byte_order_mark_and_a_nul_do_not_move_anything() -> None:
    text = "\ufeff# T\n\nx\0y [a](b.md)\n"
    document = parse(text)
    assert [text[link.start : link.end] for link in document.links] == ["b.md"]
    assert document.anchors == {"t"}


def test_a_glance_knows_the_anchors_of_plain_headings() -> None:
    assert {"setext-s", "twice", "twice-1", "stated"} <= anchors_at_a_glance(DOCUMENT)


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/a/b.py",
        "git@example.org:a/b.py",
        "$HOME/a/b.py",
        "/etc/a/b.conf",
        "~/a/b.py",
        "a/b",
        "a/*.py",
        "{a}/b.py",
        "a/b.py/c",
        "python/3.11",
    ],
)
def test_what_only_looks_like_a_path_is_none(text: str) -> None:
    assert [path for path, _, _ in paths_named(text) if path in ("a/b.py", text)] == []


@pytest.mark.parametrize(
    "text", ["src/a.py", "(src/a.py)", "src/a.py:12", "src/a.py.", "src/a.py,"]
)
def test_a_path_ends_where_its_name_ends(text: str) -> None:
    assert [path for path, _, _ in paths_named(text)] == ["src/a.py"]


def test_restructured_text_gives_its_includes_and_relative_links() -> None:
    text = (
        ".. include:: ../shared/intro.rst\n\n"
        "See `the guide <guide/start.rst>`_ and :doc:`other <page>`, ``src/a/b.py``.\n\n"
        ".. _home: https://example.org/\n.. image:: img/x.png\n"
    )
    document = rst.parse(text)
    assert [link.raw for link in document.links if "://" not in link.raw] == [
        "../shared/intro.rst",
        "guide/start.rst",
        "img/x.png",
    ]
    assert [m.path for m in document.mentions] == ["src/a/b.py"]


def test_lines_are_counted_as_markdown_counts_them() -> None:
    lines = Lines("a\u2028b\nc\r\nd\re")
    assert lines.text == ["a\u2028b", "c", "d", "e"]
    assert [lines.number(i) for i in (0, 2, 4, 7, 9)] == [1, 1, 2, 3, 4]


PIECES = st.sampled_from(
    [
        "[a](x.md)", "![b](<y z.md>)", "`code [n](n.md)`", "> ", "- ", "\n", "\n\n", "  ", "\t",
        "```\n", "| ", "|---|\n", "[r]: ref.md\n", "<a href='h.md'>", "# ", "(", ")", "[", "]",
        "`", "\\", "word ", "a/b.py ", "<!--", "-->", "é", "\r\n", "*", "1. ",
    ]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_a_place_always_holds_what_was_read_there_and_the_scan_saw_it(text: str) -> None:
    document: Document = parse(text)
    assert all(text[link.start : link.end] == link.raw for link in document.links)
    assert all(text[m.start : m.end] == m.path for m in document.mentions)
    assert {link.raw for link in document.links} <= {link.raw for link in scan(text)}
