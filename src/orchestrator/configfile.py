"""Reads `orchestrator.yaml`: text to policy, or to problems that each name their place.

Two promises shape this module. One bad entry refuses that role only, so a role that is listed is
never lost: it is in `Config.schedules` as an entry or as its problem. And nothing is guessed: when
it is not certain what the file as a whole says, nothing is scheduled.
"""

from collections import defaultdict
from collections.abc import Iterator

from orchestrator import yamlnode
from orchestrator.configentry import (
    KEYS,
    PLAIN_KEYS,
    ROLES,
    SCHEDULES,
    Place,
    RawEntry,
    key_path,
    likeliest,
    read_entry,
)
from orchestrator.model.config import Config, RoleEntry, ScheduleEntry
from orchestrator.model.names import CONFIG_PATH, Oid
from orchestrator.model.problem import Problem, Severity
from orchestrator.yamlio import YamlError, parse
from orchestrator.yamlnode import Kind, Node, Scalar, described, shown

# Guessing at names costs time for every pair, and the file is anybody's who can push.
_COMPARISONS = 400


def read_config(
    data: bytes | None, *, path: str = CONFIG_PATH, commit: Oid | None = None
) -> Config:
    """Read the policy; None is an absent file. Never raises: what is wrong is in `problems`."""
    place = Place(path, commit)
    if data is None:
        return Config(path=path, commit=commit, present=False)
    try:
        root = parse(data)
    except YamlError as error:
        return _refused(place, error.message, error.hint, line=error.line, column=error.column)
    if root is None or _is_null(root):
        return Config(path=path, commit=commit)
    if not isinstance(root, yamlnode.Mapping):
        message = f"expected a map with the key `schedules`, found {described(root)}"
        return _refused(place, message, None, line=root.line, column=root.column)
    for section in (SCHEDULES, ROLES):
        node = _section(root, section)
        if node is not None and not isinstance(node, yamlnode.Mapping):
            message = f"expected `{section}` to be a map of roles, found {described(node)}"
            hint = f"write each role as a key below `{section}:`"
            return _refused(place, message, hint, line=node.line, column=node.column, key=section)
    return _read(place, root)


def refused(message: str, hint: str | None = None, *, path: str, commit: Oid | None) -> Config:
    """The configuration when the file is refused unread (a symlink, a folder, too large).

    `message` is one clause saying what stands there; "the whole file is refused: " goes before it.
    """
    return _refused(Place(path, commit), message, hint)


def _refused(
    place: Place,
    message: str,
    hint: str | None,
    *,
    line: int | None = None,
    column: int | None = None,
    key: str | None = None,
) -> Config:
    text = f"the whole file is refused: {message}"
    problem = place.problem(text, hint, line=line, column=column, key=key)
    return Config(problems=(problem,), path=place.path, commit=place.commit)


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind is Kind.NULL


def _section(root: yamlnode.Mapping, section: str) -> Node | None:
    """The section's value; None when it is absent or null."""
    for key, node in root.items:
        if key.kind is Kind.STR and key.text == section:
            return None if _is_null(node) else node
    return None


def _read(place: Place, root: yamlnode.Mapping) -> Config:
    raw = {section: list(_entries(place, root, section)) for section in (SCHEDULES, ROLES)}
    problems = [problem for entries in raw.values() for e in entries for problem in e.problems]
    problems += _warnings(place, root, raw[SCHEDULES], raw[ROLES])
    problems.sort(key=lambda p: (p.line or 0, p.column or 0))
    return Config(
        {e.key.text: e.problems[0] if e.problems else _schedule(e) for e in raw[SCHEDULES]},
        {e.key.text: e.problems[0] if e.problems else _role(e) for e in raw[ROLES]},
        tuple(problems),
        path=place.path,
        commit=place.commit,
    )


def _entries(place: Place, root: yamlnode.Mapping, section: str) -> Iterator[RawEntry]:
    node = _section(root, section)
    items = node.items if isinstance(node, yamlnode.Mapping) else ()
    alike: defaultdict[str, list[Scalar]] = defaultdict(list)
    for key, _ in items:
        alike[key.text.lower()].append(key)
    for key, value in items:
        namesakes = [other for other in alike[key.text.lower()] if other is not key]
        yield read_entry(place, section, key, value, namesakes)


def _schedule(raw: RawEntry) -> ScheduleEntry:
    values, calendar = raw.values, None
    if not raw.lines.keys() <= PLAIN_KEYS:
        from orchestrator.configcalendar import calendar as calendar_of

        calendar = calendar_of(values)
    return ScheduleEntry(
        raw.key.text,
        every=values.get("every"),
        enabled=values.get("enabled", True),
        cost_limit_usd=values.get("cost_limit_usd"),
        line=raw.key.line,
        lines=raw.lines,
        calendar=calendar,
        overlap=values.get("overlap"),
        description=values.get("description"),
    )


def _role(raw: RawEntry) -> RoleEntry:
    return RoleEntry(raw.key.text, **raw.values, line=raw.key.line, lines=raw.lines)


def _warnings(
    place: Place, root: yamlnode.Mapping, schedules: list[RawEntry], roles: list[RawEntry]
) -> Iterator[Problem]:
    """What is odd about the file as a whole, but refuses nothing."""

    def warning(at: Node, message: str, hint: str | None, key: str) -> Problem:
        return place.problem(
            message, hint, line=at.line, column=at.column, key=key, severity=Severity.WARNING
        )

    for key, _ in root.items:
        if key.kind is not Kind.STR or key.text not in KEYS:
            found = shown(key.text) if key.kind is Kind.STR else described(key)
            message = f"expected only `schedules` and `roles` at the top, found the key {found}"
            close = likeliest(key.text, KEYS)
            hint = f'did you mean "{close}"?' if close else None
            yield warning(key, message, hint, key.text if key.text.isidentifier() else found)
    if _section(root, SCHEDULES) is None and any(key.text != SCHEDULES for key, _ in root.items):
        message = "expected the key `schedules`, found none, so nothing is scheduled"
        yield warning(root, message, None, SCHEDULES)
    yield from _unused_roles(place, schedules, roles)


def _unused_roles(
    place: Place, schedules: list[RawEntry], roles: list[RawEntry]
) -> Iterator[Problem]:
    """A misspelt role's estimate would silently not apply. An unrelated role is no mistake."""
    configured = {entry.key.text for entry in roles}
    scheduled = {entry.key.text for entry in schedules}
    unused = [entry.key for entry in roles if entry.key.text not in scheduled]
    candidates = sorted(scheduled - configured)
    if len(unused) * len(candidates) > _COMPARISONS:
        return
    for key in unused:
        if close := likeliest(key.text, candidates):
            yield place.problem(
                f"no schedule has the name {shown(key.text)}, so this entry is not used",
                f'did you mean "{close}"?',
                line=key.line,
                column=key.column,
                key=key_path(ROLES, key.text),
                severity=Severity.WARNING,
            )
