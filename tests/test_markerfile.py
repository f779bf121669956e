"""Markers: read whoever wrote them, written one way only."""

import json
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from orchestrator.markerfile import COUNT_MAX, MarkerError, instant, read_marker, render_marker
from orchestrator.model.marker import Marker, MarkerReading
from orchestrator.model.names import SweepName
from orchestrator.model.timing import Every
from orchestrator.yamlio import MAX_BYTES

FIXTURES = Path(__file__).parent.parent / "fixtures" / "markers"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FIXTURES / "expected.json").read_text("utf-8"))
SWEEP = SweepName("historian", date(2026, 11, 30))
AT = datetime(2026, 11, 30, 2, tzinfo=UTC)
READABLE = sorted(name for name, expected in EXPECTED.items() if "error" not in expected)
BROKEN = sorted(name for name, expected in EXPECTED.items() if "error" in expected)


def _as_json(reading: MarkerReading) -> dict[str, Any]:
    values: dict[str, Any] = {
        "at": reading.at.isoformat(),
        "covering_since": reading.covering_since and reading.covering_since.isoformat(),
        "every": reading.every,
        "adapter": reading.adapter,
        "model": reading.model,
        "cost_limit_usd": reading.cost_limit_usd,
        "tokens_in": reading.tokens_in,
        "tokens_out": reading.tokens_out,
        "cost_usd": reading.cost_usd,
        "failed": reading.failed,
    }
    return {key: value for key, value in values.items() if value is not None}


