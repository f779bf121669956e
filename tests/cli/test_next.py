"""`orchestrator next`, and what `status` and `check` say about calendar schedules."""

from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from orchestrator.report.schemas import document_schema
from tests.cli.conftest import Run
from tests.support import repos

POLICY = """\
schedules:
  nightly:
    cron: 0 2 * * *
    timezone: Europe/Berlin
    description: Reconciles what was merged in the day.
  hourly-check: {interval: 1h, jitter: 30s}
  paused: {cron: "@daily", enabled: false}
  over: {cron: "@daily", end_at: 2026-11-01T00:00:00Z}
  wrong: {cron: 0 25 * * *}
  historian: {every: 7d}
roles:
  nightly: {adapter: builtin}
  hourly-check: {adapter: builtin}
  paused: {adapter: builtin}
  over: {adapter: builtin}
"""
AT = datetime(2026, 11, 15, 18, 51, tzinfo=UTC)


@pytest.fixture
def scheduled(tmp_path: Path) -> Path:
    return repos.make_repo(
        tmp_path / "scheduled", {"orchestrator.yaml": POLICY}, when=int(AT.timestamp()) - 60
    )


def test_the_next_occurrences_are_shown_in_utc_and_in_the_schedule_s_zone(
    run: Run, scheduled: Path
) -> None:
    ran = run("next", "nightly", "-n", 2, "-C", scheduled, now=AT)
    assert ran.out.splitlines() == [
        "error: cron `0 25 * * *`: `25` is out of range for the hour field (0-23)",
        "       (schedules.wrong.cron)",
        f"at:    orchestrator.yaml:9:17 @ {repos.tip(scheduled)[:9]}",
        'nightly  active  cron "0 2 * * *" Europe/Berlin',
        "  2026-11-16T01:00:00Z  2026-11-16 02:00+01:00  in 6 h 9 min",
        "  2026-11-17T01:00:00Z  2026-11-17 02:00+01:00  in 1 d 6 h",
    ]


def test_the_document_has_the_promised_form(run: Run, scheduled: Path) -> None:
    ran = run("next", "-n", 1, "--format", "json", "-C", scheduled, now=AT)
    assert ran.code == 1
    document = ran.json
    jsonschema.Draft202012Validator(document_schema("next")).validate(document)
    assert document["version"] == 1
    roles = {r.pop("role"): r for r in document["roles"]}
    assert roles["nightly"] == {
        "timezone": "Europe/Berlin",
        "state": "active",
        "next": [{"occurrence": "2026-11-16T01:00:00Z", "due_at": "2026-11-16T01:00:00Z"}],
    }
    assert roles["hourly-check"]["next"] == [
        {"occurrence": "2026-11-15T19:00:00Z", "due_at": "2026-11-15T19:00:12.359Z"}
    ]
    assert {name: r["state"] for name, r in roles.items()} == {
        "nightly": "active",
        "hourly-check": "active",
        "paused": "paused",
        "over": "ended",
        "wrong": "error",
        "historian": "active",
    }
    assert roles["historian"]["timezone"] is None
    assert roles["over"]["next"] == roles["paused"]["next"] == roles["wrong"]["next"] == []


def test_another_time_is_asked_about_strictly(run: Run, scheduled: Path) -> None:
    ran = run(
        "next", "nightly", "--at", "2026-11-16T01:00:00Z", "--format", "json", "-C", scheduled
    )
    found = [c["occurrence"] for c in ran.json["roles"][0]["next"]]
    assert found[0] == "2026-11-17T01:00:00Z"
    assert len(found) == 5
    assert run("next", "--at", "soon", "-C", scheduled).code == 2


def test_status_shows_the_timing_in_words(run: Run, scheduled: Path) -> None:
    ran = run("status", "-C", scheduled, now=AT)
    assert 'nightly: active, cron "0 2 * * *" Europe/Berlin: Reconciles what was' in ran.out
    assert "hourly-check: active, every 1h" in ran.out
    assert 'over: ended, cron "@daily" UTC' in ran.out
    document = run("status", "--format", "json", "-C", scheduled, now=AT).json
    assert [r["schedule_state"] for r in document["roles"]] == [
        "active", "active", "paused", "ended", "error", "active",
    ]  # fmt: skip
    assert document["roles"][0]["timing"] == 'cron "0 2 * * *" Europe/Berlin'


def test_check_warns_of_more_occurrences_than_days(run: Run, scheduled: Path) -> None:
    ran = run("check", "-C", scheduled, now=AT)
    assert "warning: it has several occurrences a day, of which the first that is due is" in ran.out
    assert ran.out.count("several occurrences") == 1
