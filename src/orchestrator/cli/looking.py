"""What the commands that look at a repository share."""

import os
from datetime import datetime

from orchestrator.cli.invocation import Invocation
from orchestrator.errors import UsageError
from orchestrator.outcome import Evaluation
from orchestrator.site import Settings


def settings_of(run: Invocation) -> Settings:
    """Where the options say to look."""
    return Settings(run.path or ".", run.remote, run.default_branch, run.environ)


def uncommitted_config(found: Evaluation) -> bool:
    """Whether the working tree has a policy file while the default branch has none."""
    if found.config.present:
        return False
    return os.path.isfile(os.path.join(found.repository.path, found.config.path))


def instant_of(option: str, text: str) -> datetime:
    """A time given on the command line, to the second.

    Raises:
        UsageError: it is none.
    """
    from orchestrator.markerfile import instant

    at = instant(text)
    if at is None:
        raise UsageError(
            f"{option} expects a time in ISO-8601, not {text}",
            "write it like 2026-12-01T02:00:00Z; without a zone it is UTC",
        )
    return at.replace(microsecond=0)
