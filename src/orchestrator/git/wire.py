"""Talking to a remote: the git program does it, always by explicit refspecs, and a push's outcome
is read from the flag of the one ref that was pushed.

Nothing here forces: a branch is created only where there is none, and moved or deleted only from
the exact commit that was seen there.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from orchestrator.errors import CannotLookError, RemoteUnreachableError
from orchestrator.git import porcelain
from orchestrator.git.reader import Reader
from orchestrator.git.runner import NETWORK_TIMEOUT_S, Completed, Git
from orchestrator.git.stalelocks import break_stale, tracking_locks
from orchestrator.model.names import BRANCH_FOLDER, Oid, Ref

ASK_TIMEOUT_S = 60.0
"""Seconds the remote has to list its refs or to take a push of a few small objects."""

_HEADS = "refs/heads/"
_RUN = Ref(_HEADS + BRANCH_FOLDER)
_NOT_IN_A_NAME = frozenset(" ~^:?*[\\\x7f")  # most of them would widen a refspec
_DEFAULT_HINT = "name the default branch with --default-branch"

# Whatever the user's configuration says about pushes is about the user's pushes.
_PUSH = (
    "push",
    "--porcelain",
    "--no-progress",
    "--no-verify",  # no pre-push hook
    "--no-follow-tags",
    "--no-signed",  # no gpg, which may ask for a passphrase
    "--recurse-submodules=no",
    "--no-set-upstream",
)

_FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",  # FETCH_HEAD is the user's
    "--no-recurse-submodules",
    "--no-auto-maintenance",
    "--refmap=",  # nothing but the refspecs given, whatever remote.<name>.fetch says
)


class RemoteHead(NamedTuple):
    """What the remote says of itself.

    Attributes:
        default_branch: the branch its HEAD names; None when it has none, or HEAD is detached.
        has_run_branch: it has a branch called `run`, so that `run/<slug>` cannot be created.
    """

    default_branch: str | None
    has_run_branch: bool


class PushOutcome(NamedTuple):
    """What became of a push of one ref.

    Attributes:
        flag: git's own: ` ` moved, `*` created, `-` deleted, `=` was there already, `!` refused;
            None when git said nothing about the ref.
        reason: git's words, credentials removed.
        server: the server's words (a hook's, a forge's), line by line.
        answered: false when it is unknown what the remote did: the connection dropped, the time was
            up, it could not be reached. Then ask it.
    """

    flag: str | None
    reason: str
    server: tuple[str, ...]
    answered: bool


class Remote:
    """One configured remote.

    Attributes:
        broken_locks: lock files of a killed fetch that had to be removed so far.

    Raises:
        CannotLookError: `name` is not one of the repository's remotes.
    """

    def __init__(self, git: Git, reader: Reader, name: str) -> None:
        if name.startswith("-") or name not in reader.remotes():
            raise CannotLookError(
                f"{reader.path} has no remote called {name}", "see: git remote -v"
            )
        self._git = git
        self._reader = reader
        self.name = name
        self.broken_locks: tuple[str, ...] = ()

    def head(self) -> RemoteHead:
        """Ask for the remote's default branch, and whether a branch `run` is in the way.

        Raises:
            RemoteUnreachableError: it did not answer.
        """
        found = self._list("--symref", "HEAD", _RUN)
        target = found.symrefs.get(Ref("HEAD"), "")
        branch = target.removeprefix(_HEADS) if target.startswith(_HEADS) else None
        return RemoteHead(branch, _RUN in found.refs)

    def ls(self, *patterns: str) -> Mapping[Ref, Oid]:
        """The remote's refs whose full names match one of `patterns` (`*` crosses slashes).

        Raises:
            RemoteUnreachableError: it did not answer.
        """
        found = self._list(*patterns).refs
        return {
            ref: oid for ref, oid in found.items() if any(fnmatchcase(ref, p) for p in patterns)
        }

    def _list(self, *args: str) -> porcelain.RemoteRefs:
        options = [a for a in args if a.startswith("--")]
        patterns = [a for a in args if not a.startswith("--")]
        command = ("ls-remote", "--quiet", *options, "--", self.name, *patterns)
        done = self._git.run(*command, timeout=ASK_TIMEOUT_S, ok_codes=None, network=True)
        if not done.ok:
            raise self._unreachable(done, ASK_TIMEOUT_S)
        return porcelain.parse_ls_remote(done.stdout)

    def fetch(self, default_branch: str) -> None:
        """Bring the default branch and every `run/*` here, into refs/remotes/<name>/, and forget
        those the remote has no more. No other ref changes, whatever kind of clone this is.

        Raises:
            CannotLookError: the remote has no such branch, or this is no branch's name.
            RemoteUnreachableError: it did not answer.
        """
        if not is_branch_name(default_branch):
            raise CannotLookError(f"{default_branch!r} is not a branch's name", _DEFAULT_HINT)
        self._forget_run_branch()
        self._fetch(
            "--prune",
            "--",
            self.name,
            self._refspec(Ref(_HEADS + default_branch)),
            self._refspec(Ref(f"{_RUN}/*")),
        )

    def _forget_run_branch(self) -> None:
        """A tracking ref of a branch `run` that the remote has no more blocks those of `run/*`."""
        tracking = self._tracking(_RUN)
        known = self._reader.resolve(tracking)
        if known is not None and _RUN not in self.ls(_RUN):
            self._git.run("update-ref", "--no-deref", "-d", tracking, known)

    def fetch_ref(self, ref: Ref) -> Oid | None:
        """Bring one branch (its full name) and its history here; its tip, or None when the remote
        has none of that name.

        Raises:
            RemoteUnreachableError: it did not answer.
            ValueError: `ref` is not under refs/heads/.
        """
        if not ref.startswith(_HEADS):
            raise ValueError(f"{ref} is not a branch's full name")
        if ref not in self.ls(ref):
            return None
        self._fetch("--", self.name, self._refspec(ref))
        return self._reader.resolve(self._tracking(ref))

    def prefetch(self, commits: Iterable[Oid]) -> None:
        """In a partial clone, bring every file of these commits' trees that is missing, at once.

        Raises:
            RemoteUnreachableError: it did not answer.
        """
        if not self._reader.is_partial:
            return
        command = ("rev-list", "--objects", "--no-walk", "--missing=print", "--stdin")
        wanted = "\n".join(commits).encode()
        listed = self._git.run(*command, stdin=wanted).stdout.decode("ascii", "replace")
        missing = [line[1:] for line in listed.splitlines() if line.startswith("?")]
        if missing:
            self._fetch(
                "--filter=blob:none",
                "--stdin",
                "--",
                self.name,
                stdin="\n".join(missing).encode() + b"\n",
                # The objects are named: comparing histories first would only cost time.
                settings=("-c", "fetch.negotiationAlgorithm=noop"),
            )

    def _fetch(self, *args: str, stdin: bytes = b"", settings: tuple[str, ...] = ()) -> None:
        command = (*settings, *_FETCH, *args)
        done = self._git.run(*command, stdin=stdin, ok_codes=None, network=True)
        if not done.ok and self._unblocked():
            done = self._git.run(*command, stdin=stdin, ok_codes=None, network=True)
        if done.ok:
            return
        if "couldn't find remote ref" in done.stderr:
            words = porcelain.complaint(done.stderr)
            raise CannotLookError(f"{self.name} lacks a branch: {words}", _DEFAULT_HINT)
        raise self._unreachable(done, NETWORK_TIMEOUT_S)

    def _unblocked(self) -> bool:
        """Whether something was in the way of a fetch that is not any more."""
        locks = tracking_locks(self._reader.common_dir, self.name)
        try:
            removed = break_stale(locks)
        except OSError:  # not ours to remove: git's own words say what is in the way
            return False
        self.broken_locks += removed
        return bool(removed)

    def create(self, oid: Oid, ref: Ref) -> PushOutcome:
        """Create `ref` on the remote at `oid`, only if there is none. Won only with flag `*`."""
        return self._push(f"{oid}:{ref}", ref, "")

    def update(self, oid: Oid, ref: Ref, expected: Oid) -> PushOutcome:
        """Move `ref` on the remote from exactly `expected` to `oid`.

        Raises:
            ValueError: `oid` does not contain `expected`, so that commits would be dropped.
        """
        if not self._reader.is_ancestor(expected, oid):
            raise ValueError(f"{oid} does not build on {expected}: that push would drop commits")
        return self._push(f"{oid}:{ref}", ref, expected)

    def delete(self, ref: Ref, expected: Oid) -> PushOutcome:
        """Delete `ref` on the remote if it is at exactly `expected`. Done only with flag `-`."""
        return self._push(f":{ref}", ref, expected)

    def _push(self, refspec: str, ref: Ref, expected: str) -> PushOutcome:
        lease = f"--force-with-lease={ref}:{expected}"
        # A mirror refuses refspecs; this push is no mirror's.
        plain = ("-c", f"remote.{self.name}.mirror=false")
        command = (*plain, *_PUSH, lease, "--", self.name, refspec)
        done = self._git.run(*command, timeout=ASK_TIMEOUT_S, ok_codes=None, network=True)
        server = porcelain.server_lines(done.stderr)
        line = next((x for x in porcelain.parse_push(done.stdout) if x.ref == ref), None)
        if line is None:
            return PushOutcome(None, self._words(done, ASK_TIMEOUT_S), server, answered=False)
        reason = line.reason or line.summary.strip("[]")
        return PushOutcome(line.flag, reason, server, answered=line.answered)

    def urls(self) -> tuple[str, tuple[str, ...]]:
        """The URL fetched from and those pushed to, credentials removed; they can differ."""
        fetch = self._git.run("remote", "get-url", "--", self.name).stdout.decode(errors="replace")
        push = self._git.run("remote", "get-url", "--push", "--all", "--", self.name).stdout
        shown = porcelain.without_credentials(push.decode(errors="replace"))
        return porcelain.without_credentials(fetch.strip()), tuple(shown.split("\n")[:-1])

    def _refspec(self, ref: Ref) -> str:
        return f"+{ref}:{self._tracking(ref)}"

    def _tracking(self, ref: Ref) -> Ref:
        return Ref(f"refs/remotes/{self.name}/{ref.removeprefix(_HEADS)}")

    def _words(self, done: Completed, limit: float) -> str:
        if done.timed_out:
            return f"no answer within {limit:g} s"
        return porcelain.complaint(done.stderr) or f"git ended with code {done.code}"

    def _unreachable(self, done: Completed, limit: float) -> RemoteUnreachableError:
        return RemoteUnreachableError(
            f"the remote {self.name} cannot be read: {self._words(done, limit)}",
            "git runs here without prompts; try the same by hand: "
            f"GIT_TERMINAL_PROMPT=0 git ls-remote {self.name}",
        )


def is_branch_name(text: str) -> bool:
    """Whether a branch can have this name; `HEAD` and options are none."""
    odd = ".." in text or "@{" in text or any(c in _NOT_IN_A_NAME or c < " " for c in text)
    odd = odd or text.startswith(("-", "/")) or text.endswith(("/", ".", ".lock"))
    return bool(text) and text not in ("HEAD", "@") and "//" not in text and not odd
