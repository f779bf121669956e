"""The committed policy, as values: what `orchestrator.yaml` says once it has been read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrator.model.names import CONFIG_PATH, Oid
from orchestrator.model.problem import Problem, Severity
from orchestrator.model.timing import Every

if TYPE_CHECKING:  # a policy of `every` alone needs neither
    from orchestrator.model.occurrence import Calendar, Overlap

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class ScheduleEntry(NamedTuple):
    """One entry of `schedules`. Exactly one of `every` and `calendar` is set.

    Attributes:
        every: the interval between sweeps, counted from the last merged one.
        calendar: the occurrences of a `cron` or `interval`.
        overlap: what a due occurrence does while a sweep is open; None is `skip`.
        description: free text for people.
        cost_limit_usd: the cap on one sweep's estimate, US dollars; None is no cap at all.
        line: the role's line in the file, from 1; the keys' own lines are in `lines`.
    """

    role: str
    every: Every | None
    enabled: bool = True
    cost_limit_usd: float | None = None
    line: int = 1
    lines: Mapping[str, int] = _EMPTY
    calendar: "Calendar | None" = None
    overlap: "Overlap | None" = None
    description: str | None = None

    @property
    def timing(self) -> str:
        """The timing in force, as the marker records it."""
        if self.calendar is not None:
            return self.calendar.text
        return self.every.text if self.every is not None else ""

    @property
    def timing_line(self) -> int:
        """The line of the key that says when."""
        keys = (k for k in ("every", "cron", "interval") if k in self.lines)
        return self.line_of(next(keys, "every"))

    def line_of(self, key: str) -> int:
        """The line of `key` in this entry, or the entry's own when the key is not written."""
        return self.lines.get(key, self.line)


class RoleEntry(NamedTuple):
    """One entry of `roles`, as written: None is "not written", so that defaults can apply.

    Attributes:
        estimate_usd: what one sweep is expected to cost, US dollars.
        writes: glob patterns of what the agent may change, besides its run's folder.
        command: argv for the `command` adapter.
        max_files: how many paths one sweep may change.
        max_bytes: how many bytes of new contents one sweep may bring.
    """

    role: str
    adapter: str | None = None
    model: str | None = None
    estimate_usd: float | None = None
    instructions: str | None = None
    timeout: Every | None = None
    writes: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    line: int = 1
    lines: Mapping[str, int] = _EMPTY
    max_files: int | None = None
    max_bytes: int | None = None

    def line_of(self, key: str) -> int:
        """The line of `key` in this entry, or the entry's own when the key is not written."""
        return self.lines.get(key, self.line)


class Config(NamedTuple):
    """A whole `orchestrator.yaml`.

    A role whose entry could not be read is in `schedules` (or `roles`) as its `Problem`, so that
    nothing is forgotten silently: one bad entry refuses that role only. When the whole file is
    refused, both maps are empty and `problems` says why.

    Attributes:
        problems: every problem found, in file order, those of single entries included.
        commit: the commit it was read from; None when read from a plain file.
        present: false when the file is absent at that commit.
    """

    schedules: Mapping[str, ScheduleEntry | Problem] = _EMPTY
    roles: Mapping[str, RoleEntry | Problem] = _EMPTY
    problems: tuple[Problem, ...] = ()
    path: str = CONFIG_PATH
    commit: Oid | None = None
    present: bool = True

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(p for p in self.problems if p.severity is Severity.ERROR)


class Registration(NamedTuple):
    """A role as it will be run: the packaged registry and the project's `roles`, put together.

    Attributes:
        priced: whether running it may cost money; then a cap needs an estimate.
        estimate_usd: what one sweep is expected to cost, US dollars; None is unknown.
        instructions: a path on the default-branch tip, or None for the packaged prompt.
        timeout_s: the time limit of the agent's run, seconds.
        source: where the registration comes from, for evidence (`packaged`, or file:line).
        max_files: how many paths one sweep may change; None is the adapter's own limit.
        max_bytes: how many bytes of new contents; None is the adapter's own limit.
    """

    role: str
    adapter: str
    priced: bool
    model: str | None
    estimate_usd: float | None
    instructions: str | None
    timeout_s: float
    writes: tuple[str, ...]
    command: tuple[str, ...]
    source: str
    max_files: int | None = None
    max_bytes: int | None = None
