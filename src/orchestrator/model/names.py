"""A sweep is a branch named for a role and a date; this is how the names are made and read.

    role    historian
    slug    historian-2026-11-30               <role>-<date in UTC>
    branch  run/historian-2026-11-30
    folder  runs/historian-2026-11-30
    marker  runs/historian-2026-11-30/sweep.yaml

A slug is parsed from the right: its last eleven characters are `-` and a real calendar date. So
the role `doc` never matches `run/doc-writer-2026-11-30`, and a role may itself end in a date.
"""

import re
from datetime import UTC, date, datetime
from typing import NamedTuple, NewType, Self

Oid = NewType("Oid", str)
"""A full hexadecimal object id. "No object" is None, never zeros: only the claim says zeros."""

Ref = NewType("Ref", str)
"""A full ref name, such as refs/heads/run/historian-2026-11-30."""

CONFIG_PATH = "orchestrator.yaml"
RUNS_FOLDER = "runs"
MARKER_NAME = "sweep.yaml"
BRANCH_FOLDER = "run"
ROLE_MAX_LENGTH = 100

_ROLE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_LENGTH = len("-2026-11-30")


def role_problem(text: str) -> str | None:
    """Say why `text` cannot be a role's name, or None when it can.

    A role's name becomes part of a branch's name and of a folder's, so it keeps to what every git
    and every file system can hold.
    """
    if not text:
        return "a role's name may not be empty"
    if len(text) > ROLE_MAX_LENGTH:
        return f"a role's name has at most {ROLE_MAX_LENGTH} characters, this one has {len(text)}"
    if not _ROLE.fullmatch(text):
        return (
            "a role's name has only letters, digits, '-', '_' and '.' (ASCII), "
            "and starts and ends with a letter or digit"
        )
    if ".." in text:
        return "a role's name may not contain '..'"
    if text.lower().endswith(".lock"):
        return "a role's name may not end in '.lock'"
    return None


def parse_date(text: str) -> date | None:
    """Read `YYYY-MM-DD` in ASCII digits that is a real day, or None.

    Stricter than `date.fromisoformat`, which takes week dates and `20260101` too.
    """
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


class SweepName(NamedTuple):
    """One sweep's identity: who sweeps, and on which UTC day. Orders by role, then date."""

    role: str
    date: date

    @classmethod
    def on(cls, role: str, now: datetime) -> Self:
        """The sweep that `role` would start at `now` (an aware datetime)."""
        return cls(role, now.astimezone(UTC).date())

    @classmethod
    def from_slug(cls, text: str) -> Self | None:
        """Read a slug, or None when it is not one."""
        role, dash, day = text[:-_DATE_LENGTH], text[-_DATE_LENGTH : 1 - _DATE_LENGTH], text[-10:]
        parsed = parse_date(day)
        if dash != "-" or parsed is None or role_problem(role) is not None:
            return None
        return cls(role, parsed)

    @classmethod
    def from_branch(cls, text: str) -> Self | None:
        """Read a branch's short name (`run/<slug>`), or None when it is not a sweep's."""
        folder, _, slug = text.partition("/")
        return cls.from_slug(slug) if folder == BRANCH_FOLDER else None

    @property
    def slug(self) -> str:
        return f"{self.role}-{self.date.isoformat()}"

    @property
    def branch(self) -> str:
        return f"{BRANCH_FOLDER}/{self.slug}"

    @property
    def local_ref(self) -> Ref:
        return Ref(f"refs/heads/{self.branch}")

    def tracking_ref(self, remote: str) -> Ref:
        return Ref(f"refs/remotes/{remote}/{self.branch}")

    @property
    def folder(self) -> str:
        return f"{RUNS_FOLDER}/{self.slug}"

    @property
    def marker_path(self) -> str:
        return f"{self.folder}/{MARKER_NAME}"

    def __str__(self) -> str:
        return self.slug
