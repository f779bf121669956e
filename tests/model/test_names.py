"""A sweep is a branch named for a role and a date: how the names are made and read."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.names import ROLE_MAX_LENGTH, SweepName, parse_date, role_problem

DAY = date(2026, 11, 30)


def test_the_names_of_one_sweep() -> None:
    sweep = SweepName("historian", DAY)
    assert sweep.slug == str(sweep) == "historian-2026-11-30"
    assert sweep.branch == "run/historian-2026-11-30"
    assert sweep.local_ref == "refs/heads/run/historian-2026-11-30"
    assert sweep.tracking_ref("up/stream") == "refs/remotes/up/stream/run/historian-2026-11-30"
    assert sweep.folder == "runs/historian-2026-11-30"
    assert sweep.marker_path == "runs/historian-2026-11-30/sweep.yaml"


@pytest.mark.parametrize(
    "role", ["a", "7", "historian", "doc-writer", "a.b_c-1", "A", "no", "123", "a" * 100, "x.locks"]
)
def test_a_good_role(role: str) -> None:
    assert role_problem(role) is None


@pytest.mark.parametrize(
    ("role", "says"),
    [
        ("", "empty"),
        ("a" * (ROLE_MAX_LENGTH + 1), "has 101"),
        ("a..b", "'..'"),
        ("a.lock", "'.lock'"),
        ("a.LOCK", "'.lock'"),
        ("-a", "starts and ends"),
        ("a-", "starts and ends"),
        (".a", "starts and ends"),
        ("a.", "starts and ends"),
        ("_a", "starts and ends"),
        ("a b", "letters, digits"),
        ("a/b", "letters, digits"),
        ("a\\b", "letters, digits"),
        ("a:b", "letters, digits"),
        ("a~1", "letters, digits"),
        ("a@{b", "letters, digits"),
        ("a\n", "letters, digits"),
        ("a\x00", "letters, digits"),
        ("h\u00e9ros", "letters, digits"),
        ("a\u0667", "letters, digits"),
        ("..", "letters, digits"),
    ],
)
def test_a_bad_role_is_told_why(role: str, says: str) -> None:
    assert says in (role_problem(role) or "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-31",
        "2025-02-29",
        "2026-1-1",
        "20261130",
        "2026-W49-1",
        "0000-01-01",
        "2026-11-30 ",
        "2026-11-30\n",
        "\u0662026-11-30",
        "+2026-11-3",
    ],
)
def test_what_is_no_day_of_the_calendar(text: str) -> None:
    assert parse_date(text) is None


def test_a_leap_day_is_a_day() -> None:
    assert parse_date("2024-02-29") == date(2024, 2, 29)


@pytest.mark.parametrize(
    ("slug", "role"),
    [
        ("historian-2026-11-30", "historian"),
        ("doc-writer-2026-11-30", "doc-writer"),
        ("doc-2026-01-01-2026-11-30", "doc-2026-01-01"),
        ("2026-11-30-2026-11-30", "2026-11-30"),
    ],
)
def test_a_slug_is_read_from_the_right(slug: str, role: str) -> None:
    assert SweepName.from_slug(slug) == SweepName(role, DAY)
    assert SweepName.from_branch(f"run/{slug}") == SweepName(role, DAY)


@pytest.mark.parametrize(
    "slug",
    [
        "",
        "historian",
        "-2026-11-30",
        "2026-11-30",
        "historian2026-11-30",
        "historian_2026-11-30",
        "historian-2026-11-31",
        "historian--2026-11-30",
        "historian-2026-11-30-",
        "historian-2026-11-30.lock",
        "historian-2026-11-30/x",
        "a/b-2026-11-30",
        "a.lock-2026-11-30",
    ],
)
def test_what_is_no_slug(slug: str) -> None:
    assert SweepName.from_slug(slug) is None


@pytest.mark.parametrize(
    "branch",
    ["main", "run", "run/", "runs/historian-2026-11-30", "run/x/historian-2026-11-30", "historian"],
)
def test_a_branch_that_is_no_sweep(branch: str) -> None:
    assert SweepName.from_branch(branch) is None


def test_the_day_of_a_sweep_is_the_utc_day() -> None:
    tokyo, hawaii = timezone(timedelta(hours=9)), timezone(timedelta(hours=-10))
    assert SweepName.on("a", datetime(2026, 12, 1, 8, 59, tzinfo=tokyo)).date == DAY
    assert SweepName.on("a", datetime(2026, 11, 30, 13, 59, tzinfo=hawaii)).date == DAY
    assert SweepName.on("a", datetime(2026, 11, 30, 23, 59, tzinfo=UTC)).date == DAY


def test_sweeps_of_a_role_order_by_day() -> None:
    days = [date(2026, 11, 30), date(2025, 12, 31), date(2026, 2, 1)]
    assert [s.date for s in sorted(SweepName("a", day) for day in days)] == sorted(days)


_ROLES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}", fullmatch=True).filter(
    lambda role: role_problem(role) is None
)


@given(_ROLES, st.dates())
def test_a_name_reads_back_from_its_slug_and_its_branch(role: str, day: date) -> None:
    sweep = SweepName(role, day)
    assert SweepName.from_slug(sweep.slug) == sweep
    assert SweepName.from_branch(sweep.branch) == sweep


@given(st.text(max_size=40) | st.from_regex(r"[a-z.-]{0,6}[0-9-]{8,12}", fullmatch=True))
def test_whatever_reads_as_a_slug_is_written_the_same(text: str) -> None:
    sweep = SweepName.from_slug(text)
    assert sweep is None or (sweep.slug == text and role_problem(sweep.role) is None)
