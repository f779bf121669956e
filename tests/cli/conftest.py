"""Running the command line in this process, at a given time, on real repositories."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import main
from tests.support import repos

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
POLICY = "schedules:\n  historian:\n    every: 7d\n"


@dataclass(frozen=True)
class Ran:
    """What one run printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("explain", "-C", path, now=...)`."""

    def ran(*arguments: str | Path, now: datetime = NOW) -> Ran:
        capsys.readouterr()
        code = main([str(a) for a in arguments], lambda: now)
        return Ran(code, *capsys.readouterr())

    return ran


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of a remote whose default branch schedules the historian."""
    remote = repos.bare_remote(tmp_path / "remote.git", {"orchestrator.yaml": POLICY})
    made = repos.clone(remote, tmp_path / "clone")
    repos.git(made, "config", "orchestrator.workDir", str(tmp_path / "work"))
    return made


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A repository without any remote, and without a policy."""
    return repos.make_repo(tmp_path / "alone", {"README.md": "# Alone\n"})
