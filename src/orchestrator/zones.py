"""Time zones from the `tzdata` package, and from nowhere else.

The machine's own database is never asked: two hosts with different ones would compute different
instants for one policy. A name is looked up in the package's list before any file is opened, so no
text out of a committed file becomes a path.
"""

from datetime import UTC, tzinfo
from functools import cache

DEFAULT = "UTC"


class ZoneError(ValueError):
    """A name that is no zone's: one sentence, and a way out where there is one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@cache
def names() -> frozenset[str]:
    """Every zone of the package."""
    from importlib import resources  # only schedules with a zone, or a wrong one, need the list

    listed = resources.files("tzdata").joinpath("zones").read_text("utf-8")
    return frozenset(listed.split())


@cache
def zone(name: str) -> tzinfo:
    """The zone called `name`, exactly as the database spells it.

    Raises:
        ZoneError: there is none.
    """
    if name == DEFAULT:
        return UTC
    if name not in names():
        raise ZoneError("expected an IANA time zone such as Europe/Berlin", _hint(name))
    from importlib import resources
    from zoneinfo import ZoneInfo

    folder = resources.files("tzdata").joinpath("zoneinfo")
    with folder.joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _hint(name: str) -> str | None:
    if not name or len(name) > 60:  # noqa: PLR2004 - longer than any zone's name
        return None
    same = next((n for n in names() if n.lower() == name.strip().lower().replace(" ", "_")), None)
    if same is not None:
        return f"did you mean {same}?"
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(names()), 1, 0.75)
    return f"did you mean {close[0]}?" if close else None
