"""What git ignores, judged from a commit's `.gitignore` files: git itself is the oracle."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.git.ignored import Ignored
from tests.support.repos import make_repo

_LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "a", "a/", "/a", "/a/", "a/b", "*", "/*", "**", "**/b", "a/**", "a/**/b", "*.b",
                "?", "[ab]", "[!a]", "!a", "!a/", "!/a", "!a/b", "!*.b", "!**/b", "# a", r"\#a",
                r"\!a", "a ", r"a\ ", "", " ", "/", "//", "***", "a*b", "a**b", "[", "[a", "\\",
                "a\r", "b/*", "!b/", "!*/", "!.gitignore", "a//b", "./a", "../a", "[a-b]", "A",
            ]
        ),
        st.text("ab*?!/.# [", max_size=6),
    ),
    max_size=5,
)  # fmt: skip
_PARTS = st.sampled_from(["a", "b", "a.b", "ab", "c", "#a", "!a", "A"])
_PATHS = st.lists(st.lists(_PARTS, min_size=1, max_size=4).map("/".join), min_size=1, max_size=8)


def _told_by_git(folder: Path, files: Mapping[str, bytes], paths: Iterable[str]) -> set[str]:
    """Which of the paths git ignores, all of them made on disk as files."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    asked = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=folder,
        input="".join(f"{path}\0" for path in paths).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert asked.returncode in (0, 1), asked.stderr
    return {path.decode() for path in asked.stdout.split(b"\0") if path}


def _possible(paths: Iterable[str]) -> list[str]:
    """Those that can stand on one disk together: none is a folder of another."""
    kept: list[str] = []
    for path in paths:
        clash = any(f"{p}/".startswith(f"{path}/") or f"{path}/".startswith(f"{p}/") for p in kept)
        if not clash:
            kept.append(path)
    return kept


@settings(deadline=None, max_examples=150)
@given(top=_LINES, inner=_LINES, paths=_PATHS)
@example(top=["a/*", "!a/b"], inner=[], paths=["a/b", "a/c"])
@example(top=["a/", "!a/b"], inner=[], paths=["a/b"])
@example(top=["*"], inner=["!b"], paths=["a/b"])
@example(top=["/*", "!/a"], inner=["*", "!b"], paths=["a/b", "a/c", "c/b"])
def test_it_says_what_git_says(top: list[str], inner: list[str], paths: list[str]) -> None:
    files = {
        ".gitignore": "\n".join(top).encode(),
        "a/.gitignore": "\n".join(inner).encode(),
    }
    paths = [path for path in _possible(paths) if path != "a"]
    with TemporaryDirectory() as place:
        folder = make_repo(Path(place) / "repo")
        ignored = Ignored(files.get)
        said = {path for path in paths if ignored.matches(path)}
        assert said == _told_by_git(folder, {**files, **dict.fromkeys(paths, b"")}, paths)


@pytest.mark.parametrize(
    "line", ["[[:alpha:]]", "x[a[b]", "x[+--]", "x[a&&b]", "x[a~~b]", "x[a||b]"]
)
def test_a_rule_that_would_be_misread_is_no_rule(line: str) -> None:
    ignored = Ignored({".gitignore": f"{line}\nlast\n".encode()}.get)
    assert not any(ignored.matches(path) for path in ("a", "x", "xa", "x[b", "x+", "x&"))
    assert ignored.matches("last")


def test_a_byte_order_mark_and_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    files = {".gitignore": b"\xef\xbb\xbfa\n\xff.b\r\n"}
    folder = make_repo(tmp_path / "repo")
    assert _told_by_git(folder, {**files, "a": b"", "b": b""}, ["a", "b"]) == {"a"}
    ignored = Ignored(files.get)
    assert [ignored.matches(p) for p in ("a", "b", os.fsdecode(b"\xff.b"))] == [True, False, True]


def test_a_folder_is_judged_as_one_and_never_the_one_that_is_kept() -> None:
    ignored = Ignored({".gitignore": b"*/\nruns\n"}.get, never="runs/it")
    assert ignored.matches("a", is_folder=True)
    assert not ignored.matches("a")
    assert not ignored.matches("runs", is_folder=True)
    assert not ignored.matches("runs/it", is_folder=True)
    assert not ignored.matches("runs/it/deep/x.md")
    assert ignored.matches("runs/other", is_folder=True)


def test_files_too_large_to_be_rules_are_none() -> None:
    assert Ignored({".gitignore": b"a\n"}.get).matches("a")
    assert not Ignored({".gitignore": b"a\n" + b"#" * 262_144}.get).matches("a")
