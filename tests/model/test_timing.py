"""The grammar of `every`, and the instants computed from it."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.timing import Every, elapsed_ms, from_epoch, iso, later, next_midnight

CASES: list[dict[str, Any]] = [
    case
    for case in json.loads(
        (Path(__file__).parents[2] / "fixtures" / "schedules.json").read_text("utf-8")
    )
    if re.fullmatch(r"every-(?:[0-9]+|huge-[0-9]|bom|fs)", case["id"])
]
NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)


def test_the_cases_of_the_grammar_are_all_there() -> None:
    assert len(CASES) == 34


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_is_read_as_the_case_says(case: dict[str, Any]) -> None:
    every = Every.parse(case["input"])
    got = {"error": True} if every is None else {"ms": every.ms}
    assert got in case["expect"].get("either", [case["expect"]])


def test_the_text_is_kept_as_written_but_trimmed() -> None:
    assert Every.parse("\t 007d\n") == Every("007d", 604_800_000)
    assert Every("90m", 5_400_000).seconds == 5400


@pytest.mark.parametrize("digits", [15, 16])
def test_fifteen_digits_are_read_and_sixteen_refused(digits: int) -> None:
    every = Every.parse("9" * digits + "d")
    assert (every is not None) == (digits == 15)


@given(st.text(max_size=20) | st.text(alphabet="0123456789dhmw \n\u0667", max_size=8))
def test_parsing_agrees_with_the_grammar_as_the_reference_has_it(text: str) -> None:
    every = Every.parse(text)
    if every is None:
        assert not re.fullmatch(r"0*[1-9][0-9]{0,10}[dhm]", text)
    else:
        assert re.fullmatch(r"[0-9]+[dhm]", every.text)
        assert every.text in text
        assert (
            every.ms
            == int(every.text[:-1]) * {"d": 86_400_000, "h": 3_600_000, "m": 60_000}[every.text[-1]]
        )
        assert every.ms > 0


def test_elapsed_time_is_absolute_and_rounded_down() -> None:
    berlin = timezone(timedelta(hours=1))
    assert elapsed_ms(datetime(2026, 11, 30, 3, tzinfo=berlin), NOW) == 0
    assert elapsed_ms(NOW, NOW + timedelta(microseconds=1999)) == 1
    assert elapsed_ms(NOW, NOW - timedelta(microseconds=1)) == -1


def test_later_than_the_calendar_is_none() -> None:
    assert later(NOW, 1000) == NOW + timedelta(seconds=1)
    assert later(NOW, 10**15) is None
    assert later(NOW, 10**30) is None


def test_the_next_midnight_is_in_utc() -> None:
    hawaii = timezone(timedelta(hours=-10))
    expected = datetime(2026, 12, 1, tzinfo=UTC)
    assert next_midnight(datetime(2026, 11, 30, 13, tzinfo=hawaii)) == expected
    assert next_midnight(datetime(2026, 11, 30, tzinfo=UTC)) == expected
    assert next_midnight(datetime.max.replace(tzinfo=UTC)) is None


def test_an_instant_is_written_in_utc_to_the_second() -> None:
    at = datetime(2026, 11, 30, 7, 30, 0, 999_999, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert iso(at) == "2026-11-30T02:00:00Z"
    assert iso(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00Z"


def test_a_git_time_beyond_the_calendar_is_clamped() -> None:
    assert from_epoch(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert from_epoch(-1) == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert from_epoch(10**18) == datetime.max.replace(tzinfo=UTC)
    assert from_epoch(-(10**18)) == datetime.min.replace(tzinfo=UTC)
