"""One role's entry in `orchestrator.yaml`: its name, its keys, its values.

Everything wrong with an entry is collected, so that a person mends it in one go.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import configvalues as read
from orchestrator import yamlnode
from orchestrator.configvalues import BadValue, Reader
from orchestrator.model.names import Oid, role_problem
from orchestrator.model.problem import ErrorCode, Problem, Severity
from orchestrator.model.timing import Every
from orchestrator.yamlnode import Kind, Node, Scalar, described, quoted, shown

SCHEDULES, ROLES = "schedules", "roles"
PLAIN_KEYS = frozenset({"every", "cost_limit_usd", "enabled"})
"""The keys of a schedule that need nothing imported."""


def _later(key: str) -> Reader:
    """The reader of a calendar schedule's key, imported when a file has one."""

    def reader(node: Node) -> object:
        from orchestrator.configcalendar import READERS

        return READERS[key](node)

    return reader


_CALENDAR_KEYS = (
    "cron", "timezone", "interval", "start_at", "end_at", "jitter", "overlap", "catchup", "grace",
    "description",
)  # fmt: skip
KEYS: Mapping[str, Mapping[str, Reader]] = {
    SCHEDULES: {
        "every": read.interval,
        "cost_limit_usd": read.dollars,
        "enabled": read.boolean,
        **{key: _later(key) for key in _CALENDAR_KEYS},
    },
    ROLES: {
        "adapter": read.name,
        "model": read.name,
        "estimate_usd": read.dollars,
        "instructions": read.path,
        "timeout": read.interval,
        "writes": read.globs,
        "command": read.argv,
        "max_files": read.count,
        "max_bytes": read.count,
    },
}
"""The keys of an entry of each section, with what reads their value."""