def test_every_marker_fixture_has_an_expectation() -> None:
    assert {path.name for path in FIXTURES.glob("*.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("name", READABLE)
def test_a_marker_by_other_hands_is_read(name: str) -> None:
    reading = read_marker((FIXTURES / name).read_bytes(), SWEEP)
    assert _as_json(reading) == EXPECTED[name]
    assert reading.sweep == SWEEP
    assert reading.at.tzinfo is UTC


@pytest.mark.parametrize("name", BROKEN)
def test_a_marker_that_cannot_be_relied_on_is_refused_at_its_line(name: str) -> None:
    with pytest.raises(MarkerError) as caught:
        read_marker((FIXTURES / name).read_bytes(), SWEEP)
    assert EXPECTED[name]["error"] in caught.value.message
    assert caught.value.line == EXPECTED[name]["line"]
    assert caught.value.column is not None


def test_a_marker_larger_than_the_limit_is_refused() -> None:
    data = b"at: 2026-11-30T02:00:00Z\n".ljust(MAX_BYTES + 1, b"#")
    with pytest.raises(MarkerError, match="larger than 65536 bytes"):
        read_marker(data, SWEEP)


def test_a_role_that_looks_like_a_number_is_not_a_contradiction() -> None:
    sweep = SweepName("123", date(2026, 11, 30))
    assert read_marker(b"role: 123\nat: 2026-11-30\n", sweep).sweep == sweep


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T02:00:00Z", AT),
        ("2026-11-30t02:00:00z", AT),
        (" 2026-11-30T02:00:00Z\n", AT),
        ("2026-11-30 02:00:00 UTC", AT),
        ("2026-11-30T02:00:00+0000", AT),
        ("2026-11-30T07:30:00+05:30", AT),
        ("2026-11-30T02:00:00,5Z", AT + timedelta(milliseconds=500)),
        ("2026-11-29T02:00:00-24:00", AT),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_the_same_instant_in_many_spellings(text: str, expected: datetime) -> None:
    assert instant(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        "2026-11",
        "20261130",
        "20261130T020000Z",
        "2026-W49-1",
        "2026-334",
        "2025-02-29",
        "2026-13-01",
        "2026-00-01",
        "0000-01-01",
        "2026-11-30T",
        "2026-11-30T02",
        "2026-11-30T02:60:00Z",
        "2026-11-30T02:00:60Z",
        "2026-11-30T02:00:00.Z",
        "2026-11-30T02:00:00+00:60",
        "2026-11-30T02:00:00+99:99",
        "2026-11-30T02:00:00CET",
        "2026-11-30T02:00:00ZZ",
        "2026-11-30T02:00:00Z\x00",
        "2026-11-30\u00a0",
        "٢٠٢٦-11-30",
        "+2026-11-30",
        "0001-01-01T00:00:00+24:00",
        "9999-12-31T23:59:59-24:00",
    ],
)
def test_what_is_no_instant_is_none_and_never_raises(text: str) -> None:
    assert instant(text) is None


def _marker(**changes: Any) -> Marker:
    values: dict[str, Any] = {
        "sweep": SWEEP,
        "every": "7d",
        "at": AT,
        "covering_since": None,
        "adapter": "builtin",
        "model": None,
        "cost_limit_usd": 5.0,
    }
    return Marker(**(values | changes))


def test_an_intent_marker_has_every_key_in_order_and_unknown_usage() -> None:
    assert render_marker(_marker()).decode() == (
        "sweep: historian-2026-11-30\n"
        "role: historian\n"
        "every: 7d\n"
        "at: 2026-11-30T02:00:00Z\n"
        "covering_since: null\n"
        "adapter: builtin\n"
        "model: null\n"
        "cost_limit_usd: 5\n"
        "tokens_in: null\n"
        "tokens_out: null\n"
        "cost_usd: null\n"
    )


def test_failed_comes_last_and_only_when_it_failed() -> None:
    text = render_marker(_marker(cost_usd=0.0123, failed="exit 1: no such file")).decode()
    assert text.endswith('cost_usd: 0.0123\nfailed: "exit 1: no such file"\n')


@pytest.mark.parametrize("name", ["intent.yaml", "closed.yaml", "failed.yaml", "first.yaml"])
def test_rendering_what_a_fixture_says_gives_the_fixture_byte_for_byte(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    reading = read_marker(data, SWEEP)
    marker = _marker(
        at=reading.at,
        covering_since=reading.covering_since,
        adapter=reading.adapter,
        model=reading.model,
        cost_limit_usd=None if name == "first.yaml" else 5.0,
        tokens_in=reading.tokens_in,
        tokens_out=reading.tokens_out,
        cost_usd=reading.cost_usd,
        failed=reading.failed,
    )
    assert render_marker(marker) == data


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (5.0, "5"),
        (5, "5"),
        (0.0123, "0.0123"),
        (0.1 + 0.2, "0.3"),
        (1e-7, "0"),
        (-0.0, "0"),
        (100.0, "100"),
        (1e16, "10000000000000000"),
        (0.000001, "0.000001"),
        (float("nan"), "null"),
        (float("inf"), "null"),
        (-1.0, "null"),
    ],
)
def test_money_has_at_most_six_decimals_and_no_exponent(amount: float, text: str) -> None:
    assert f"\ncost_usd: {text}\n" in render_marker(_marker(cost_usd=amount)).decode()


@pytest.mark.parametrize(
    "word", ["no", "yes", "on", "null", "~", "true", "1", "1e3", "1_000", "0x1f", "2026-11-30", ""]
)
def test_a_word_that_some_reader_takes_for_something_else_is_quoted(word: str) -> None:
    assert f'\nmodel: "{word}"\n' in render_marker(_marker(model=word)).decode()


_ROLES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?", fullmatch=True).filter(
    lambda role: SweepName.from_slug(f"{role}-2026-11-30") is not None
)
_TEXT = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="0123456789.-+eExobT:Z_ ~#'\"{}[]|>&*!%@`\n\t\\", max_size=20),
    st.sampled_from(["no", "null", "True", ".inf", "- x", "x: y", "x #y", "<<", "=", "---", "..."]),
)
_WHEN = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis wants bounds without a zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)
_COUNT = st.none() | st.integers(0, COUNT_MAX)
_MONEY = st.none() | st.floats(0, 1e18) | st.integers(0, 10**6).map(lambda n: n / 10_000)
MARKERS = st.builds(
    Marker,
    sweep=st.builds(SweepName, _ROLES, st.dates()),
    every=st.from_regex(r"[1-9][0-9]{0,8}[dhm]", fullmatch=True),
    at=_WHEN,
    covering_since=st.none() | _WHEN,
    adapter=_TEXT,
    model=st.none() | _TEXT,
    cost_limit_usd=_MONEY,
    tokens_in=_COUNT,
    tokens_out=_COUNT,
    cost_usd=_MONEY,
    failed=st.none() | _TEXT,
    occurrence=st.none()
    | _WHEN.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    trigger=st.none() | st.just("manual"),
)


