"""Wrapping, columns and colour."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.report.layout import GLUE, Look, columns, pad, table, wrap


@given(st.text(max_size=300), st.integers(30, 100))
def test_a_wrapped_line_never_exceeds_the_width(text: str, width: int) -> None:
    for line in wrap(text, width, first="  label: "):
        assert columns(line) <= width


@given(st.text(alphabet="ab/ \u00e9\u4e2d", max_size=200))
def test_wrapping_loses_and_invents_nothing_but_spaces(text: str) -> None:
    assert "".join(wrap(text, 40)).replace(" ", "") == text.replace(" ", "")


def test_later_lines_hang_below_the_first_ones_text() -> None:
    assert wrap("one two three", 30, first="hint: ") == ["hint: one two three"]
    long = wrap("word " * 12, 30, first="hint: ")
    assert len(long) > 1
    assert all(line.startswith("      word") for line in long[1:])


def test_glued_words_stay_together() -> None:
    text = f"aaaaaaaaaaaaaaaaaaaaaaaa main{GLUE}@{GLUE}3f2c1a9d0"
    assert wrap(text, 40) == ["aaaaaaaaaaaaaaaaaaaaaaaa", "main @ 3f2c1a9d0"]


def test_glue_gives_way_where_a_line_is_too_short_for_it() -> None:
    ref = f"origin/run/historian-2026-11-30{GLUE}@{GLUE}3f2c1a9d0"
    assert wrap(ref, 36) == ["origin/run/historian-2026-11-30 @", "3f2c1a9d0"]


def test_a_path_longer_than_a_line_is_broken_after_a_slash() -> None:
    path = "documentation/architecture/decisions/0042-record.md"
    assert wrap(path, 40) == ["documentation/architecture/decisions/", "0042-record.md"]


def test_a_long_command_is_left_whole_so_that_it_can_be_copied() -> None:
    word = "x" * 120
    assert wrap(f"git push {word}", 80, break_words=False) == ["git push", word]


def test_wide_characters_take_two_columns() -> None:
    assert columns("\u4e2d\u6587") == 4
    assert columns("e\u0301") == 1
    assert pad("\u4e2d", 4) == "\u4e2d  "


def test_columns_of_a_table_are_aligned() -> None:
    rows = [("ROLE", "COST"), ("historian", "$0.01"), ("a", "$12.00")]
    assert table(rows, right=frozenset({1})) == [
        "ROLE         COST",
        "historian   $0.01",
        "a          $12.00",
    ]


@pytest.mark.parametrize("style", ["accent", "strong", "dim", "error"])
def test_colour_is_only_added_where_it_is_understood(style: str) -> None:
    assert getattr(Look(color=False), style)("word") == "word"
    colored = getattr(Look(color=True), style)("word")
    assert colored.startswith("\x1b[")
    assert colored.endswith("\x1b[0m")
