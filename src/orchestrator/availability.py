"""Could a role's agent be started on this machine? Looked at before anything is claimed.

`tick` asks before it claims; `explain` asks too and warns, for it may run on another machine or as
another user than the ticks do. Nothing is written and nothing is spent.
"""

import os

from orchestrator.adapters.base import Operator, Probe
from orchestrator.adapters.registry import adapter
from orchestrator.model.config import Registration
from orchestrator.site import Site

_WORK_DIR_HINT = "give access, or name another folder: git config orchestrator.workDir FOLDER"


def operator_of(site: Site) -> Operator:
    """What this machine's operator allowed and set, from git config and the environment."""
    from orchestrator.adapters.registry import known_adapters

    programs = {}
    for name in known_adapters():
        path = site.reader.config(f"orchestrator.{name}.path")
        if path:
            programs[name] = path
    return Operator(
        allowed_commands=site.reader.config_all("orchestrator.allowCommand"),
        programs=programs,
        environment=site.settings.environ,
    )


def probe(site: Site, registration: Registration) -> Probe:
    """Whether the role's agent could be started here."""
    refused = _no_room(work_root(site)) or _no_program(site, registration)
    return refused or adapter(registration.adapter).probe(registration, operator_of(site))


def doubt(site: Site, registration: Registration) -> str | None:
    """Why a tick by this user on this machine would not start the role's agent, if so."""
    found = probe(site, registration)
    if found.ok:
        return None
    hint = f"; {found.hint}" if found.hint else ""
    return f"a tick here would not start it: {found.reason or 'it is not available'}{hint}"


def _no_room(folder: str) -> Probe | None:
    """Why no working copy could be made in `folder`, if so; the folder need not exist yet."""
    if not os.path.isabs(folder):
        reason = f"git config orchestrator.workDir says {folder}, which is not an absolute path"
        return Probe(ok=False, reason=reason, hint=_WORK_DIR_HINT)
    there = folder
    while not os.path.lexists(there) and os.path.dirname(there) != there:
        there = os.path.dirname(there)
    if os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK):
        return None
    reason = f"no working copy can be made in {folder}, which this user may not write to"
    return Probe(ok=False, reason=reason, hint=_WORK_DIR_HINT)


def _no_program(site: Site, registration: Registration) -> Probe | None:
    """A program of the repository has to be on the tip that the sweep starts from."""
    program = registration.command[0] if registration.command else ""
    if "/" not in program or os.path.isabs(program):
        return None
    entry = site.reader.entry(site.tip, os.path.normpath(program))
    named = f"{program}, which {registration.source} names,"
    if entry is None or entry.kind in ("tree", "gitlink"):
        reason = f"{named} is not a file on {site.tip_name}"
        return Probe(ok=False, reason=reason, hint=f"commit {program} there")
    if entry.kind == "blob":
        reason = f"{named} is not executable on {site.tip_name}"
        hint = f"git update-index --chmod=+x {program}, and commit it there"
        return Probe(ok=False, reason=reason, hint=hint)
    return None


def work_root(site: Site) -> str:
    """Where private working copies are made: git config `orchestrator.workDir`, else the cache.

    Not below /tmp, which agents' sandboxes treat as free for all, and not inside `.git`, which
    they treat as forbidden.
    """
    environ = site.settings.environ
    configured = site.reader.config("orchestrator.workDir")
    if configured:
        return os.path.expanduser(configured)
    from orchestrator.git.environment import home_of

    home = home_of(environ) or os.path.dirname(site.reader.common_dir)
    return os.path.join(
        environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "orchestrator"
    )
