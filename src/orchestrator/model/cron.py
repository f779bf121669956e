"""Cron expressions: a strict grammar, and the local times an expression names.

Five fields, the aliases, names, lists, ranges, steps, `a/n`, 7 as Sunday, and Vixie's day rule:
when neither the day of month nor the day of week starts with `*`, a day matches if either does.
Nothing is taken that only some crons take: what this grammar lets through means one thing.

The evaluator is this project's own. Every library that was measured loses occurrences around
daylight-saving changes, none can look backwards without counting up, and the search is short once
the grammar is strict: whole months are passed over, so no distance in time makes it slow. `cronsim`
is the oracle in the tests.
"""

import re
from bisect import bisect_left, bisect_right
from datetime import date, datetime, time, timedelta
from typing import NamedTuple, Self

_ITEM = re.compile(r"(\*|[A-Za-z0-9]+)(?:-([A-Za-z0-9]+))?(?:/([0-9]+))?")
_NUMBER = re.compile(r"[0-9]+")
_BLANKS = " \t\r\n"
_DIGITS = 9
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class _Field(NamedTuple):
    """One of the five fields: what it is called, its range, the names it knows."""

    name: str
    low: int
    high: int
    names: dict[str, int]

    def __str__(self) -> str:
        return f"{self.name} field ({self.low}-{self.high})"


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: n for n, name in enumerate(_MONTHS, 1)}),
    _Field("day of week", 0, 7, {name: n for n, name in enumerate(_DAYS)}),
)


class CronError(ValueError):
    """An expression that is refused: one sentence, and a way out where there is one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Cron(NamedTuple):
    """One expression, as the local times it names; seconds are always 0.

    Attributes:
        text: as written, with single spaces.
        weekdays: 0 is Sunday.
        either: both day fields are restricted, so a day matches if either of them does.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an expression.

        Raises:
            CronError: it does not follow the grammar, or names no time that ever comes.
        """
        written = " ".join(part for part in re.split(r"[ \t]+", text.strip(_BLANKS)) if part)
        plain = ALIASES.get(written) if written.startswith("@") else written
        if plain is None:
            raise _no_alias(written)
        parts = plain.split(" ") if plain else []
        if len(parts) != len(_FIELDS):
            names = ", ".join(f.name for f in _FIELDS)
            raise CronError(
                f"cron `{_cut(written)}`: expected five fields ({names}), found {len(parts)}",
                _count_hint(len(parts)),
            )
        sets = [_values(written, field, part) for field, part in zip(_FIELDS, parts, strict=True)]
        found = cls(
            text=written,
            minutes=tuple(sorted(sets[0])),
            hours=tuple(sorted(sets[1])),
            days=frozenset(sets[2]),
            months=frozenset(sets[3]),
            weekdays=frozenset(n % 7 for n in sets[4]),
            either=not parts[2].startswith("*") and not parts[4].startswith("*"),
        )
        if not found.either and all(min(found.days) > _LONGEST[m - 1] for m in found.months):
            raise CronError(
                f"cron `{written}`: it never fires, because no such day of the month ever comes"
            )
        return found

    @property
    def times_a_day(self) -> int:
        """How many local times a matching day has."""
        return len(self.minutes) * len(self.hours)

    def matches(self, day: date) -> bool:
        """Whether the day's fields match."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either else in_month and in_week

    def first_from(self, at: datetime) -> datetime | None:
        """The first local time not before `at` (both without a zone); None beyond the calendar."""
        if self.matches(at.date()):
            found = self._time_from(at.time())
            if found is not None:
                return datetime.combine(at.date(), found)
        day = self._day_after(at.date())
        return None if day is None else datetime.combine(day, time(self.hours[0], self.minutes[0]))

    def last_until(self, at: datetime) -> datetime | None:
        """The last local time not after `at` (both without a zone); None before the calendar."""
        if self.matches(at.date()):
            found = self._time_until(at.time())
            if found is not None:
                return datetime.combine(at.date(), found)
        day = self._day_before(at.date())
        return (
            None if day is None else datetime.combine(day, time(self.hours[-1], self.minutes[-1]))
        )

    def times_on(self, day: date) -> list[datetime]:
        """Every local time of one day."""
        if not self.matches(day):
            return []
        return [datetime(day.year, day.month, day.day, h, m) for h in self.hours  # noqa: DTZ001 - local
                for m in self.minutes]  # fmt: skip

    def _time_from(self, at: time) -> time | None:
        minute = at.minute + (1 if at.second or at.microsecond else 0)
        n = bisect_left(self.hours, at.hour)
        if n == len(self.hours):
            return None
        if self.hours[n] > at.hour:
            return time(self.hours[n], self.minutes[0])
        m = bisect_left(self.minutes, minute)
        if m < len(self.minutes):
            return time(at.hour, self.minutes[m])
        return time(self.hours[n + 1], self.minutes[0]) if n + 1 < len(self.hours) else None

    def _time_until(self, at: time) -> time | None:
        n = bisect_right(self.hours, at.hour) - 1
        if n < 0:
            return None
        if self.hours[n] < at.hour:
            return time(self.hours[n], self.minutes[-1])
        m = bisect_right(self.minutes, at.minute) - 1
        if m >= 0:
            return time(at.hour, self.minutes[m])
        return time(self.hours[n - 1], self.minutes[-1]) if n > 0 else None

    def _day_after(self, day: date) -> date | None:
        """The next matching day; months that do not match are passed over whole."""
        while day < date.max:
            day += timedelta(days=1)
            if day.month not in self.months:
                after = _next_month(day)
                if after is None:
                    return None
                day = after - timedelta(days=1)
            elif self.matches(day):
                return day
        return None

    def _day_before(self, day: date) -> date | None:
        while day > date.min:
            day -= timedelta(days=1)
            if day.month not in self.months:
                day = day.replace(day=1)
            elif self.matches(day):
                return day
        return None


