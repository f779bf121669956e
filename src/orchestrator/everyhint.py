"""What somebody probably meant by an interval that the grammar does not take.

Only ever a suggestion beside an error: nothing here decides when a sweep is due. It is imported
when an interval could not be read, and not before.
"""

import re
from fractions import Fraction

_MINUTES = {
    "w": Fraction(10_080),
    "d": Fraction(1_440),
    "h": Fraction(60),
    "m": Fraction(1),
    "s": Fraction(1, 60),
}
_UNITS = {
    "w": ("w", "wk", "wks", "week", "weeks"),
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
_LONG = {"month": "30d", "months": "30d", "mo": "30d", "year": "365d", "years": "365d", "y": "365d"}
_WORDS = {
    "hourly": "1h",
    "daily": "1d",
    "nightly": "1d",
    "weekly": "7d",
    "fortnightly": "14d",
    "biweekly": "14d",
    "monthly": "30d",
    "yearly": "365d",
    "annually": "365d",
}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)[ _]*([a-z]+)[ ,]*(?:and )?")
_ISO = re.compile(r"p((?:[0-9.]+[wd])*)(?:t((?:[0-9.]+[hms])+))?")
_CRON = re.compile(r"[-0-9*/,?lw#a-z]+(?: +[-0-9*/,?lw#a-z]+){4,5}")
_TEXT_LIMIT = 60


def interval_hint(text: str) -> str | None:
    """One imperative clause, such as "write 7d" for "1w", or None when nothing comes to mind."""
    if re.fullmatch(r"[0-9]{1,9} ?M", text.strip()):
        return (
            f"write {text.strip()[:-1].strip()}m for minutes; months differ in length, write days"
        )
    low = text.strip().lower()
    if not low:
        return "write an interval such as 7d, 12h or 30m"
    if len(low) > _TEXT_LIMIT:
        return None
    if (word := low.removeprefix("@").removeprefix("every ")) in _WORDS:
        return f"write {_WORDS[word]}"
    if re.fullmatch(r"[0-9]{1,9}", low):
        return _bare_number(int(low))
    if re.fullmatch(r"0+ *[a-z]+", low):
        return "write an interval of at least 1m, or `enabled: false` to pause the role"
    if low.startswith("-"):
        return interval_hint(low[1:]) if len(low) > 1 and low[1] != "-" else None
    if _CRON.fullmatch(low):
        return "write a cron expression under the key `cron`"
    return _sum_hint(low)


def _bare_number(number: int) -> str:
    if number == 0:
        return "write an interval of at least 1m, or `enabled: false` to pause the role"
    return f"add a unit: {number}d for days, {number}h for hours, {number}m for minutes"


def _sum_hint(low: str) -> str | None:
    """Add up the parts of "1h30m", "1 day 2 hours", "1.5d" or "P1DT12H"."""
    if iso := _ISO.fullmatch(low):
        low = (iso[1] or "") + (iso[2] or "")
    low = low.removeprefix("+").removeprefix("every ")
    minutes: Fraction = Fraction(0)
    at = 0
    for part in _PART.finditer(low):
        if part.start() != at:
            return None
        at = part.end()
        if part[2] in _LONG:
            return f"months and years differ in length; write days, such as {_LONG[part[2]]}"
        if part[2] not in _UNIT_OF:
            return None
        minutes += Fraction(part[1]) * _MINUTES[_UNIT_OF[part[2]]]
    if at != len(low) or minutes <= 0:
        return None
    if minutes.denominator != 1:
        return "write whole minutes; the shortest interval is 1m"
    return f"write {_compact(int(minutes))}"


def _compact(minutes: int) -> str:
    for unit in ("d", "h"):
        size = int(_MINUTES[unit])
        if minutes % size == 0:
            return f"{minutes // size}{unit}"
    return f"{minutes}m"
