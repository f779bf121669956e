"""A small world: a remote, clones of it, people who merge, and a clock that stands still."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.model.names import Oid, SweepName
from orchestrator.observe import evaluate_repository
from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.site import Settings
from orchestrator.tick import tick
from tests.support import repos

POLICY = "schedules:\n  historian:\n    every: 7d\n"
START = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
FILES = {
    "orchestrator.yaml": POLICY,
    "README.md": "# App\n\nSee [the guide](docs/guide.md) and `src/app.py`.\n",
    "docs/guide.md": "# Guide\n\nBack to the [readme](../README.md).\n",
    "src/app.py": "print('hello')\n",
}


@dataclass
class World:
    """`upstream` is the bare remote (None: everything happens in `home`), `home` a clone of it."""

    root: Path
    home: Path
    upstream: Path | None
    now: datetime = START
    environ: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_remote(
        cls, root: Path, files: repos.Files = FILES, kind: repos.CloneKind = "normal"
    ) -> "World":
        upstream = repos.bare_remote(root / "upstream.git", files)
        home = repos.clone(upstream, root / "home", kind)
        return cls(root, home, upstream, environ=_environ(root))

    @classmethod
    def alone(cls, root: Path, files: repos.Files = FILES) -> "World":
        return cls(root, repos.make_repo(root / "home", files), None, environ=_environ(root))

    @property
    def shared(self) -> Path:
        """Where people merge: the remote, or the only repository."""
        return self.upstream or self.home

    def settings(self, path: Path | None = None) -> Settings:
        return Settings(path=str(path or self.home), environ=self.environ)

    def tick(
        self, path: Path | None = None, *, roles: Sequence[str] = (), fetch: bool = True
    ) -> Evaluation:
        return tick(
            self.settings(path), lambda: self.now, roles=roles, fetch=fetch, lock_wait_s=5.0
        )

    def only(self, path: Path | None = None, *, fetch: bool = True) -> RoleOutcome:
        """The outcome of a tick of a repository that schedules one role."""
        (outcome,) = self.tick(path, fetch=fetch).outcomes
        return outcome

    def explain(self, path: Path | None = None, *, fetch: bool = False) -> RoleOutcome:
        evaluation = evaluate_repository(self.settings(path), self.now, fetch=fetch)
        (outcome,) = evaluation.outcomes
        return outcome

    def wait(self, **span: float) -> None:
        self.now += timedelta(**span)

    def today(self, role: str = "historian") -> SweepName:
        return SweepName.on(role, self.now)

    def merge(self, sweep: SweepName, *, how: str = "merge", keep: bool = True) -> Oid:
        """Approve a sweep, in the way a person would; `keep=False` deletes the branch."""
        ways = {
            "merge": repos.merge_commit,
            "fast-forward": repos.fast_forward,
            "squash": repos.squash,
            "rebase": repos.rebase,
        }
        oid = ways[how](self.shared, sweep.branch)
        if not keep:
            repos.git(self.shared, "update-ref", "-d", sweep.local_ref)
        return oid


def _environ(root: Path) -> dict[str, str]:
    return {
        **os.environ,
        "XDG_CACHE_HOME": str(root / "cache"),
        "GIT_COMMITTER_NAME": "Orla Operator",
        "GIT_COMMITTER_EMAIL": "orla@example.org",
    }