def _next_month(day: date) -> date | None:
    if day.month < 12:  # noqa: PLR2004 - December
        return date(day.year, day.month + 1, 1)
    return date(day.year + 1, 1, 1) if day.year < date.max.year else None


def _values(written: str, field: _Field, text: str) -> set[int]:
    """The numbers one field names."""
    found: set[int] = set()
    for item in text.split(","):
        found.update(_item(written, field, item))
    return found


def _item(written: str, field: _Field, item: str) -> range:
    where = f"cron `{_cut(written)}`: `{_cut(item)}`"
    match = _ITEM.fullmatch(item)
    if match is None or (match[1] == "*" and match[2] is not None):
        if not item:
            raise CronError(f"cron `{_cut(written)}`: the {field} has an empty item")
        raise CronError(f"{where} is not a value, range or step of the {field}", _hint(field, item))
    first, last, step = match[1], match[2], match[3]
    low = field.low if first == "*" else _number(written, field, first)
    high = low
    if last is not None:
        high = _number(written, field, last)
    elif first == "*" or step is not None:
        high = field.high
    if high < low:
        raise CronError(f"{where} runs backwards in the {field}", _backwards(field, low, high))
    width = 1 if step is None else int(step[:_DIGITS])
    if width == 0:
        raise CronError(f"{where} has a step of 0 in the {field}", "write a step of 1 or more")
    return range(low, high + 1, width)


def _number(written: str, field: _Field, text: str) -> int:
    where = f"cron `{_cut(written)}`: `{_cut(text)}`"
    if _NUMBER.fullmatch(text):
        number = int(text) if len(text) <= _DIGITS else field.high + 1
        if not field.low <= number <= field.high:
            raise CronError(f"{where} is out of range for the {field}")
        return number
    named = field.names.get(text.upper())
    if named is None:
        raise CronError(f"{where} is not a value of the {field}", _hint(field, text))
    return named


def _hint(field: _Field, text: str) -> str | None:
    """What was probably meant by something that is not one of the field's values."""
    if text == "?":
        return "write * for any value"
    if "?" in text or "#" in text or text.upper() in ("L", "W") or text[-1:].upper() in ("L", "W"):
        return "L, W, # and ? are extensions that are not supported"
    short = text[:3].upper()
    if len(text) > len(short) and short in field.names:
        return f"write {short}"
    other = next((f for f in _FIELDS if text.upper() in f.names and f is not field), None)
    return f"{text.upper()} belongs in the {other.name} field" if other is not None else None


def _backwards(field: _Field, low: int, high: int) -> str:
    if field.name == "day of week" and high == 0:
        return f"Sunday is also 7: write {low}-7"
    return f"write {low}-{field.high},{field.low}-{high}"


def _count_hint(count: int) -> str | None:
    if count == len(_FIELDS) + 1:
        return "there is no field for seconds or years"
    return "write for example 0 2 * * *" if count < len(_FIELDS) else None


def _no_alias(written: str) -> CronError:
    known = ", ".join(ALIASES)
    close = written.lower()
    hint = f"did you mean {close}?" if close in ALIASES else None
    if written.startswith("@every "):
        hint = "write `interval: 5m` in place of cron for a fixed interval"
    return CronError(f"cron `{_cut(written)}`: expected one of {known}, or five fields", hint)


def _cut(text: str) -> str:
    """Text as a sentence can hold it."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= 60 else plain[:59] + "…"  # noqa: PLR2004 - a sentence's room
