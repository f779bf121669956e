"""What one run is asked, as JSON on standard input. The other side is `BuiltinAdapter.plan`."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from orchestrator.errors import UsageError
from orchestrator.model.names import Oid, SweepName


@dataclass(frozen=True, slots=True)
class Ask:
    """One run of the embedded historian.

    Attributes:
        git_dir: the repository's common directory.
        base: the default branch's tip when the sweep was dispatched.
        since: the default branch's tip when the window began; None when not known.
        covering_since: the window's start; None on a first sweep.
        workdir: where edited files and the page are written; None in mode `page`.
        writes: glob patterns of what the role may change.
        mode: `sweep` edits and writes; `page` only prints the page.
    """

    git_dir: str
    base: Oid
    since: Oid | None
    covering_since: datetime | None
    slug: str
    writes: tuple[str, ...]
    workdir: str | None = None
    mode: Literal["sweep", "page"] = "sweep"

    def to_json(self) -> bytes:
        """The request as `read` reads it: one line."""
        since = self.covering_since.isoformat() if self.covering_since else None
        return json.dumps(
            {
                "version": 1,
                "mode": self.mode,
                "git_dir": self.git_dir,
                "base": self.base,
                "since": self.since,
                "covering_since": since,
                "slug": self.slug,
                "workdir": self.workdir,
                "writes": list(self.writes),
            }
        ).encode()


def read(data: bytes) -> Ask:
    """Read a request.

    Raises:
        UsageError: it is not one.
    """
    try:
        given = json.loads(data)
        if given["version"] != 1 or given["mode"] not in ("sweep", "page"):
            raise UsageError("the historian's request has an unknown version or mode")
        ask = Ask(
            git_dir=_text(given["git_dir"]),
            base=Oid(_text(given["base"])),
            since=Oid(_text(given["since"])) if given["since"] is not None else None,
            covering_since=_time(given["covering_since"]),
            slug=_text(given["slug"]),
            writes=tuple(_text(pattern) for pattern in given["writes"]),
            workdir=_text(given["workdir"]) if given["workdir"] is not None else None,
            mode=given["mode"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"the historian's request cannot be read: {error!r}") from error
    if SweepName.from_slug(ask.slug) is None:
        raise UsageError("the historian's request names no sweep")
    if ask.mode == "sweep" and ask.workdir is None:
        raise UsageError("the historian's request names no folder to write to")
    return ask


def _text(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {type(value).__name__}")
    return value


def _time(value: Any) -> datetime | None:  # noqa: ANN401 - whatever JSON holds
    if value is None:
        return None
    at = datetime.fromisoformat(_text(value))
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
