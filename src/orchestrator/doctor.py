"""Everything a tick needs on this machine, tried out without spending a cent.

Each check is one finding. The only thing written is a probe branch on the remote, with a name of
its own that no sweep can have; it is deleted again whatever happened to the push.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import uuid4

from orchestrator.adapters.base import Probe
from orchestrator.adapters.registry import adapter, resolve
from orchestrator.availability import operator_of, probe
from orchestrator.errors import CannotLookError, ExitCode, OrchestratorError
from orchestrator.git.wire import PushOutcome, Remote
from orchestrator.git.writer import Writer
from orchestrator.model.config import Config, Registration, ScheduleEntry
from orchestrator.model.names import Oid, Ref
from orchestrator.model.problem import Problem
from orchestrator.model.timing import from_epoch, iso
from orchestrator.policy import read_policy
from orchestrator.site import Settings, Site, open_site

PROBE_REFS = "refs/heads/run/probe-"
CLOCK_TOLERANCE = timedelta(minutes=2)
"""How far the newest commit may lie in the future before a clock must be wrong."""


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(NamedTuple):
    """What one check found: one sentence, and the way out where something is wrong."""

    check: str
    level: Level
    said: str
    hint: str | None = None


class Examined(NamedTuple):
    """All findings, and what they mean for the exit code."""

    findings: tuple[Finding, ...]
    exit_code: ExitCode


def examine(settings: Settings, now: datetime) -> Examined:
    """Try everything out. What cannot be looked at at all ends it, as a finding of its own."""
    found: list[Finding] = []
    try:
        site = open_site(settings, fetch=True)
        found.extend(_findings(site, now))  # what came before an error stays
    except CannotLookError as error:
        found.append(Finding("repository", Level.ERROR, error.message, error.hint))
        return Examined(tuple(found), ExitCode.CANNOT_LOOK)
    broken = any(f.level is Level.ERROR for f in found)
    return Examined(tuple(found), ExitCode.ATTENTION if broken else ExitCode.OK)


def _findings(site: Site, now: datetime) -> Iterator[Finding]:
    where = "no remote: everything happens in this repository"
    if site.remote is not None:
        where = f"{site.remote.name} answers ({site.remote.urls()[0]})"
    yield Finding("remote", Level.OK, where)
    yield Finding("default branch", Level.OK, f"{site.tip_name} at {site.tip[:9]}")
    yield _run_branch(site)
    if site.run_branch is None:
        yield _writable(site)
    yield _identity(site)
    yield _clock(site, now)
    config = read_policy(site.reader, site.tip)
    yield _policy(config)
    for entry in config.schedules.values():
        if isinstance(entry, ScheduleEntry) and entry.enabled:
            yield from _role(site, config, entry, now)


def _run_branch(site: Site) -> Finding:
    if site.run_branch is None:
        return Finding("run branch", Level.OK, "no branch called run is in the way of run/<slug>")
    said = f"a branch called run exists {site.run_branch}, so no branch run/<slug> can"
    return Finding("run branch", Level.ERROR, said, "rename it: git branch -m run NEW-NAME")


def _writable(site: Site) -> Finding:
    """A branch under run/ can be created and deleted: what a claim and a withdrawal need."""
    ref = Ref(f"{PROBE_REFS}{uuid4().hex}")
    name = ref.removeprefix("refs/heads/")
    try:
        if site.remote is None:
            writer = Writer(site.reader)
            writer.create_ref(ref, site.tip, "doctor: probe")
            writer.delete_ref(ref, site.tip)
            return Finding("branches", Level.OK, "a branch under run/ was created and deleted here")
        return _tried(site.remote, ref, site.tip)
    except CannotLookError:
        raise
    except OrchestratorError as error:
        return Finding("branches", Level.ERROR, f"{name}: {error.message}", error.hint)


def _tried(remote: Remote, ref: Ref, tip: Oid) -> Finding:
    created = remote.create(tip, ref)
    name = ref.removeprefix("refs/heads/")
    if created.flag != "*" and ref not in remote.ls(ref):
        hint = "let this identity create branches called run/* there"
        said = f"{remote.name} refused a branch under run/: {_words(created)}"
        return Finding("branches", Level.ERROR, said, hint)
    deleted = remote.delete(ref, tip)
    if deleted.flag != "-" and ref in remote.ls(ref):
        said = f"{name} was created on {remote.name}, but not deleted again: {_words(deleted)}"
        hint = f"let this identity delete run/* there; this one goes with: git push {remote.name} "
        return Finding("branches", Level.ERROR, said, f"{hint}--delete {name}")
    said = f"a branch under run/ was created on {remote.name} and deleted again"
    return Finding("branches", Level.OK, said)


def _words(outcome: PushOutcome) -> str:
    return "; ".join((*outcome.server, outcome.reason)).strip("; ") or "it gave no reason"


def _identity(site: Site) -> Finding:
    who = site.reader.identity(site.settings.environ)
    said = f"commits are by {who.name} <{who.email}>"
    if not who.fallback:
        return Finding("identity", Level.OK, said)
    hint = "set one: git config user.name NAME && git config user.email EMAIL"
    return Finding("identity", Level.WARNING, f"no committer identity is set: {said}", hint)


def _clock(site: Site, now: datetime) -> Finding:
    """Every host's commits come together on the remote; one from the future betrays a clock."""
    refs = site.reader.sweep_refs(site.reader.remotes())
    tips = {site.tip, *(ref.oid for ref in refs)}
    newest = max(site.reader.commit(tip).time for tip in tips if site.reader.has(tip))
    at = from_epoch(newest)
    if at - now <= CLOCK_TOLERANCE:
        return Finding("clock", Level.OK, f"{iso(now)}; no commit is from the future")
    said = f"this clock says {iso(now)}, and the newest commit is of {iso(at)}"
    hint = "one of the two clocks is wrong: compare with `date -u`, and turn on NTP"
    return Finding("clock", Level.ERROR, said, hint)