@settings(max_examples=400, deadline=None)
@given(MARKERS)
def test_what_was_written_reads_back_as_the_same_values(marker: Marker) -> None:
    data = render_marker(marker)
    reading = read_marker(data, marker.sweep)
    since = marker.covering_since
    assert reading == MarkerReading(
        marker.sweep,
        marker.at.replace(microsecond=0),
        None if since is None else since.replace(microsecond=0),
        marker.adapter,
        marker.model,
        marker.tokens_in,
        marker.tokens_out,
        None if marker.cost_usd is None else float(f"{marker.cost_usd:.6f}"),
        marker.failed,
        marker.every,
        None if marker.cost_limit_usd is None else float(f"{marker.cost_limit_usd:.6f}"),
        marker.occurrence,
        marker.trigger,
    )
    assert render_marker(marker) == data
    assert data.endswith(b"\n")
    assert b"\r" not in data


@settings(max_examples=150, deadline=None)
@given(MARKERS)
def test_another_reader_of_yaml_sees_the_same_strings(marker: Marker) -> None:
    text = render_marker(marker).decode()
    loaded = YAML(typ="safe", pure=True).load(StringIO(text))
    assert list(loaded)[:3] == ["sweep", "role", "every"]
    assert loaded["sweep"] == marker.sweep.slug
    assert loaded["role"] == marker.sweep.role
    assert Every.parse(loaded["every"]) == Every.parse(marker.every)
    assert loaded["adapter"] == marker.adapter
    assert loaded["model"] == marker.model
    assert loaded.get("failed") == marker.failed
    assert ("failed" in loaded) == (marker.failed is not None)


def test_half_a_character_from_a_broken_agent_does_not_break_the_marker() -> None:
    data = render_marker(_marker(failed="bad \udcff byte"))
    assert read_marker(data, SWEEP).failed == "bad \ufffd byte"


_SEEDS = [(FIXTURES / name).read_bytes() for name in READABLE]


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_a_damaged_marker_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(_SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        piece = data.draw(
            st.binary(max_size=3)
            | st.sampled_from([b"at: ", b"\n", b": ", b"- ", b"{", b"&a ", b"*a", b"<<: ", b'"'])
        )
        raw[at : at + data.draw(st.integers(0, 5))] = piece
    try:
        reading = read_marker(bytes(raw), SWEEP)
    except MarkerError as error:
        assert error.message  # noqa: PT017 - both outcomes are right, each has its own claim
    else:
        assert reading.at.utcoffset() == timedelta(0)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_arbitrary_bytes_are_never_a_marker_without_a_readable_time(raw: bytes) -> None:
    try:
        reading = read_marker(raw, SWEEP)
    except MarkerError:
        return
    assert b"at" in raw
    assert isinstance(reading.at, datetime)


def test_only_a_calendar_sweep_s_marker_has_its_occurrence_and_only_a_triggered_one_says_so() -> (
    None
):
    plain = render_marker(_marker()).decode()
    assert "occurrence" not in plain
    assert "trigger" not in plain
    at = datetime(2026, 11, 30, 1, 0, 0, 500_000, tzinfo=UTC)
    keys = [line.partition(":")[0] for line in plain.splitlines()]
    full = render_marker(_marker()._replace(occurrence=at, trigger="manual")).decode()
    assert [line.partition(":")[0] for line in full.splitlines()] == [
        *keys[:5], "occurrence", "trigger", *keys[5:]
    ]  # fmt: skip
    assert "occurrence: 2026-11-30T01:00:00.500Z\n" in full


def test_a_marker_whose_occurrence_cannot_be_read_is_broken() -> None:
    data = render_marker(_marker()) + b"occurrence: yesterday\n"
    with pytest.raises(MarkerError, match="occurrence"):
        read_marker(data, SWEEP)
