"""Reads `orchestrator.yaml`: text to policy, or to problems that each name their place.

Two promises shape this module. One bad entry refuses that role only, so a role that is listed is
never lost: it is in `Config.schedules` as an entry or as its problem. And nothing is guessed: when
it is not certain what the file as a whole says, nothing is scheduled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from orchestrator import configvalues as read
from orchestrator import yamlnode
from orchestrator.configvalues import BadValue, Reader
from orchestrator.model.config import Config, RoleEntry, ScheduleEntry
from orchestrator.model.names import CONFIG_PATH, Oid, role_problem
from orchestrator.model.problem import ErrorCode, Problem, Severity
from orchestrator.yamlio import YamlError, parse
from orchestrator.yamlnode import Kind, Node, Scalar, described, quoted, shown

SCHEDULE_KEYS: Mapping[str, Reader] = {
    "every": read.interval,
    "cost_limit_usd": read.dollars,
    "enabled": read.boolean,
}
ROLE_KEYS: Mapping[str, Reader] = {
    "adapter": read.name,
    "model": read.name,
    "estimate_usd": read.dollars,
    "instructions": read.path,
    "timeout": read.interval,
    "writes": read.globs,
    "command": read.argv,
}
TOP_KEYS = ("schedules", "roles")

# What people coming from other schedulers write; a spelling mistake is found by likeness.
_OTHER_WORDS = {
    "interval": "every",
    "schedule": "every",
    "cron": "every",
    "frequency": "every",
    "budget": "cost_limit_usd",
    "budget_usd": "cost_limit_usd",
    "estimate": "estimate_usd",
    "cmd": "command",
    "agent": "adapter",
    "prompt": "instructions",
}


def read_config(
    data: bytes | None, *, path: str = CONFIG_PATH, commit: Oid | None = None
) -> Config:
    """Read the policy; None is an absent file. Never raises: what is wrong is in `problems`."""
    file = _File(path, commit)
    if data is None:
        return Config(path=path, commit=commit, present=False)
    try:
        root = parse(data)
    except YamlError as error:
        return file.refused(error.message, error.hint, error.line, error.column)
    if root is None or (isinstance(root, Scalar) and root.kind is Kind.NULL):
        return Config(path=path, commit=commit)
    if not isinstance(root, yamlnode.Mapping):
        message = f"expected a map with the key `schedules`, found {described(root)}"
        return file.refused(message, "see `orchestrator init`", root.line, root.column)
    for name in TOP_KEYS:
        section = _value(root, name)
        if not (section is None or isinstance(section, yamlnode.Mapping) or _is_null(section)):
            message = f"expected `{name}` to be a map of roles, found {described(section)}"
            return file.refused(message, None, section.line, section.column, name)
    return _read_sections(file, root)


def refused(message: str, hint: str | None = None, *, path: str, commit: Oid | None) -> Config:
    """The configuration when the whole file is refused unread (a symlink, a folder, too large)."""
    return _File(path, commit).refused(message, hint)


@dataclass(frozen=True, slots=True)
class _File:
    """Where problems are."""

    path: str
    commit: Oid | None

    def problem(
        self,
        message: str,
        at: Node | None,
        key: str | None,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        return Problem(
            ErrorCode.CONFIG_ERROR,
            message,
            hint,
            path=self.path,
            commit=self.commit,
            line=None if at is None else at.line,
            column=None if at is None else at.column,
            key=key,
            severity=severity,
        )

    def refused(
        self,
        message: str,
        hint: str | None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
    ) -> Config:
        problem = Problem(
            ErrorCode.CONFIG_ERROR,
            f"the whole file is refused: {message}",
            hint,
            path=self.path,
            commit=self.commit,
            line=line,
            column=column,
            key=key,
        )
        return Config(problems=(problem,), path=self.path, commit=self.commit)


_Found: TypeAlias = tuple[dict[str, Any], dict[str, int], list[Problem]]


def _read_sections(file: _File, root: yamlnode.Mapping) -> Config:
    problems: list[Problem] = list(_top_level_warnings(file, root))
    schedules: dict[str, ScheduleEntry | Problem] = {}
    roles: dict[str, RoleEntry | Problem] = {}
    for key, node, found in _entries(root, "schedules", file):
        bad = found or _entry(file, "schedules", key, node, SCHEDULE_KEYS)
        problems += bad[2]
        schedules[key.text] = bad[2][0] if bad[2] else _schedule(key, bad)
    for key, node, found in _entries(root, "roles", file):
        bad = found or _entry(file, "roles", key, node, ROLE_KEYS)
        problems += bad[2]
        roles[key.text] = bad[2][0] if bad[2] else _role(key, bad)
    problems += _lonely_roles(file, root)
    problems.sort(key=lambda p: (p.line or 0, p.column or 0))
    return Config(schedules, roles, tuple(problems), path=file.path, commit=file.commit)


def _schedule(key: Scalar, found: _Found) -> ScheduleEntry:
    values, lines, _ = found
    return ScheduleEntry(
        key.text,
        values["every"],
        enabled=values.get("enabled", True),
        cost_limit_usd=values.get("cost_limit_usd"),
        line=key.line,
        lines=lines,
    )


def _role(key: Scalar, found: _Found) -> RoleEntry:
    values, lines, _ = found
    return RoleEntry(key.text, line=key.line, lines=lines, **values)
