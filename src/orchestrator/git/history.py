"""What the historian reads: tree listings, the first-parent log of a window, who removed a path.

Everything is read from the object database as bytes and taken apart here: attribute access on
pygit2's commits raises on absurd dates and non-UTF-8 text, and raw trees let unchanged folders be
skipped by their id. Nothing is written, no git program is run, no configuration is obeyed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

import pygit2
from pygit2.enums import DeltaStatus, DiffFind, ObjectType

from orchestrator.errors import CannotLookError, MissingObjectError
from orchestrator.git.loose import is_whole
from orchestrator.git.objects import Mode, read_commit, read_tree
from orchestrator.model.names import RUNS_FOLDER, Oid

File = tuple[int, Oid]
"""A file of a commit: its mode and its blob's id (a gitlink's is a commit's)."""

RENAME_THRESHOLD = 60
"""Per cent of a file that must be unchanged for its new name to count as a rename. Above git's own
default of 50, because links are rewritten on the strength of it."""

_EMPTY_BLOB = Oid("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
_MOST_RENAME_PAIRS = 500_000
_MOST_TREES_KEPT = 50_000
_CLOCK_SLOP = 5


@dataclass(frozen=True, slots=True)
class PastCommit:
    """One commit of the first-parent log.

    Attributes:
        time: the committer's time, seconds since 1970; 0 when it cannot be read.
        subject: the first line of the message, not yet made printable.
        runs: names of the folders below `runs/` that this commit added.
    """

    oid: Oid
    parents: tuple[Oid, ...]
    tree: Oid
    time: int
    subject: str
    runs: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """Ten digits, whatever the clone holds, so that every clone prints the same."""
        return self.oid[:10]


@dataclass(frozen=True, slots=True)
class Log:
    """A window's commits, newest first.

    Attributes:
        met: the walk arrived at the window's start; false when history ended before it.
        shallow: history ended because this clone is shallow.
    """

    commits: tuple[PastCommit, ...]
    met: bool
    shallow: bool


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two commits.

    Attributes:
        renames: old path -> new path, one to one only.
        candidates: old path -> the several paths that hold the same bytes now.
        complete: false when only byte-identical renames were looked for (too many files, or
            objects missing in this clone).
    """

    added: frozenset[str]
    deleted: frozenset[str]
    modified: frozenset[str]
    renames: Mapping[str, str] = field(default_factory=dict)
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Touch:
    """A commit that changed a path: ids of the blob or tree there before and after, or None."""

    commit: PastCommit
    before: Oid | None
    after: Oid | None


class History:
    """A repository's past, read only.

    Raises:
        MissingObjectError: from any method, when a commit or tree it needs is not in this clone.
    """

    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository
        self._trees: dict[Oid, dict[str, File]] = {}

    @classmethod
    def open(cls, git_dir: str, *, trusted: bool = False) -> Self:
        """Open a repository by its common directory.

        Args:
            git_dir: the directory that holds `objects`.
            trusted: the caller has opened it already, so who owns it is not asked again (the
                agent's private HOME hides the user's `safe.directory`).

        Raises:
            CannotLookError: it does not open.
        """
        if trusted:
            pygit2.settings.owner_validation = False
        try:
            return cls(pygit2.Repository(git_dir))
        except (pygit2.GitError, KeyError, OSError) as error:
            message = f"the repository at {git_dir} cannot be opened: {error}"
            raise CannotLookError(message) from error

    def has(self, oid: Oid) -> bool:
        """Whether `oid` is a commit in this clone."""
        return self._find(oid) is not None

    def commit(self, oid: Oid) -> PastCommit:
        """One commit, whatever its bytes."""
        found = self._find(oid)
        if found is None:
            raise MissingObjectError(f"commit {oid} is not in this clone, or damaged")
        return found

    def files(self, commit: Oid) -> dict[str, File]:
        """Every file of a commit, links and gitlinks included, by path (surrogates for non-UTF-8).

        Folders that an earlier call has seen cost nothing to read again.
        """
        found: dict[str, File] = {}
        todo = [("", self.commit(commit).tree)]
        while todo:
            prefix, tree = todo.pop()
            for name, entry in self._entries(tree).items():
                if entry[0] == Mode.FOLDER:
                    todo.append((f"{prefix}{name}/", entry[1]))
                else:
                    found[prefix + name] = entry
        return found

    def read(self, oid: Oid, limit: int) -> bytes | None:
        """A blob's bytes; None when it is not in this clone or larger than `limit` bytes."""
        try:
            header = self._repository.odb.read_header(oid)
            if header[1] > limit:
                return None
        except AttributeError:  # pygit2 before 1.19 cannot ask for the size alone
            pass
        except (KeyError, ValueError, pygit2.GitError):
            return None
        data = self._raw(oid, ObjectType.BLOB)
        return data if data is not None and len(data) <= limit else None

    def log(self, since: Oid | None, until: Oid) -> Log:
        """The first-parent commits from `until` back to `since` (not included), newest first.

        When `since` is not on that line, the walk ends where the two first-parent lines meet.
        """
        stop = {since}
        other: Oid | None = since
        commits: list[PastCommit] = []
        seen: dict[Oid, int] = {}
        at: Oid | None = until
        while at is not None and at not in stop:
            commit = self._find(at)
            if commit is None:
                return Log(tuple(commits), met=False, shallow=bool(commits))
            seen[at] = len(commits)
            commits.append(self._with_runs(commit))
            at = commit.parents[0] if commit.parents else None
            if other is not None:
                other = self._first_parent(other)
                if other in seen:
                    return Log(tuple(commits[: seen[other]]), met=True, shallow=False)
                stop.add(other)
        return Log(tuple(commits), met=at is not None or since is None, shallow=False)

    def at_boundary(self, oid: Oid) -> bool:
        """Whether the commit has parents that this clone lacks."""
        return any(not self.has(parent) for parent in self.commit(oid).parents)

    def window_start(
        self, tip: Oid, covering_since: datetime | None, explicit: Oid | None = None
    ) -> Oid | None:
        """The default branch's tip as it was at `covering_since`; None on a first sweep.

        The newest first-parent commit not later than that time. A commit with a skewed clock may
        make the window longer, never shorter: the five below it must not be later either. When
        every commit is later, the oldest one this clone has.

        Args:
            tip: the default branch's tip now.
            covering_since: the window's start (aware).
            explicit: the parent of the last sweep's intent commit, when known: better than any
                clock. Ignored when this clone lacks it or the tip does not contain it.
        """
        if explicit is not None and self.has(explicit) and self._contains(tip, explicit):
            return explicit
        if covering_since is None:
            return None
        limit = covering_since.timestamp()
        found: Oid | None = None
        below = 0
        at: Oid | None = tip
        oldest = tip
        while at is not None and self.has(at) and below <= _CLOCK_SLOP:
            commit = self.commit(at)
            if commit.time > limit:
                found, below = None, 0
            else:
                found, below = found or at, below + 1
            oldest = at
            at = commit.parents[0] if commit.parents else None
        return found or oldest

    def changes(self, since: Oid, until: Oid) -> Changes:
        """What differs between two commits, with renames: identical bytes first, then git's."""
        start, end = self.files(since), self.files(until)
        added, deleted = end.keys() - start.keys(), start.keys() - end.keys()
        modified = {path for path, entry in end.items() if start.get(path, entry) != entry}
        exact, several = _same_bytes({p: start[p] for p in deleted}, {p: end[p] for p in added})
        similar, complete = self._similar(since, until, len(added) * len(deleted))
        taken = set(exact.values())
        for old, new in similar.items():
            known = old in exact or old in several or new in taken
            if not known and start[old][1] != _EMPTY_BLOB:
                exact[old] = new
        return Changes(
            frozenset(added), frozenset(deleted), frozenset(modified), exact, several, complete
        )

    def trace(self, log: Log, paths: Collection[str]) -> dict[str, tuple[Touch, ...]]:
        """Which commits of a window changed these files or folders, newest first.

        One pass over the window's first-parent differences, however many paths are asked for;
        folders that did not change are never opened. A path that nothing changed is absent.
        """
        wanted = frozenset(paths)
        found: dict[str, list[Touch]] = defaultdict(list)
        for commit in log.commits if wanted else ():
            parent = commit.parents[0] if commit.parents else None
            if parent is None or not self.has(parent):
                continue
            for path, before, after in self._differences(self.commit(parent).tree, commit.tree):
                if path in wanted:
                    found[path].append(Touch(commit, before, after))
        return {path: tuple(touches) for path, touches in found.items()}

    def _raw(self, oid: Oid, kind: ObjectType) -> bytes | None:
        if not is_whole(self._repository.path, oid):
            return None  # libgit2 would never return from it
        try:
            found, data = self._repository.odb.read(oid)
        except (KeyError, ValueError, pygit2.GitError):
            return None
        return data if found == kind else None

    def _entries(self, tree: Oid) -> dict[str, File]:
        known = self._trees.get(tree)
        if known is not None:
            return known
        try:
            found = read_tree(self._tree_bytes(tree))
        except ValueError as error:
            message = f"the folder {tree} is not in this clone, or damaged"
            raise MissingObjectError(message) from error
        if len(self._trees) >= _MOST_TREES_KEPT:
            self._trees.clear()
        entries = {_decode(name): entry for name, entry in found.items()}
        self._trees[tree] = entries
        return entries

    def _tree_bytes(self, tree: Oid) -> bytes:
        data = self._raw(tree, ObjectType.TREE)
        if data is None:
            raise ValueError("not here")
        return data

    def _find(self, oid: Oid) -> PastCommit | None:
        data = self._raw(oid, ObjectType.COMMIT)
        if data is None:
            return None
        try:
            commit = read_commit(oid, data)
        except ValueError:
            return None
        subject = commit.message.lstrip("\n").partition("\n")[0]
        return PastCommit(oid, commit.parents, commit.tree, commit.time, subject)

    def _first_parent(self, oid: Oid) -> Oid | None:
        found = self._find(oid)
        return found.parents[0] if found and found.parents else None

    def _contains(self, tip: Oid, oid: Oid) -> bool:
        if tip == oid:
            return True
        try:
            return self._repository.descendant_of(tip, oid)
        except (KeyError, ValueError, pygit2.GitError):
            return False

    def _with_runs(self, commit: PastCommit) -> PastCommit:
        now = self._runs(commit.tree)
        if not now:
            return commit
        before: dict[str, File] = {}
        for parent in commit.parents[:1]:
            if not self.has(parent):
                return commit
            before = self._runs(self.commit(parent).tree)
        added = tuple(sorted(n for n, e in now.items() if e[0] == Mode.FOLDER and n not in before))
        return PastCommit(
            commit.oid, commit.parents, commit.tree, commit.time, commit.subject, added
        )

    def _runs(self, tree: Oid) -> dict[str, File]:
        mode, oid = self._entries(tree).get(RUNS_FOLDER, (0, Oid("")))
        return self._entries(oid) if mode == Mode.FOLDER else {}

    def _similar(self, since: Oid, until: Oid, pairs: int) -> tuple[dict[str, str], bool]:
        if not pairs:
            return {}, True
        if pairs > _MOST_RENAME_PAIRS:
            return {}, False
        try:
            before = self._repository[self.commit(since).tree]
            after = self._repository[self.commit(until).tree]
            diff = before.peel(pygit2.Tree).diff_to_tree(after.peel(pygit2.Tree))
            diff.find_similar(
                flags=DiffFind.FIND_RENAMES,
                rename_threshold=RENAME_THRESHOLD,
                rename_limit=2000,
            )
            found: dict[str, str] = {}
            for delta in diff.deltas:
                if delta.status == DeltaStatus.RENAMED:
                    old, new = delta.old_file.raw_path, delta.new_file.raw_path
                    found[_decode(old)] = _decode(new)
        except (KeyError, ValueError, pygit2.GitError):
            return {}, False
        return found, True

    def _differences(
        self, before: Oid | None, after: Oid | None, prefix: str = ""
    ) -> Iterator[tuple[str, Oid | None, Oid | None]]:
        """Changed paths between two trees; a folder is named itself when it comes or goes."""
        old = self._entries(before) if before else {}
        new = self._entries(after) if after else {}
        for name in {**old, **new}:
            was, now = old.get(name), new.get(name)
            if was == now:
                continue
            path = prefix + name
            was_tree = was[1] if was and was[0] == Mode.FOLDER else None
            now_tree = now[1] if now and now[0] == Mode.FOLDER else None
            if was_tree is None or now_tree is None:
                yield path, was[1] if was else None, now[1] if now else None
            if was_tree or now_tree:
                yield from self._differences(was_tree, now_tree, f"{path}/")


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _same_bytes(
    deleted: Mapping[str, File], added: Mapping[str, File]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Pair files whose bytes did not change; where several hold the same, by file name."""
    old: dict[Oid, list[str]] = defaultdict(list)
    new: dict[Oid, list[str]] = defaultdict(list)
    for path, (mode, oid) in deleted.items():
        if mode != Mode.GITLINK and oid != _EMPTY_BLOB:
            old[oid].append(path)
    for path, (mode, oid) in added.items():
        if mode != Mode.GITLINK:
            new[oid].append(path)
    pairs: dict[str, str] = {}
    several: dict[str, tuple[str, ...]] = {}
    for oid, froms in old.items():
        tos = new.get(oid, [])
        if len(froms) == 1 and len(tos) == 1:
            pairs[froms[0]] = tos[0]
            continue
        for path in froms if tos else ():
            name = path.rpartition("/")[2]
            same = [p for p in tos if p.rpartition("/")[2] == name]
            rivals = [p for p in froms if p.rpartition("/")[2] == name]
            if len(froms) == len(tos) and len(same) == 1 and len(rivals) == 1:
                pairs[path] = same[0]
            else:
                several[path] = tuple(sorted(tos))
    return pairs, several
