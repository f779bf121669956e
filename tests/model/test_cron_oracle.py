"""The evaluator against an independent one, over random expressions, zones and instants.

    ORACLE_CASES=10000 python -m pytest tests/model/test_cron_oracle.py

The suite takes the first thousand; the whole ten thousand take about a minute.
"""

import os
import random
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise

import pytest

from orchestrator import zones
from orchestrator.model.cron import Cron
from orchestrator.model.localtime import cron_after, cron_count, cron_until
from tests.support import cronoracle

SEEDS, AHEAD = range(5), 3
EACH = int(os.environ.get("ORACLE_CASES", "1000")) // len(SEEDS)
RESTLESS = (
    "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Dublin",
    "Africa/Casablanca", "America/Havana", "Africa/Cairo", "America/Vancouver", "Asia/Gaza",
    "Antarctica/Troll", "America/Sao_Paulo", "Pacific/Chatham", "UTC",
)  # fmt: skip
TICK = timedelta(microseconds=1)


def _instant(rng: random.Random, zone: tzinfo) -> datetime:
    """Some instant between 1995 and 2035; mostly within two days of a change of the clocks."""
    at = datetime(1995, 1, 1, tzinfo=UTC) + timedelta(minutes=rng.randrange(40 * 365 * 1440))
    at += timedelta(seconds=rng.choice((0, 0, 1, 59)))
    day = timedelta(days=1)
    for n in range(220 if rng.random() < 0.6 else 0):
        before, after = ((at + (n + m) * day).astimezone(zone).utcoffset() for m in (0, 1))
        if before != after:
            return at + n * day + timedelta(minutes=rng.randrange(-1440, 2880))
    return at


@pytest.mark.parametrize("seed", SEEDS)
def test_occurrences_are_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    known = sorted(zones.names())
    for _ in range(EACH):
        text, name = cronoracle.expression(rng), rng.choice(RESTLESS)
        name = rng.choice(known) if rng.random() < 0.3 else name
        zone, cron = zones.zone(name), Cron.parse(text)
        at = _instant(rng, zone)
        expected = cronoracle.following(text, name, at, AHEAD)
        case = (text, name, at.isoformat())
        found: list[datetime] = []
        last = at
        while len(found) < AHEAD and (after := cron_after(cron, zone, last)) is not None:
            found.append(after)
            last = after
        assert (case, found) == (case, expected)
        for one, two in pairwise(expected):
            assert (case, cron_until(cron, zone, one)) == (case, one)
            assert (case, cron_until(cron, zone, two - TICK)) == (case, one)
        assert (case, cron_count(cron, zone, at, expected[-1])) == (case, AHEAD)
