"""The oracle: `cronsim` on naive local times, which are then moved to instants and put in order.

`cronsim` knows nothing of zones here, so its opinion about clock changes does not count; what a
local time means is Python's own `fold=0`. It reads `a-a/n` as `a/n`, so that is rewritten.
"""

import random
import re
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim

from orchestrator import zones
from orchestrator.model.cron import _FIELDS, ALIASES

_ONE = re.compile(r"\b([A-Za-z0-9]+)-\1/[0-9]+")
_NAMES = {"month": _FIELDS[3].names, "day": _FIELDS[4].names}


def following(expression: str, zone: str, at: datetime, count: int) -> list[datetime]:
    """The next `count` occurrences strictly after `at`, in UTC."""
    tz = zones.zone(zone)
    plain = _ONE.sub(r"\1", ALIASES.get(expression, expression)).upper()
    start = at.astimezone(tz).replace(tzinfo=None) - _margin(tz, at)
    found: set[datetime] = set()
    limit = None
    for local in CronSim(plain, start):
        instant = local.replace(tzinfo=tz).astimezone(UTC)
        # A local time of a gap moves by a day at most, so what comes later cannot get in between.
        if limit is not None and instant > limit:
            break
        if instant > at:
            found.add(instant)
        if limit is None and len(found) == count:
            limit = max(found) + _margin(tz, max(found))
    return sorted(found)[:count]


def _margin(tz: tzinfo, at: datetime) -> timedelta:
    """How far local times and instants may be out of step around `at`."""
    days = (at + timedelta(days=n) for n in (-2, -1, 0, 1, 2))
    offsets = {day.astimezone(tz).utcoffset() for day in days}
    return timedelta(hours=25) if len(offsets) > 1 else timedelta(0)


def expression(rng: random.Random) -> str:
    """A valid expression; frequent ones and those around 1 to 3 o'clock are likelier."""
    while True:
        fields = [
            _field(rng, 0, 59, None, 0.15),
            _field(rng, 0, 4, None, 0.2) if rng.random() < 0.6 else _field(rng, 0, 23, None, 0.4),
            _field(rng, 1, 31, None, 0.6),
            _field(rng, 1, 12, "month", 0.7),
            _field(rng, 0, 7, "day", 0.6),
        ]
        if not re.fullmatch(r"(30|31|,|29|/|-|\d)+", fields[2]) or fields[3] == "*":
            return " ".join(fields)
        if fields[4] != "*" and not fields[4].startswith("*"):
            return " ".join(fields)


def _field(rng: random.Random, low: int, high: int, names: str | None, star: float) -> str:
    if rng.random() < star:
        return "*"
    return ",".join(_item(rng, low, high, names) for _ in range(rng.choice((1, 1, 1, 2, 3))))


def _item(rng: random.Random, low: int, high: int, names: str | None) -> str:
    first, last = sorted((rng.randint(low, high), rng.randint(low, high)))
    step = rng.randint(1, high)
    match rng.randrange(6):
        case 0:
            return f"*/{step}"
        case 1:
            return f"{first}-{last}"
        case 2:
            return f"{first}-{last}/{step}"
        case 3:
            return f"{first}/{step}"
        case _ if names is not None and rng.random() < 0.5:
            known = list(_NAMES[names])
            return rng.choice(known).lower() if rng.random() < 0.3 else rng.choice(known)
        case _:
            return str(first)
