"""System calls of a real run, by strace: what was written when, and calls made to fail.

Faults are put in at the kernel's edge, so nothing between a test and the disk is replaced. strace
counts the calls of every process by itself; "the disk is full from here on" is therefore said to
each process in its own numbers: to the tick by how many calls it had made, to git commands by a
`git` on PATH that knows how many of them went before.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

DIRECTORY_CALLS = ("link", "linkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat")
WRITING_CALLS = (*DIRECTORY_CALLS, "write", "pwrite64", "fsync")
"""What a full disk refuses. (Opening is told apart by path: most files are opened to be read.)"""

_DONE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)")
_BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (-?\d+|\?)")
_GIT_SHIM = """\
#!/bin/sh
echo . >> '{count}'
if [ "$(wc -l < '{count}')" -gt {before} ]; then
  exec '{strace}' -f -qq -o /dev/null -e inject={calls}:error=ENOSPC '{git}' "$@"
fi
exec '{git}' "$@"
"""


class Call(NamedTuple):
    """One system call, at its end; an execve stands where it began."""

    pid: int
    name: str
    arguments: str
    result: str


def required() -> str:
    """Where strace is.

    Raises:
        AssertionError: it is not installed, or may not trace here; with what to do.
    """
    path = shutil.which("strace")
    assert path, "strace is not installed and these tests need it: apt-get install strace"
    command = [path, "-qq", "-o", "/dev/null", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    assert tried.returncode == 0, f"strace may not trace here (ptrace forbidden?): {tried.stderr}"
    return path


def recorded(out: Path) -> list[str]:
    """The command's beginning that records its calls, and those of its children, in `out`."""
    calls = ",".join(f"?{name}" for name in (*WRITING_CALLS, "openat", "fdatasync", "execve"))
    options = ["-f", "-y", "-v", "-s", "4096", "-o", str(out)]
    return [required(), *options, "-e", f"trace={calls}", "-e", "signal=none"]


def read(out: Path) -> list[Call]:
    """What was recorded, in order."""
    calls, begun = [], dict[int, str]()
    for line in out.read_text("utf-8", "replace").splitlines():
        if found := _DONE.match(line):
            pid, name, arguments, result = found.groups()
        elif found := _BEGUN.match(line):
            pid, name, arguments = found.groups()
            if name != "execve":
                begun[int(pid)] = arguments
                continue
            result = "0"
        elif found := _RESUMED.match(line):
            pid, name, rest, result = found.groups()
            if name == "execve":
                continue
            arguments = begun.pop(int(pid), "") + rest
        else:
            continue
        calls.append(Call(int(pid), name, arguments, result))
    return calls


class Moment(NamedTuple):
    """A point of a recorded run: how many calls of each name, and git commands, went before."""

    before: Counter[str]
    gits: int
    call: Call

    def full(self) -> list[str]:
        """The command's beginning under which every writing call fails from this moment on."""
        options = ["-qq", "-o", "/dev/null"]
        for name in sorted(self.before):
            options += ["-e", f"inject={name}:error=ENOSPC:when={self.before[name] + 1}+"]
        return [required(), *options]

    def shim(self, folder: Path) -> Path:
        """A folder to put first on PATH: git commands after this moment find the disk full too."""
        git, calls = shutil.which("git"), ",".join(f"?{name}" for name in DIRECTORY_CALLS)
        folder.mkdir()
        text = _GIT_SHIM.format(
            count=folder / "count", before=self.gits, strace=required(), git=git, calls=calls
        )
        (folder / "git").write_text(text, "utf-8")
        (folder / "git").chmod(0o755)
        return folder


def moments(calls: Sequence[Call]) -> list[Moment]:
    """Each moment at which the recorded run's first process was about to write."""
    main = calls[0].pid
    seen = Counter({c.name: 0 for c in calls if c.pid == main and c.name in WRITING_CALLS})
    gits, found = 0, []
    for call in calls:
        if call.pid == main and call.name in WRITING_CALLS:
            found.append(Moment(Counter(seen), gits, call))
            seen[call.name] += 1
        gits += is_git(call)
    return found


def unopenable(paths: Iterable[Path]) -> list[str]:
    """The command's beginning under which these files cannot be opened: no room for their names."""
    options = ["-qq", "-o", "/dev/null", "-e", "inject=openat:error=ENOSPC"]
    return [required(), *options, *(part for path in paths for part in ("-P", str(path)))]


def is_git(call: Call) -> bool:
    """A git command started by the product (not by git itself)."""
    started = call.name == "execve" and call.result == "0"
    return started and '["git", "--git-dir=' in call.arguments
