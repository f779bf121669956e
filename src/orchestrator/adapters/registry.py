"""Which roles are known and which adapters run them: the packaged part and the project's `roles`.

The table below is all there is built in; anything else is found by the entry point group
`orchestrator.adapters` (a name and a class without arguments), looked at only when a role names
an adapter that the table does not have. Importing an adapter waits until it is run: what a resting
tick needs to know of it, whether it is priced, stands in the table.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from orchestrator.errors import OrchestratorError
from orchestrator.model.config import Registration, RoleEntry, ScheduleEntry
from orchestrator.model.names import Oid
from orchestrator.model.problem import ErrorCode, Problem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from orchestrator.adapters.base import Adapter

ENTRY_POINTS = "orchestrator.adapters"
DEFAULT_TIMEOUT_S = 3600.0
"""A run's time limit where neither the project nor the package sets one, seconds."""


class BuiltIn(NamedTuple):
    """One row of the table: where the class is, and whether a run of it may cost money."""

    module: str
    name: str
    priced: bool


ADAPTERS: Mapping[str, BuiltIn] = {
    "builtin": BuiltIn("orchestrator.adapters.builtin", "BuiltinAdapter", priced=False),
    "claude-code": BuiltIn("orchestrator.adapters.claude_code", "ClaudeCodeAdapter", priced=True),
    "codex": BuiltIn("orchestrator.adapters.codex", "CodexAdapter", priced=True),
    "gemini": BuiltIn("orchestrator.adapters.gemini", "GeminiAdapter", priced=True),
    "command": BuiltIn("orchestrator.adapters.command", "CommandAdapter", priced=True),
}

PACKAGED: Mapping[str, Registration] = {
    "historian": Registration(
        role="historian",
        adapter="builtin",
        priced=False,
        model=None,
        estimate_usd=0.0,
        instructions=None,
        timeout_s=DEFAULT_TIMEOUT_S,
        writes=("docs/**", "**/*.md"),
        command=(),
        source="packaged",
    ),
}
"""The roles that run without a `roles` entry."""


class UnknownAdapterError(OrchestratorError):
    """No adapter has that name here, or its plug-in cannot be loaded."""


def known_adapters() -> tuple[str, ...]:
    """The names of the built-in adapters, in the table's order."""
    return tuple(ADAPTERS)


def adapter(name: str) -> "Adapter":
    """The adapter of that name, imported now.

    Raises:
        UnknownAdapterError: there is none, or its plug-in cannot be loaded.
    """
    row = ADAPTERS.get(name)
    if row is not None:
        return cast("Adapter", getattr(import_module(row.module), row.name)())
    points = _entry_points()
    if name not in points:
        raise _unknown(name, (*ADAPTERS, *points))
    return _loaded(points[name])


def resolve(
    entry: ScheduleEntry,
    roles: Mapping[str, RoleEntry | Problem],
    *,
    path: str | None,
    commit: Oid | None,
) -> Registration | Problem:
    """How `entry`'s role is run: the project's entry on top of the packaged one.

    Estimate and writes of the packaged role hold only while its adapter is the packaged one: an
    agent that costs money does not inherit "costs nothing".

    Args:
        entry: the role's schedule.
        roles: the file's `roles`.
        path: the file, for the problem's place and the evidence.
        commit: the commit it was read from.

    Returns:
        A Problem where the role has no registration (`unknown_role`), its `roles` entry could not
        be read (that problem itself), or its adapter is not known (`config_error`).
    """
    written, packaged = roles.get(entry.role), PACKAGED.get(entry.role)
    if isinstance(written, Problem):
        return written
    if written is None:
        return packaged or _unknown_role(entry, roles, path, commit)
    name = written.adapter or (packaged.adapter if packaged is not None else None)
    if name is None:
        return _without_adapter(written, path, commit)
    try:
        priced = ADAPTERS[name].priced if name in ADAPTERS else adapter(name).priced
    except UnknownAdapterError as error:
        return Problem(
            ErrorCode.CONFIG_ERROR,
            error.message,
            error.hint,
            path,
            commit,
            written.line_of("adapter"),
            key=f"roles.{entry.role}.adapter",
        )
    same = packaged is not None and name == packaged.adapter
    base = packaged if packaged is not None and same else _bare(entry.role, name, priced=priced)
    return _merged(base._replace(source=f"{path or 'roles'}:{written.line}"), written)


