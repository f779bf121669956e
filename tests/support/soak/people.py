"""The people of a soak: they merge finished sweeps in every way there is, delete branches or keep
them, give sweeps up, and push to a branch while its agent works. And the ledger: what the remote
said about every dispatch, before people could squash or delete it.

It reads commits with its own few lines, not with the code under test.
"""

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import pygit2

from tests.support import repos
from tests.support.soak.arena import Arena

WAYS = ("merge", "fast-forward", "squash", "rebase")
_MERGES = {
    "merge": repos.merge_commit,
    "fast-forward": repos.fast_forward,
    "squash": repos.squash,
    "rebase": repos.rebase,
}


@dataclass(frozen=True)
class Closing:
    """What one closing commit says: the usage in its marker, or why it failed."""

    slug: str
    tokens_in: int | None
    failed: str | None


@dataclass
class Sweep:
    """One sweep branch as it stands on the remote."""

    ref: str
    slug: str
    tip: str
    dispatch_ids: list[str]
    closed: bool
    merged: bool

    @property
    def role(self) -> str:
        return self.slug[:-11]


@dataclass
class People:
    """Those who review.

    Attributes:
        ledger: every closing commit seen on the remote, by dispatch id.
        intents: every dispatch id whose intent was seen, and its slug.
        released: slugs a person gave up (deleted without merging), how often.
        early: slugs a person merged before they were closed.
        overwritten: sweeps where a guess ("interrupted") stands on top of what an agent reported.
    """

    arena: Arena
    chance: random.Random
    ledger: dict[str, list[Closing]] = field(default_factory=dict)
    intents: dict[str, str] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)
    early: set[str] = field(default_factory=set)
    overwritten: list[str] = field(default_factory=list)
    edits: int = 0
    _seen: set[str] = field(default_factory=set)

    def sweeps(self) -> list[Sweep]:
        """The sweep branches on the remote, each read and entered into the ledger."""
        repo = repos.opened(self.arena.shared)
        tree = repo.references["refs/heads/main"].peel(pygit2.Commit).tree
        names = [r for r in repo.references.iterator() if r.name.startswith("refs/heads/run/")]
        return [self._read(repo, tree, r.name, str(r.target)) for r in names]

    def _read(self, repo: pygit2.Repository, main: pygit2.Tree, ref: str, tip: str) -> Sweep:
        slug = ref.removeprefix("refs/heads/run/")
        ids: list[str] = []
        closed = False
        guessed = False
        for commit in repo.walk(tip):
            said = dict(re.findall(r"^([A-Z][A-Za-z-]+): (.+)$", commit.message, re.MULTILINE))
            if said.get("Sweep") != slug:
                continue
            phase, dispatch = said.get("Sweep-Phase"), said.get("Dispatch-Id", "?")
            if phase == "closing":
                closing = self._enter(commit, slug, dispatch)
                if guessed and closing.tokens_in is not None:
                    self.overwritten.append(slug)
                guessed = not closed and closing.tokens_in is None
                closed = True
            elif phase == "intent":
                ids.append(dispatch)
                self.intents[dispatch] = slug
                break
        return Sweep(ref, slug, tip, ids, closed, f"runs/{slug}/sweep.yaml" in main)

    def _enter(self, commit: pygit2.Commit, slug: str, who: str) -> Closing:
        marker = commit.tree / f"runs/{slug}/sweep.yaml"
        assert isinstance(marker, pygit2.Blob)
        text = marker.data.decode()
        tokens = re.search(r"^tokens_in: ([0-9]+)$", text, re.MULTILINE)
        failed = re.search(r"^failed: (.*)$", text, re.MULTILINE)
        words = failed[1].strip('"') if failed else None
        closing = Closing(slug, int(tokens[1]) if tokens else None, words)
        if str(commit.id) not in self._seen:
            self._seen.add(str(commit.id))
            self.ledger.setdefault(who, []).append(closing)
        return closing

    def review(self, *, thorough: bool = False) -> None:
        """Look at every open sweep; `thorough` leaves none of the closed ones open."""
        for sweep in self.sweeps():
            dice = self.chance.random()
            if sweep.merged:
                if thorough or dice < 0.5:
                    self._delete(sweep)
            elif not sweep.closed:
                if dice < 0.05 and not thorough:
                    self.early.add(sweep.slug)
                    self._merge(sweep, self.chance.choice(("merge", "squash")))
            elif dice < 0.1:
                self.released[sweep.slug] = self.released.get(sweep.slug, 0) + 1
                self._delete(sweep)
            elif dice < 0.95 or thorough:
                self._merge(sweep, self.chance.choice(WAYS))
                if self.chance.random() < 0.8:
                    self._delete(sweep)

    def _merge(self, sweep: Sweep, how: str) -> None:
        main = repos.tip(self.arena.shared)
        repo = repos.opened(self.arena.shared)
        ahead = repo.descendant_of(sweep.tip, main)
        if how == "fast-forward" and not ahead:
            how = "squash"
        walker = repo.walk(sweep.tip)
        walker.hide(main)
        if how == "rebase" and any(len(c.parents) > 1 for c in walker):
            how = "merge"  # the closing went on top of a person's commit
        _MERGES[how](self.arena.shared, f"run/{sweep.slug}")

    def _delete(self, sweep: Sweep) -> None:
        repos.git(self.arena.shared, "update-ref", "-d", sweep.ref, sweep.tip, ok=False)

    def push_to_one(self) -> bool:
        """Push a commit onto an open sweep, as a person who cannot wait would."""
        repo = repos.opened(self.arena.shared)
        prefix = "refs/heads/run/"
        refs = [r for r in repo.references.iterator() if r.name.startswith(prefix)]
        if not refs:
            return False
        ref = self.chance.choice(sorted(refs, key=lambda r: r.name))
        tip = repo[ref.target].peel(pygit2.Commit)
        self.edits += 1
        tree = repos.tree_with(repo, tip.tree, {f"docs/person-{self.edits}.md": "mine\n"}, {})
        oid = repos.store_commit(repo, tree, [tip.id], "A person's edit")
        # By compare-and-swap: a person's git does no less.
        repos.git(self.arena.shared, "update-ref", ref.name, oid, str(tip.id), ok=False)
        return True


def lock_files(repository: Path) -> list[Path]:
    """Every lock file of git's in a repository (bare or not)."""
    folder = repository / ".git" if (repository / ".git").is_dir() else repository
    places = [*(folder / "refs").rglob("*.lock"), *folder.glob("*.lock")]
    return sorted(p for p in places if "orchestrator" not in p.relative_to(folder).parts[:1])


def signed_locks(repository: Path) -> list[Path]:
    """The lock files of runs of this clone that are not in order, or at work."""
    return sorted((repository / ".git" / "orchestrator" / "running").glob("*.lock"))
