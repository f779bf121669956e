"""From a folder an agent has written to, to changes of a tree: every file is untrusted data.

The folder is walked through open folder handles and no symbolic link is ever followed, so that a
path cannot be bent while it is read. Files are compared byte for byte with the commit's blobs. The
agent's `.git`, index, configuration, attributes and ignore files are never looked at, and git never
runs here; what git would ignore, the `.gitignore` files of the commit say. Only what
`orchestrator.model.paths` lets through becomes a change; the rest is named with its reason. The
comparison itself is `orchestrator.git.comparison`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.git.comparison import FOLDER_FLAGS, Comparison, HarvestError, Limits
from orchestrator.git.ignored import Ignored
from orchestrator.git.reader import Reader
from orchestrator.git.writer import TreeChange, Writer
from orchestrator.model.names import RUNS_FOLDER, Oid, SweepName
from orchestrator.text import brings_secret

__all__ = ["MAX_BYTES", "MAX_FILES", "Harvest", "HarvestError", "harvest"]

_NOTHING: Mapping[str, str] = {}
MAX_FILES = 100
MAX_BYTES = 4_000_000
"""What one sweep may change: more than this nobody reviews."""


@dataclass(frozen=True, slots=True)
class Harvest:
    """What comes back from an agent.

    Attributes:
        changes: by path, what shall stand there; None removes. The contents are stored already.
        left_out: what it changed and may not, each with the reason; at most `comparison.LISTED`.
        bytes: the size of all new contents.
        more: how many left-out paths are not in `left_out`.
    """

    changes: Mapping[str, TreeChange | None]
    left_out: tuple[tuple[str, str], ...]
    bytes: int
    more: int = 0


def harvest(
    writer: Writer,
    reader: Reader,
    workdir: Path,
    base: Oid,
    *,
    writes: Sequence[str],
    sweep: SweepName,
    checkout: bool,
    environ: Mapping[str, str] = _NOTHING,
    max_files: int = MAX_FILES,
    max_bytes: int = MAX_BYTES,
) -> Harvest:
    """Compare `workdir` with the tree of `base`, and store what may come back.

    Args:
        writer: stores the new contents.
        reader: reads `base`.
        workdir: the folder the agent worked in; nothing may still be running there.
        base: the commit the folder was made from.
        writes: the role's patterns.
        sweep: whose run it is; its own folder is always allowed.
        checkout: whether the folder began with the commit's files. If not, what is absent is
            unchanged, and a file keeps the mode it has on the branch.
        environ: this process's environment; files that bring one of its credentials, or a
            well-known token, are left out.
        max_files: how many paths may change.
        max_bytes: how many bytes of new contents there may be.

    Raises:
        HarvestError: there is more than that; nothing was stored.
        WriteFailedError: a content could not be stored.
        MissingObjectError: a folder of `base` is not in this clone.
        OSError: the folder itself cannot be read.
    """
    limits = Limits(max_files, max_bytes)
    own = f"{RUNS_FOLDER}/{sweep.slug}"  # whatever is ignored, the sweep's record comes back
    ignored = Ignored(lambda path: _stored(reader, base, path), never=own)
    walk = Comparison(reader, ignored, writes, sweep, checkout=checkout, limits=limits)
    top = os.open(workdir, FOLDER_FLAGS)
    try:
        walk.folder(top, reader.commit(base).tree, "", None)
    finally:
        os.close(top)
    left_out = list(walk.left_out)
    changes: dict[str, TreeChange | None] = {}
    for path, new in sorted(walk.changes.items()):
        if new is None:
            changes[path] = None
        elif brings_secret(_text(new.data), _before(reader, base, path), environ):
            left_out.append((path, "it holds what looks like a credential"))
        else:
            changes[path] = TreeChange(new.oid or writer.blob(new.data), new.mode)
    return Harvest(changes, tuple(sorted(left_out)), walk.bytes, walk.more)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _before(reader: Reader, base: Oid, path: str) -> str:
    """What stood there: a credential that was committed long ago is not brought by the agent."""
    return _text(_stored(reader, base, path) or b"")


def _stored(reader: Reader, commit: Oid, path: str) -> bytes | None:
    entry = reader.entry(commit, path)
    if entry is None or entry.size is None or entry.kind not in ("blob", "executable"):
        return None
    return reader.read_blob(entry.oid, entry.size)