# What people coming from other schedulers write; a spelling mistake is found by likeness.
_OTHER_WORDS = {
    "schedule": "every",
    "frequency": "every",
    "tz": "timezone",
    "time_zone": "timezone",
    "budget": "cost_limit_usd",
    "budget_usd": "cost_limit_usd",
    "active": "enabled",
    "estimate": "estimate_usd",
    "agent": "adapter",
    "prompt": "instructions",
    "cmd": "command",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The file that is being read; makes problems that say so."""

    path: str
    commit: Oid | None

    def problem(
        self,
        message: str,
        hint: str | None = None,
        *,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        return Problem(
            ErrorCode.CONFIG_ERROR,
            message,
            hint,
            path=self.path,
            commit=self.commit,
            line=line,
            column=column,
            key=key,
            severity=severity,
        )

    def at(self, node: Node, key: str, message: str, hint: str | None = None) -> Problem:
        """An error at `node`."""
        return self.problem(message, hint, line=node.line, column=node.column, key=key)


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry's good values and the lines of its keys, and everything that is wrong with it."""

    key: Scalar
    values: Mapping[str, Any]
    lines: Mapping[str, int]
    problems: tuple[Problem, ...]


def key_path(section: str, role: str, key: str | None = None) -> str:
    """`schedules.historian.every`; a name that cannot be a role's is quoted."""
    name = role if role_problem(role) is None else shown(role)
    return f"{section}.{name}" if key is None else f"{section}.{name}.{key}"


def read_entry(
    place: Place, section: str, key: Scalar, node: Node, namesakes: Iterable[Scalar]
) -> RawEntry:
    """Read one entry; `namesakes` are the keys that spell its name the same but for case."""
    where = key_path(section, key.text)
    problems = []
    if name_problem := _name_problem(key, list(namesakes)):
        problems.append(place.at(key, where, *name_problem))
    if not isinstance(node, yamlnode.Mapping):
        message = f"expected a map with {_wanted(section)}, found {described(node)}"
        problems.append(place.at(node, where, message, _shape_hint(section, node)))
        return RawEntry(key, {}, {}, tuple(problems))
    values: dict[str, Any] = {}
    keys: dict[str, Scalar] = {}
    for name, value_node in node.items:
        shown_name = name.text if name.text.isidentifier() else shown(name.text)
        inner = key_path(section, key.text, shown_name)
        reader = KEYS[section].get(name.text) if name.kind is Kind.STR else None
        if reader is None:
            problems.append(place.at(name, inner, *_unknown(section, key.text, name)))
            continue
        keys[name.text] = name
        value = reader(value_node)
        if isinstance(value, BadValue):
            problems.append(place.at(value.node, inner, value.message, value.hint))
        else:
            values[name.text] = value
    problems += _as_a_whole(place, section, key, values, keys)
    lines = {name: scalar.line for name, scalar in keys.items()}
    return RawEntry(key, values, lines, tuple(problems))


def _wanted(section: str) -> str:
    return "a key such as `every`" if section == SCHEDULES else "keys such as `adapter`"


def _name_problem(key: Scalar, namesakes: list[Scalar]) -> tuple[str, str | None] | None:
    if key.kind is not Kind.STR:
        hint = f"quote it: {quoted(key.text)}" if role_problem(key.text) is None else None
        return f"expected a role's name, found {described(key)}", hint
    if why := role_problem(key.text):
        hint = "rename the role; its branches and folders are called after it"
        return f"{shown(key.text)} cannot be a role: {why}", hint
    if namesakes:
        other = namesakes[0]
        both = f"{shown(key.text)} and {shown(other.text)} (line {other.line})"
        why = "differ only in case, and their branches would collide on some file systems"
        if other.text == key.text:
            why = "are one role, once quoted and once not"
        return f"the roles {both} {why}", "rename or remove one of them"
    return None


def _shape_hint(section: str, node: Node) -> str | None:
    if not isinstance(node, Scalar):
        return None
    if node.kind is Kind.NULL:
        return f"add {'`every: 7d`' if section == SCHEDULES else 'a key'} below it, or remove it"
    if node.kind is Kind.STR and section == SCHEDULES and (every := Every.parse(node.text)):
        return f"write `every: {every.text}` on a line of its own below it"
    key = node.text.partition(":")[0]
    return "put a space after the colon" if key in KEYS[section] and ":" in node.text else None


def _unknown(section: str, role: str, key: Scalar) -> tuple[str, str | None]:
    """One sentence about a key that is not one of the section's, and what was probably meant."""
    keys = KEYS[section]
    if key.kind is not Kind.STR:
        return f"expected one of {', '.join(keys)}, found {described(key)} as a key", None
    message = f"expected one of {', '.join(keys)}, found the unknown key {shown(key.text)}"
    other = ROLES if section == SCHEDULES else SCHEDULES
    if key.text in KEYS[other]:
        return message, f"`{key.text}` belongs under `{other}.{role}`"
    if close := likeliest(key.text, keys):
        return message, f'did you mean "{close}"?'
    return message, None


def likeliest(text: str, choices: Iterable[str]) -> str | None:
    """The one of `choices` that `text` was probably meant to be, or None."""
    # Only mistakes need it, and a resting tick should not pay for importing it.
    from difflib import get_close_matches

    if len(text) > read.NAME_MAX_LENGTH:
        return None
    by_lower = {choice.lower(): choice for choice in choices}
    low = text.lower().replace("-", "_")
    if (word := _OTHER_WORDS.get(low)) in by_lower:
        return word
    found = get_close_matches(low, by_lower, n=1, cutoff=0.6) or get_close_matches(
        text.lower(), by_lower, n=1, cutoff=0.6
    )
    return by_lower[found[0]] if found else None


def _as_a_whole(
    place: Place, section: str, role: Scalar, values: Mapping[str, Any], keys: Mapping[str, Scalar]
) -> list[Problem]:
    """What is wrong with an entry although each value it has is right."""
    if section == SCHEDULES:
        return _timing_as_a_whole(place, role, values, keys)
    adapter = values.get("adapter")
    where = key_path(section, role.text, "command")
    if adapter == "command" and "command" not in keys:
        message = "expected the key `command` beside `adapter: command`, found none"
        hint = "add `command: [program, argument]`"
        return [place.at(keys["adapter"], where, message, hint)]
    # An adapter that is there and could not be read has been reported already.
    unread = "adapter" in keys and adapter is None
    if adapter != "command" and "command" in keys and not unread:
        stands = f"the adapter {shown(adapter)}" if adapter else "no `adapter`"
        message = f"expected `command` only beside `adapter: command`, found {stands}"
        hint = "write `adapter: command`, or remove `command`"
        return [place.at(keys["command"], where, message, hint)]
    return []


def _timing_as_a_whole(
    place: Place, role: Scalar, values: Mapping[str, Any], keys: Mapping[str, Scalar]
) -> list[Problem]:
    if not any(key in keys for key in ("every", "cron", "interval")):
        message = "expected one of the keys `every`, `cron` and `interval`, found none: it says "
        where = key_path(SCHEDULES, role.text, "every")
        return [place.at(role, where, message + "when the role sweeps", "add `every: 7d`")]
    if keys.keys() <= PLAIN_KEYS:
        return []
    from orchestrator.configcalendar import contradictions

    return [
        place.at(keys[w.key], key_path(SCHEDULES, role.text, w.key), w.message, w.hint)
        for w in contradictions(values, keys)
    ]
