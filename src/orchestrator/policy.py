"""Reading `orchestrator.yaml` from a commit, never from a checkout."""

from orchestrator.configfile import read_config, refused
from orchestrator.git.reader import Reader
from orchestrator.model.config import Config
from orchestrator.model.names import CONFIG_PATH, Oid

MAX_FILE_BYTES = 64 * 1024
FILE_KINDS = ("blob", "executable")
WHAT = {"tree": "a folder", "symlink": "a symbolic link", "gitlink": "a submodule"}


def read_policy(reader: Reader, commit: Oid) -> Config:
    """Read `orchestrator.yaml` from a commit, never from a checkout.

    Raises:
        MissingObjectError: a partial clone lacks the file and nothing may be fetched now.
    """
    entry = reader.entry(commit, CONFIG_PATH)
    if entry is None:
        return read_config(None, commit=commit)
    if entry.kind not in FILE_KINDS:
        return refused(
            f"{CONFIG_PATH} is {WHAT[entry.kind]}, but must be a plain file",
            "commit the file itself at that path",
            path=CONFIG_PATH,
            commit=commit,
        )
    if entry.size is not None and entry.size > MAX_FILE_BYTES:
        return refused(
            f"{CONFIG_PATH} is {entry.size:,} bytes long, more than the {MAX_FILE_BYTES:,} allowed",
            "a policy needs a few lines a role; was another file committed at that path?",
            path=CONFIG_PATH,
            commit=commit,
        )
    return read_config(reader.read_blob(entry.oid, MAX_FILE_BYTES), commit=commit)
