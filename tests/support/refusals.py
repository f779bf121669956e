"""What a refusal must look like: one sentence, a way out, an exit code, and no trace of Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import repos

NOT_OURS = ".git/orchestrator"
"""Where locks are: the one place a tick that refuses may have touched."""


@dataclass(frozen=True)
class Said:
    """What one run printed and its exit code."""

    code: int
    out: str
    err: str


def state_of(path: Path) -> dict[str, str]:
    """Every file below `path`, whatever state the repository is in; without this tool's locks."""
    found = repos.digest_folder(path)
    own = str(path / NOT_OURS)
    return {name: digest for name, digest in found.items() if not name.startswith(own)}


def assert_error(said: Said, code: int, words: str, hint: str = "") -> None:
    """Nothing on standard output; on standard error one sentence and one way out."""
    assert (said.code, said.out) == (code, ""), said
    error, way_out = said.err.splitlines()
    assert error.startswith("error: ")
    assert way_out.startswith("hint: ")
    assert words in error
    assert hint in way_out
    assert_plain(said)


def assert_problem(said: Said, words: Sequence[str]) -> None:
    """Exit 1; in the report one problem that says `words`, and nothing on standard error."""
    assert (said.code, said.err) == (1, ""), said
    text = " ".join(said.out.split())
    assert all(w in text for w in words), said.out
    assert_plain(said)


def assert_plain(said: Said) -> None:
    """No trace of Python, no escape sequence, nothing that calls itself a bug."""
    for text in (said.out, said.err):
        assert "Traceback" not in text
        assert "this is a bug" not in text
        assert "\x1b" not in text
        assert all(c.isprintable() or c == "\n" for c in text)
