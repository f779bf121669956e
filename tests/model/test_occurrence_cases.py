"""The cron, dst, interval, jitter and catch-up cases of `fixtures/schedules.json`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator import zones
from orchestrator.model.cron import Cron, CronError
from orchestrator.model.occurrence import (
    INTERVAL_MIN_MS,
    Calendar,
    Catchup,
    Span,
    Zone,
    exact,
    jitter_ms,
)

ALL: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "schedules.json").read_text("utf-8")
)
UTC_ZONE = Zone("UTC", UTC)


def cases(*kinds: str, error: bool | None = None) -> list[Any]:
    found = [c for c in ALL if c["kind"] in kinds]
    if error is not None:
        found = [c for c in found if ("error" in c["expect"]) is error]
    return [pytest.param(c, id=c["id"]) for c in found]


def time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def following(calendar: Calendar, at: datetime, count: int) -> list[datetime]:
    found = []
    for _ in range(count):
        after = calendar.after(at)
        assert after is not None
        found.append(after)
        at = after
    return found


def check_next(case: dict[str, Any], calendar: Calendar) -> None:
    expect = case["expect"]
    wanted = [time(t) for t in expect.get("next") or expect["next_with_tzdata_2026f"]]
    at = time(case["from"])
    assert following(calendar, at, len(wanted)) == wanted
    for one in wanted:
        assert calendar.until(one) == one
        assert calendar.until(one + timedelta(microseconds=1)) == one
    assert calendar.between(at, wanted[-1]) == len(wanted)


@pytest.mark.parametrize("case", cases("cron", "dst", error=False))
def test_a_cron_expression_fires_when_the_case_says(case: dict[str, Any]) -> None:
    name = case["timezone"]
    check_next(case, Calendar(Cron.parse(case["input"]), None, Zone(name, zones.zone(name))))


@pytest.mark.parametrize("case", cases("cron", error=True))
def test_a_wrong_expression_or_zone_is_refused_with_a_sentence(case: dict[str, Any]) -> None:
    if case["id"].startswith("cron-type"):
        assert not isinstance(case["input"], str)  # the reader of the file refuses it unread
        return
    with pytest.raises((CronError, zones.ZoneError)) as refused:
        _ = (Cron.parse(case["input"]), zones.zone(case["timezone"]))
    assert isinstance(refused.value, CronError | zones.ZoneError)
    assert case["expect"].get("message_contains", "") in refused.value.message
    field = case["expect"]["field_or_reason"]
    if field in ("minute", "hour", "day of month", "month"):
        assert f"the {field} field" in refused.value.message


@pytest.mark.parametrize("case", cases("interval", error=False))
def test_an_interval_fires_on_its_grid(case: dict[str, Any]) -> None:
    start = time(case["start_at"]) if "start_at" in case else None
    check_next(case, Calendar(None, Span.parse(case["input"]), UTC_ZONE, start_at=start))


@pytest.mark.parametrize("case", cases("interval", error=True))
def test_a_wrong_interval_is_refused(case: dict[str, Any]) -> None:
    span = Span.parse(case["input"])
    assert span is None or span.ms < INTERVAL_MIN_MS


@pytest.mark.parametrize("case", [c for c in cases("jitter") if "vec" in str(c.id)])
def test_jitter_is_the_published_delay(case: dict[str, Any]) -> None:
    given = case["input"]
    delay = jitter_ms(given["schedule_id"], time(given["occurrence"]), given["jitter_ms"])
    assert delay == case["expect"]["delay_ms"]


def test_jitter_is_spread_below_its_limit_and_equal_wherever_it_is_computed() -> None:
    at = time("2026-11-15T19:00:00Z")
    hours = [at + timedelta(hours=n) for n in range(1000)]
    delays = [jitter_ms("hourly-check", hour, 30_000) for hour in hours]
    assert delays == [jitter_ms("hourly-check", hour, 30_000) for hour in hours]
    assert 0 <= min(delays) <= max(delays) < 30_000
    assert len(set(delays)) > 900
    assert jitter_ms("hourly-check", at, 1) == 0


def test_a_jitter_longer_than_the_gap_never_passes_the_next_occurrence() -> None:
    calendar = Calendar(None, Span.parse("1h"), UTC_ZONE, jitter=Span.parse("2h"))
    at = time("2026-11-15T00:00:00Z")
    dues = []
    for n in range(200):
        nominal = at + timedelta(hours=n)
        due = calendar.due_at("r", nominal)
        assert nominal <= due < nominal + timedelta(hours=1)
        dues.append(due)
    assert dues == sorted(dues)


def start_of(case: dict[str, Any]) -> tuple[datetime | None, Calendar, datetime, datetime]:
    """What would be started now, with the calendar, the floor and the clock of a catch-up case."""
    given, now = case["input"], time(case["now"])
    cron = Cron.parse(given["cron"]) if "cron" in given else None
    calendar = Calendar(
        cron,
        None if cron else Span.parse(given["interval"]),
        UTC_ZONE,
        catchup=Catchup(given["catchup"]),
        grace_ms=60_000,
    )
    first = time(given["next_fire"]) if "next_fire" in given else None
    floors = [time(given[k]) for k in ("paused_until", "updated_at", "created_at", "last_start")
              if k in given]  # fmt: skip
    floor = max([*floors, *([first - timedelta(microseconds=1)] if first else [])])
    if "delay_ms" in given:
        calendar = calendar._replace(jitter=Span("5m", 300_000))
        assert first is not None
        role = next(
            f"s{n}" for n in range(10**7) if jitter_ms(f"s{n}", first, 300_000) // 1000 == 200
        )
    else:
        role = "s"
    due = calendar.latest_due(role, now)
    if due is None or due <= floor or calendar.missed(role, due, now):
        return None, calendar, floor, now
    return due, calendar, floor, now


@pytest.mark.parametrize("case", cases("catchup"))
def test_after_downtime_the_case_s_occurrence_starts(case: dict[str, Any]) -> None:
    expect = case["expect"]
    found, calendar, floor, now = start_of(case)
    assert found == (time(expect["start"]) if expect["start"] else None)
    if "id" in expect:
        assert found is not None
        assert f"s:{exact(found)}" == expect["id"]
    if case["id"] == "catch-13-jitter-pending":
        assert calendar.until(now) == time(expect["next"])
        return
    if "next" in expect:
        assert calendar.after(now) == time(expect["next"])
    if "skipped" in expect:
        passed = calendar.between(floor, now)
        assert passed - (1 if found is not None else 0) == expect["skipped"]