def _policy(config: Config) -> Finding:
    if not config.present:
        said = f"no {config.path} on the default branch, so nothing is scheduled"
        return Finding("policy", Level.WARNING, said, "`orchestrator init` writes one")
    if config.errors:
        first = config.errors[0]
        more = f" (and {len(config.errors) - 1} more)" if len(config.errors) > 1 else ""
        said = f"{first.place}: {first.message}{more}"
        return Finding("policy", Level.ERROR, said, "`orchestrator check` shows all of it")
    return Finding("policy", Level.OK, f"{config.path} schedules {', '.join(config.schedules)}")


def _role(site: Site, config: Config, entry: ScheduleEntry, now: datetime) -> Iterator[Finding]:
    check = f"agent of {entry.role}"
    registration = resolve(entry, config.roles, path=config.path, commit=config.commit)
    if isinstance(registration, Problem):
        yield Finding(check, Level.ERROR, registration.message, registration.hint)
        return
    found = probe(site, registration)
    if not found.ok:
        said = f"{registration.adapter}: {found.reason or 'it is not available'}"
        yield Finding(check, Level.ERROR, said, found.hint)
        return
    yield Finding(check, Level.OK, _agent_words(site, registration, found))
    yield from _price(registration, check, now)


def _agent_words(site: Site, registration: Registration, found: Probe) -> str:
    if found.program is None or not found.flags:
        return f"{registration.adapter} can be started"
    from orchestrator.adapters.program import version_of

    version = version_of(found.program, operator_of(site)) or "of unknown version"
    return f"{registration.adapter}: {found.program} {version}, flags and credentials are there"


def _price(registration: Registration, check: str, now: datetime) -> Iterator[Finding]:
    """Whether a run's dollars can be computed where the agent does not report them."""
    provider = getattr(adapter(registration.adapter), "provider", None)
    if provider is None:
        return
    from orchestrator.adapters.prices import has_price

    model = registration.model
    if model is None:
        said = f"no model is named, so {registration.adapter} chooses one, and its price with it"
        hint = f"write model: for {registration.role} under roles"
        yield Finding(check, Level.WARNING, said, hint)
    elif not has_price(model, provider, now):
        said = f"no price is known for the model {model}: a run's cost may stay unknown"
        yield Finding(check, Level.WARNING, said, "check the model's name; update genai-prices")
