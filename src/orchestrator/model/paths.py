"""Which paths an agent's changes may come back at: `writes`, and what is never the agent's.

Patterns know three wildcards: `*` and `?` stay within one name, `**` as a whole name stands for
any number of folders. A leading `./` means nothing, a trailing `/` means everything below. There
are no brackets and no negation, so that `docs/[id].md` means the file of that name. Nothing leads
out: an absolute pattern, or one with `..`, matches no path at all.

What an agent may never change is what decides about the agent itself or runs on other people's
machines: the policy, the ledger, git's own files, and settings of CI and of agents (these unless
`writes` spells them out). Names are compared as the file systems of Windows and macOS would.
"""

import re
from collections.abc import Callable, Sequence
from unicodedata import category

from orchestrator.model.names import CONFIG_PATH, RUNS_FOLDER, SweepName

NAME_BYTES = 255
PATH_BYTES = 1000

_FILE_MODES = (0o100644, 0o100755)
_SYMLINK = 0o120000

_SETTINGS = frozenset(
    [
        ".github",
        ".gitlab",
        ".gitea",
        ".forgejo",
        ".circleci",
        ".buildkite",
        ".woodpecker",
        ".woodpecker.yml",
        ".travis.yml",
        ".gitlab-ci.yml",
        "azure-pipelines.yml",
        "jenkinsfile",
        ".husky",
        ".githooks",
        ".pre-commit-config.yaml",
        ".claude",
        ".codex",
        ".gemini",
        ".opencode",
        ".cursor",
        ".cursorrules",
        ".windsurfrules",
        ".aider.conf.yml",
        ".mcp.json",
        ".vscode",
        ".devcontainer",
        ".envrc",
        "agents.md",
        "agents.override.md",
        "claude.md",
        "claude.local.md",
        "gemini.md",
    ]
)
"""Names, in lower case, of files and folders that others run or obey, wherever they stand."""

# What Windows makes of `.git`, `.gitmodules` and their like: short names, and a stream's name.
_SHORT_NAME = re.compile(r"gi[0-9a-z]{0,6}~[0-9]+")


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern of `writes` covers a path (relative to the repository, with `/`)."""
    wanted = _pattern_parts(pattern)
    return wanted is not None and _glob(
        wanted, path.split("/"), lambda part: part == "**", _name_matches
    )


def _pattern_parts(pattern: str) -> list[str] | None:
    below = pattern.endswith("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/") or ".." in parts or not parts:
        return None
    if below and parts[-1] != "**":
        parts.append("**")
    # At the end `**` is everything below a folder, and not a file with the folder's own name.
    return [*parts, "*"] if parts[-1] == "**" else parts


def _name_matches(pattern: str, name: str) -> bool:
    return _glob(pattern, name, lambda char: char == "*", lambda want, char: want in ("?", char))


def _glob(
    pattern: Sequence[str],
    items: Sequence[str],
    is_star: Callable[[str], bool],
    fits: Callable[[str, str], bool],
) -> bool:
    """Match with one step back to the last star: never worse than pattern times items."""
    at = done = 0
    star, resume = -1, 0
    while done < len(items):
        if at < len(pattern) and is_star(pattern[at]):
            star, resume = at, done
            at += 1
        elif at < len(pattern) and fits(pattern[at], items[done]):
            at += 1
            done += 1
        elif star >= 0:
            resume += 1
            at, done = star + 1, resume
        else:
            return False
    return all(map(is_star, pattern[at:]))


def refusal(
    path: str,
    mode: int | None,
    writes: Sequence[str],
    sweep: SweepName,
    *,
    target: str | None = None,
) -> str | None:
    """Why a change may not come back, as a phrase ("outside `writes`"), or None when it may.

    Args:
        path: relative to the repository, with `/`; bytes that are not UTF-8 as surrogate escapes.
        mode: the git mode it would have; None when it was deleted.
        writes: the role's patterns; the sweep's own folder is always allowed beside them.
        sweep: whose run it is.
        target: where a symbolic link points.
    """
    parts = path.split("/")
    return (
        _bad_name(path, parts)
        or _reserved(path, parts, sweep)
        or _setting(path, parts, writes)
        or _outside(path, writes, sweep)
        or _bad_kind(parts, mode, target)
    )


def _bad_name(path: str, parts: Sequence[str]) -> str | None:
    if any(part in ("", ".", "..") for part in parts):
        return "not a path inside the repository"
    if any(category(char).startswith("C") for char in path):
        return "a name with characters that cannot be shown"
    if len(path.encode()) > PATH_BYTES or any(len(p.encode()) > NAME_BYTES for p in parts):
        return "a name that is too long"
    return None


def _reserved(path: str, parts: Sequence[str], sweep: SweepName) -> str | None:
    """Git's own, the policy and the ledger: no `writes` can open these."""
    for part in re.split(r"[/\\]", path):
        name = _plain(part)
        if name == ".git" or _SHORT_NAME.fullmatch(name):
            return "git's own"
        if name in (".gitmodules", ".gitattributes"):
            return f"`{name}` steers git"
    if _plain(parts[0]) == CONFIG_PATH:
        return "the policy is not the agent's to change"
    if _plain(parts[0]) != RUNS_FOLDER:
        return None
    if parts[0] != RUNS_FOLDER or len(parts) == 1:
        return "the runs' folder is not the agent's to change"
    marker = sweep.marker_path.split("/")
    if [_plain(p) for p in parts[: len(marker)]] == [_plain(p) for p in marker]:
        return "the marker is not the agent's to change"
    inside = len(parts) > len(marker) - 1
    if not inside and SweepName.from_slug(parts[1]) is not None:
        return "a run's folder stays a folder"
    return "another run's folder" if inside and parts[1] != sweep.slug else None


def _setting(path: str, parts: Sequence[str], writes: Sequence[str]) -> str | None:
    for part in parts:
        name = _plain(part)
        if name not in _SETTINGS and not name.startswith(".git"):
            continue
        spelled = any(part in (_pattern_parts(w) or ()) and matches(w, path) for w in writes)
        if not spelled:
            return f"`{part}` steers other programs, and `writes` does not name it"
    return None


def _outside(path: str, writes: Sequence[str], sweep: SweepName) -> str | None:
    if path.startswith(f"{sweep.folder}/") or any(matches(w, path) for w in writes):
        return None
    return "outside `writes`"


def _bad_kind(parts: Sequence[str], mode: int | None, target: str | None) -> str | None:
    if mode is None or mode in _FILE_MODES:
        return None
    if mode != _SYMLINK:
        return "neither a file nor a link"
    return None if _stays_inside(parts, target or "") else "a link that may lead out of the tree"


def _stays_inside(parts: Sequence[str], target: str) -> bool:
    """Whether a link leads to somewhere inside the tree, through whatever other links.

    `..` is followed only at its beginning: after a name, which may be a link itself, nobody can
    say where it leads.
    """
    steps = [step for step in target.split("/") if step not in ("", ".")]
    ups = 0
    while ups < len(steps) and steps[ups] == "..":
        ups += 1
    names = steps[ups:]
    inside = not target.startswith("/") and ups < len(parts) and ".." not in names
    shown = not any(category(char).startswith("C") for char in target)
    safe = not any(_plain(n) == ".git" or _SHORT_NAME.fullmatch(_plain(n)) for n in names)
    return bool(target) and inside and shown and safe and "\\" not in target


def _plain(name: str) -> str:
    """A name as Windows and macOS compare it: no case, no trailing dots and spaces, no stream."""
    return name.split(":", 1)[0].rstrip(" .").lower()
