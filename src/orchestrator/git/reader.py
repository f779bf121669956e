"""Reading a repository: refs, trees, files, history, configuration. Nothing here changes anything.

Objects come through pygit2's object database as raw bytes (`orchestrator.git.objects`); listing
refs is the git program's, which alone is flat with a hundred thousand packed refs.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pygit2

from orchestrator.errors import CannotLookError, MissingObjectError
from orchestrator.git import opening, porcelain
from orchestrator.git.configreader import Identity
from orchestrator.git.objectreader import Entry, ObjectReader, TooLargeError
from orchestrator.git.objects import CommitInfo
from orchestrator.git.runner import Git
from orchestrator.model.names import BRANCH_FOLDER, Oid, Ref, SweepName

__all__ = ["CommitInfo", "Entry", "Identity", "Reader", "SweepRef", "TooLargeError"]

_SYMREF_DEPTH = 5


class SweepRef(NamedTuple):
    """A ref that is a sweep's branch: local when `remote` is None, else remote-tracking."""

    name: Ref
    oid: Oid
    remote: str | None
    sweep: SweepName


class Reader(ObjectReader):
    """One opened repository: its refs here, its objects and configuration in what it builds on.

    Attributes:
        git_dir: the repository, or the linked worktree's own folder in it; absolute.
        workdir: the working tree's top folder; None in a bare repository.
        notes: sentences about this machine that are worth saying once.
        git: runs local git commands on it.
    """

    def __init__(
        self, repository: pygit2.Repository, environ: Mapping[str, str], notes: tuple[str, ...]
    ) -> None:
        self.notes = notes
        self.git_dir = os.path.abspath(repository.path)
        workdir = None if repository.is_bare else repository.workdir
        self.workdir = os.path.abspath(workdir) if workdir else None
        common_dir = str(opening.common_folder(Path(self.git_dir)))
        super().__init__(repository, self.workdir or self.git_dir, common_dir)
        self.git = Git(self.git_dir, environ=environ, cwd=self.workdir)

    @classmethod
    def open(cls, path: str, environ: Mapping[str, str]) -> "Reader":
        """Open the repository at or above `path`: a subfolder, a linked worktree, a bare one.

        Raises:
            CannotLookError: each reason with its own sentence and hint (`git.opening`).
        """
        notes = opening.use_home(environ)
        return cls(opening.open_repository(path), environ, notes)

    @property
    def is_empty(self) -> bool:
        """Whether it has no ref at all; a clone of an empty repository is."""
        done = self.git.run("for-each-ref", "--count=1", "--format=%(refname)")
        return not done.stdout

    def resolve(self, ref: Ref) -> Oid | None:
        """The object a ref points to, through symbolic refs; None when there is no such ref.

        Raises:
            CannotLookError: the ref's file is damaged.
        """
        name: Ref | None = ref
        for _ in range(_SYMREF_DEPTH):
            if name is None:
                return None
            found = self._lookup(name)
            if found is None or isinstance(found, str):
                return found
            name = found[0]
        return None

    def symref(self, ref: Ref) -> Ref | None:
        """The name a symbolic ref points to, even when that does not exist; None otherwise."""
        found = self._lookup(ref)
        return found[0] if isinstance(found, tuple) else None

    def head_ref(self) -> Ref | None:
        """The branch HEAD is on, born or not; None when it is detached."""
        return self.symref(Ref("HEAD"))

    def _lookup(self, ref: Ref) -> Oid | tuple[Ref] | None:
        """The ref's object id, or the name it points to in a tuple, or None."""
        try:
            found = self.repository.references.get(ref)
        except UnicodeError:  # pygit2 takes only UTF-8 names; git takes what the file system has
            return self._lookup_by_git(ref)
        except (pygit2.GitError, ValueError, OSError) as error:
            closed = opening.blocked(self.common_dir, ref, "packed-refs")
            raise closed or CannotLookError(
                f"the ref {ascii_name(ref)} of {self.path} cannot be read: {error}",
                "look at it with: git fsck",
            ) from error
        if found is None:
            return None
        target = found.raw_target
        if isinstance(target, bytes):
            return (Ref(target.decode("utf-8", "surrogateescape")),)
        return Oid(str(target))

    def _lookup_by_git(self, ref: Ref) -> Oid | None:
        done = self.git.run("for-each-ref", f"--format={porcelain.REF_FORMAT}", ref)
        return next((r.oid for r in porcelain.parse_refs(done.stdout) if r.name == ref), None)

    def sweep_refs(self, remotes: Sequence[str]) -> tuple[SweepRef, ...]:
        """Every local and remote-tracking sweep branch; names that are not a sweep's are ignored.

        One git command, whose cost does not grow with the number of other refs. A symbolic ref
        counts with the object it leads to.

        Raises:
            CannotLookError: the ref of a sweep is damaged, so that it cannot be told whether the
                sweep is open.
        """
        folders: list[tuple[str, str | None]] = [(f"refs/heads/{BRANCH_FOLDER}/", None)]
        folders += [(f"refs/remotes/{r}/{BRANCH_FOLDER}/", r) for r in remotes]
        patterns = [prefix for prefix, _ in folders]
        done = self.git.run("for-each-ref", f"--format={porcelain.REF_FORMAT}", *patterns)
        for broken in porcelain.broken_refs(done.stderr):
            if _sweep_of(broken, folders) is not None:
                raise CannotLookError(
                    f"the ref {broken} of {self.path} is damaged",
                    f"if the branch is not needed, remove it with: git update-ref -d {broken}",
                )
        found = []
        for line in porcelain.parse_refs(done.stdout):
            sweep = _sweep_of(line.name, folders)
            if sweep is not None:
                found.append(SweepRef(line.name, line.oid, sweep[1], sweep[0]))
        return tuple(found)

    def refs_below(self, prefix: str) -> tuple[tuple[Ref, Oid], ...]:
        """Every ref whose name starts with `prefix` (which ends in a slash), and its object."""
        done = self.git.run("for-each-ref", f"--format={porcelain.REF_FORMAT}", prefix)
        return tuple((line.name, line.oid) for line in porcelain.parse_refs(done.stdout))

    def is_ancestor(self, ancestor: Oid, descendant: Oid) -> bool:
        """Whether `descendant` reaches `ancestor` (a commit reaches itself).

        The git program walks: it ends on damaged objects, and within a time limit.

        Raises:
            MissingObjectError: one of them, or of what lies between, is not in this clone.
        """
        for oid in (ancestor, descendant):
            if not self.has(oid):
                raise self._missing(oid)
        if ancestor == descendant:
            return True
        done = self.git.run("merge-base", "--is-ancestor", ancestor, descendant, ok_codes=None)
        if done.timed_out or done.code not in (0, 1):
            raise MissingObjectError(
                f"the history between {ancestor[:10]} and {descendant[:10]} in {self.path} "
                f"cannot be read: {porcelain.complaint(done.stderr) or 'git took too long'}",
                "look at it with: git fsck",
            )
        return done.code == 0

    def worktree_branches(self) -> Mapping[Ref, str]:
        """Branches somebody is working on here, in the main or a linked worktree -> its folder.

        A branch in the middle of a rebase counts, although HEAD is detached then.
        """
        return opening.checked_out(Path(self.common_dir), bare=self._main_is_bare())

    def _main_is_bare(self) -> bool:
        return self.config_bool("core.bare", default=False)

    def revision(self, text: str) -> Oid:
        """The commit a revision (a branch, a tag, an abbreviated id, `main~2`) means.

        Raises:
            CannotLookError: it means none, or several.
        """
        try:
            found = self.repository.revparse_single(text).peel(pygit2.Commit)
        except (pygit2.GitError, ValueError, LookupError, OSError) as error:
            words = "means more than one" if "ambiguous" in str(error) else "is no"
            raise CannotLookError(
                f'"{text}" {words} commit in {self.path}',
                "name a branch, a tag or a commit; a branch of the remote is origin/NAME here",
            ) from error
        return Oid(str(found.id))


def ascii_name(name: str) -> str:
    """A ref's name, whatever its bytes, as text that can be printed."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _sweep_of(
    name: str, folders: Sequence[tuple[str, str | None]]
) -> tuple[SweepName, str | None] | None:
    for prefix, remote in folders:
        if name.startswith(prefix):
            sweep = SweepName.from_slug(name.removeprefix(prefix))
            if sweep is not None:
                return sweep, remote
    return None
