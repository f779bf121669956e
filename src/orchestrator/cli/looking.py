"""What the commands that look at a repository share."""

import os

from orchestrator.cli.invocation import Invocation
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