def _bare(role: str, name: str, *, priced: bool) -> Registration:
    """Says nothing but the adapter; one that costs nothing by nature is estimated at 0."""
    estimate = None if priced else 0.0
    return Registration(
        role, name, priced, None, estimate, None, DEFAULT_TIMEOUT_S, (), (), source=""
    )


def _merged(base: Registration, written: RoleEntry) -> Registration:
    return base._replace(
        model=written.model if written.model is not None else base.model,
        estimate_usd=base.estimate_usd if written.estimate_usd is None else written.estimate_usd,
        instructions=written.instructions or base.instructions,
        timeout_s=base.timeout_s if written.timeout is None else written.timeout.seconds,
        writes=base.writes if written.writes is None else written.writes,
        command=base.command if written.command is None else written.command,
        max_files=base.max_files if written.max_files is None else written.max_files,
        max_bytes=base.max_bytes if written.max_bytes is None else written.max_bytes,
    )


def _unknown_role(
    entry: ScheduleEntry,
    roles: Mapping[str, RoleEntry | Problem],
    path: str | None,
    commit: Oid | None,
) -> Problem:
    """The role is scheduled, and nothing says how to run it: show what to write."""
    close = _closest(entry.role, (*PACKAGED, *roles))
    meant = f"did you mean {close}? Else " if close else ""
    lines = f"roles:\n  {entry.role}:\n    adapter: command\n    command: [PROGRAM]"
    return Problem(
        ErrorCode.UNKNOWN_ROLE,
        f"nothing says how to run the role {entry.role}: it is neither packaged nor under `roles`",
        f"{meant}say how, for example:\n{lines}\n    estimate_usd: 0",
        path,
        commit,
        entry.line,
        key=f"schedules.{entry.role}",
    )


def _without_adapter(written: RoleEntry, path: str | None, commit: Oid | None) -> Problem:
    return Problem(
        ErrorCode.CONFIG_ERROR,
        f"the role {written.role} has no `adapter`, so nothing says what runs it",
        f"add `adapter:`, one of {', '.join(ADAPTERS)}, or an installed plug-in",
        path,
        commit,
        written.line,
        key=f"roles.{written.role}.adapter",
    )


def _unknown(name: str, known: Iterable[str]) -> UnknownAdapterError:
    names = sorted(set(known))
    close = _closest(name, names)
    listed = f"known here: {', '.join(names)}; a plug-in may have to be installed"
    hint = f"did you mean {close}? ({listed})" if close else listed
    return UnknownAdapterError(f"no adapter is called {name!r}", hint)


def _closest(name: str, known: Iterable[str]) -> str | None:
    # Only mistakes need it, and a resting tick should not pay for importing it.
    from difflib import get_close_matches

    by_lower = {k.lower(): k for k in known}
    found = get_close_matches(name.lower()[:100], by_lower, 1, 0.6)
    return by_lower[found[0]] if found else None


def _entry_points() -> Mapping[str, "EntryPoint"]:
    from importlib.metadata import entry_points  # costs 20 ms, and only plug-ins need it

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _loaded(point: "EntryPoint") -> "Adapter":
    """A plug-in's adapter. Whatever its import raises is its own fault and is said so."""
    try:
        made = point.load()()
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        raise UnknownAdapterError(
            f"the plug-in for the adapter {point.name!r} ({point.value}) cannot be loaded: {words}",
            "install a version of it that fits, or name another adapter",
        ) from error
    wanted = ("priced", "probe", "plan", "parse")
    missing = [part for part in wanted if not hasattr(made, part)]
    if missing:
        raise UnknownAdapterError(
            f"the plug-in for the adapter {point.name!r} ({point.value}) is no adapter: "
            f"it lacks {', '.join(missing)}",
            "see `orchestrator.adapters.base.Adapter` for what an adapter is",
        )
    return cast("Adapter", made)
