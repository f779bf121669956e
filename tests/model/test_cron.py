"""Refusals of a cron expression, in full sentences."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator import zones
from orchestrator.model.cron import ALIASES, Cron, CronError
from orchestrator.model.localtime import cron_after, cron_count, cron_until


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("0 25 * * *", "cron `0 25 * * *`: `25` is out of range for the hour field (0-23)", None),
        ("* * * 13 *", "`13` is out of range for the month field (1-12)", None),
        ("* * * * 8", "`8` is out of range for the day of week field (0-7)", None),
        ("5-1 * * * *", "`5-1` runs backwards in the minute field (0-59)", "write 5-59,0-1"),
        ("0 0 * * FRI-SUN", "`FRI-SUN` runs backwards", "Sunday is also 7: write 5-7"),
        ("*/0 * * * *", "`*/0` has a step of 0", "write a step of 1 or more"),
        ("0 0 * * MONDAY", "`MONDAY` is not a value of the day of week field", "write MON"),
        ("0 0 MON * *", "`MON` is not a value", "MON belongs in the day of week field"),
        ("0 0 ? * *", "`?` is not a value, range or step", "write * for any value"),
        ("0 0 L * *", "`L` is not a value", "L, W, # and ? are extensions"),
        ("0 0 * * 5#2", "`5#2` is not a value, range or step", "extensions"),
        ("1,,2 * * * *", "the minute field (0-59) has an empty item", None),
        ("0 0 * *", "expected five fields (minute, hour,", "write for example 0 2 * * *"),
        ("0 0 2 * * *", "found 6", "no field for seconds or years"),
        ("@DAILY", "expected one of @hourly", "did you mean @daily?"),
        ("@every 5m", "expected one of @hourly", "write `interval: 5m`"),
        ("0 0 30 2 *", "cron `0 0 30 2 *`: it never fires", None),
        ("0 0 31 4,6,9,11 */2", "it never fires", None),
        ("9" * 500 + " * * * *", "…` is out of range for the minute field", None),
        ("*-5 * * * *", "`*-5` is not a value, range or step", None),
    ],
)
def test_a_wrong_expression_is_refused(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(CronError) as refused:
        Cron.parse(text)
    assert message in refused.value.message
    assert len(refused.value.message) < 300
    if hint is not None:
        assert hint in (refused.value.hint or "")


def test_an_alias_means_its_five_fields_and_keeps_its_name() -> None:
    for alias, plain in ALIASES.items():
        assert Cron.parse(alias)[1:] == Cron.parse(plain)[1:]
    assert Cron.parse("  @daily\n").text == "@daily"
    assert Cron.parse("0   2\t* * *").text == "0 2 * * *"


def test_a_day_that_comes_only_through_the_other_day_field_is_no_mistake() -> None:
    assert cron_after(
        Cron.parse("0 0 30 2 MON"), UTC, datetime(2026, 2, 1, tzinfo=UTC)
    ) == datetime(2026, 2, 2, tzinfo=UTC)


def test_a_leap_day_on_one_weekday_is_found_forty_years_on_and_back() -> None:
    cron = Cron.parse("0 0 29 2 */7")
    after = cron_after(cron, UTC, datetime(2060, 1, 1, tzinfo=UTC))
    assert after is not None
    assert (after.month, after.day, after.isoweekday()) == (2, 29, 7)
    assert cron_until(cron, UTC, after + timedelta(days=300)) == after


def test_the_calendar_ends_without_an_error() -> None:
    cron, berlin = Cron.parse("* * * * *"), zones.zone("Europe/Berlin")
    assert cron_after(cron, berlin, datetime.max.replace(tzinfo=UTC)) is None
    assert cron_until(cron, berlin, datetime.min.replace(tzinfo=UTC)) is None
    assert cron_after(cron, UTC, datetime.max.replace(tzinfo=UTC)) is None
    assert cron_until(Cron.parse("0 0 29 2 *"), UTC, datetime(1, 3, 1, tzinfo=UTC)) is None


def test_occurrences_are_counted_across_changes_of_the_clocks() -> None:
    cron, berlin = Cron.parse("*/30 * * * *"), zones.zone("Europe/Berlin")
    start = datetime(2026, 3, 1, tzinfo=UTC)
    for days in (0, 1, 40, 300):
        end, counted, at = start + timedelta(days=days), 0, start
        while (after := cron_after(cron, berlin, at)) is not None and after <= end:
            counted, at = counted + 1, after
        assert cron_count(cron, berlin, start, end) == counted
    assert cron_count(cron, berlin, start, start - timedelta(days=9)) == 0


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berlim", "did you mean Europe/Berlin?"),
        ("America/New York", "did you mean America/New_York?"),
        ("Europe", None),
        ("../Europe/Berlin", "did you mean Europe/Berlin?"),
        ("/etc/localtime", None),
        ("\0", None),
        ("", None),
    ],
)
def test_only_a_zone_of_the_package_s_list_is_one(name: str, hint: str | None) -> None:
    with pytest.raises(zones.ZoneError) as refused:
        zones.zone(name)
    if hint is not None:
        assert refused.value.hint == hint


def test_every_zone_of_the_list_can_be_read() -> None:
    for name in zones.names():
        assert datetime(2026, 7, 1, tzinfo=zones.zone(name)).utcoffset() is not None
