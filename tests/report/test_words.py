"""Durations, money, object ids and places, as people read them."""

from datetime import timedelta

import pytest

from orchestrator.model.config import Config
from orchestrator.model.names import SweepName
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.outcome import DispatchStarted
from orchestrator.report.layout import UNBROKEN, Look
from orchestrator.report.lines import event_line, problem_line
from orchestrator.report.text import explain_text, hint_lines
from orchestrator.report.words import (
    dollars,
    relative,
    shorten,
    span,
    split_problems,
    tokens,
)
from orchestrator.rules.facts import SweepState
from tests.report import samples
from tests.report.samples import DAY, NOW, TIP


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "less than a minute"),
        (59_999, "less than a minute"),
        (60_000, "1 min"),
        (3_599_999, "59 min"),
        (3_600_000, "1 h"),
        (5_400_000, "1 h 30 min"),
        (86_400_000, "1 d"),
        (86_400_000 + 59 * 60_000, "1 d"),
        (5 * 86_400_000 + 23 * 3_600_000 + 59 * 60_000, "5 d 23 h"),
        (999_999_999 * 86_400_000, "999,999,999 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(ms: int, said: str) -> None:
    assert span(ms) == said


@pytest.mark.parametrize(
    ("away", "said"),
    [
        (timedelta(0), "now"),
        (timedelta(days=5, hours=23), "in 5 d 23 h"),
        (timedelta(seconds=30), "in less than a minute"),
        (-timedelta(hours=3), "3 h ago"),
    ],
)
def test_an_instant_is_said_relative_to_now(away: timedelta, said: str) -> None:
    assert relative(NOW + away, NOW) == said


@pytest.mark.parametrize(
    ("amount", "said"),
    [(None, "$?"), (0, "$0"), (0.0123, "$0.0123"), (1, "$1.00"), (1234.5, "$1,234.50")],
)
def test_dollars(amount: float | None, said: str) -> None:
    assert dollars(amount) == said


def test_tokens_nobody_counted_are_a_question_mark_and_never_0() -> None:
    assert tokens(None, None) == "? in / ? out"
    assert tokens(1_234_567, 0) == "1,234,567 in / 0 out"


def test_object_ids_are_cut_to_nine_digits_in_sentences() -> None:
    assert shorten(f"refs/heads/run/x {TIP} is there") == "refs/heads/run/x 3f2c1a9d0 is there"
    assert shorten("a" * 64) == "a" * 9
    assert shorten("a" * 41) == "a" * 41


def _problem(key: str | None) -> Problem:
    return Problem(ErrorCode.CONFIG_ERROR, f"about {key}", key=key)


def test_a_problem_belongs_to_the_role_with_the_longest_fitting_name() -> None:
    """Roles may have dots in their names, and so do the keys' paths."""
    keys = ("schedules.a.every", "schedules.a.b.every", "roles.a.writes[1]", "roles.c", "shedules")
    problems = {key: _problem(key) for key in (*keys, None)}
    entries = {"a": samples.entry("a"), "a.b": samples.entry("a.b")}
    whole, of_role = split_problems(Config(schedules=entries, problems=tuple(problems.values())))
    assert of_role == {
        "a": (problems["schedules.a.every"], problems["roles.a.writes[1]"]),
        "a.b": (problems["schedules.a.b.every"],),
    }
    assert whole == (problems["roles.c"], problems["shedules"], problems[None])


def test_a_problem_is_one_line_with_its_place_commit_and_way_out() -> None:
    assert problem_line(samples.config_problem(), Look()) == (
        "orchestrator.yaml:6:12 @ 3f2c1a9d0: error: every must be a whole number followed by d, h "
        "or m, such as 7d; '1w' is not (schedules.scribe.every); write 7d"
    )


def test_a_hint_with_an_example_keeps_the_examples_lines() -> None:
    hint = "say how, for example:\nroles:\n  scout:\n    adapter: command"
    assert hint_lines(hint, UNBROKEN, "hint: ") == [
        "hint: say how, for example:",
        "      roles:",
        "        scout:",
        "          adapter: command",
    ]


def test_progress_says_who_starts_where_and_for_how_long() -> None:
    event = DispatchStarted(SweepName("historian", DAY), "builtin", 2700.0)
    assert (
        event_line(event)
        == "historian: builtin starts on run/historian-2026-11-23, for at most 45 min"
    )


def test_what_an_agent_said_cannot_reach_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[31mred\u202e\nnext line"
    branch = samples.branch("historian", DAY, SweepState.FAILED, failed=evil)
    found = samples.evaluation(samples.facts(branches=(branch,)), notes=(evil,))
    text = explain_text(found, Look())
    assert "red next line" in text
    assert "owned" not in text
    assert all(char == "\n" or char.isprintable() for char in text)


def test_a_very_long_role_name_still_fits() -> None:
    role = "r" * 100
    text = explain_text(samples.evaluation(samples.facts(role)), Look(80))
    assert max(map(len, text.splitlines())) <= 80
