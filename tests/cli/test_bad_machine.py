"""Everything the machine can have wrong: rights, room, HOME, the environment, who commits."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import POLICY, Run
from tests.support import repos
from tests.support.refusals import (
    Said,
    assert_error,
    assert_plain,
    assert_problem,
    state_of,
)

FILES = {"orchestrator.yaml": POLICY}
_NOBODY = 65534

# Everything is imported before the rights go: the interpreter's own files may be closed as well.
_CHILD = """
import codecs, contextlib, importlib, io, json, os, pkgutil, resource, signal, sys
from datetime import UTC, datetime
import orchestrator
heavy = ("json", "schemas", "documents", "builtin", "_supervisor", "__main__")
for module in pkgutil.walk_packages(orchestrator.__path__, "orchestrator."):
    if not any(word in module.name for word in heavy):
        importlib.import_module(module.name)
codecs.lookup("utf-8-sig")
from orchestrator.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main(["explain", "-C", "/dev/null"])
kind, commands = sys.argv[1], json.loads(sys.argv[2])
if kind == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
elif os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
found = []
for command in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command, lambda: datetime(2026, 11, 30, 2, 0, tzinfo=UTC))
    found.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(found))
"""


def child(kind: str, path: Path, *verbs: str, **environ: str) -> list[Said]:
    """Commands in a process of its own, without rights (`nobody`) or without room (`full`)."""
    commands = json.dumps([[verb, "-C", str(path)] for verb in verbs])
    modules = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, kind, commands],
        capture_output=True,
        text=True,
        env={**os.environ, **modules, **environ},
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [Said(*one) for one in json.loads(done.stdout)]


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A repository of the user who has no rights, and a `home` beside it.

    Not below pytest's own folder, which every session of it closes to others again.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = repos.make_repo(Path(folder) / "r", FILES)
        Path(folder).chmod(0o711)
        (Path(folder) / "home").mkdir()
        for here, _, names in os.walk(path):
            for name in [here, *(os.path.join(here, n) for n in names)]:
                os.chown(name, *((_NOBODY, _NOBODY) if os.geteuid() == 0 else (-1, -1)))
        yield path


def home_of(path: Path) -> str:
    """A HOME that the user without rights may enter."""
    return str(path.parent / "home")


CLOSED = (".git", ".git/HEAD", ".git/config", ".git/refs", ".git/refs/heads/main", ".git/objects")


@pytest.mark.parametrize("closed", [*CLOSED, "its object"])
def test_what_this_user_may_not_read_is_named(theirs: Path, closed: str) -> None:
    oid = (theirs / ".git/refs/heads/main").read_text().strip()
    name = f".git/objects/{oid[:2]}/{oid[2:]}" if closed == "its object" else closed
    before = state_of(theirs)
    mode = (theirs / name).stat().st_mode
    (theirs / name).chmod(0)
    said = child("nobody", theirs, "explain", "tick", HOME=home_of(theirs))
    (theirs / name).chmod(mode)
    for one in said:
        assert_error(one, 3, f"{theirs / name} may not be read by this user", "ls -ld")
    assert state_of(theirs) == before


@pytest.mark.parametrize("closed", ["", ".gitconfig"])
def test_a_home_of_another_user_is_named(theirs: Path, closed: str) -> None:
    home = theirs.parent / "home"
    (home / ".gitconfig").write_text("")
    (home / closed).chmod(0)
    said = child("nobody", theirs, "explain", "tick", HOME=str(home))
    (home / closed).chmod(0o755)
    words = f"{home / closed} may not be read" if closed else f"HOME is {home}, which this user may"
    for one in said:
        assert_error(one, 3, words)


def test_a_repository_of_another_user_is_named(theirs: Path, run: Run) -> None:
    if os.geteuid() == 0:
        said = run("explain", "-C", theirs)
        words = f"{theirs} belongs to another user"
        assert_error(Said(said.code, said.out, said.err), 3, words, "safe.directory")
    else:  # only root can give a folder away
        assert child("nobody", theirs, "explain", HOME=home_of(theirs))[0].code == 0


def test_a_read_only_repository_is_looked_at_and_not_ticked(theirs: Path) -> None:
    for folder, _, names in os.walk(theirs):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
        Path(folder).chmod(0o555)
    before = repos.digest_folder(theirs)
    *looked, said = child(
        "nobody", theirs, "explain", "check", "status", "tick", HOME=home_of(theirs)
    )
    assert [(one.code, one.err) for one in looked] == [(0, "")] * 3
    assert_error(said, 3, "cannot write to", "tick needs a repository it can write to")
    assert repos.digest_folder(theirs) == before
    for folder, _, _ in os.walk(theirs):
        Path(folder).chmod(0o755)


def test_a_folder_for_working_copies_that_cannot_be_made_stops_before_the_claim(
    theirs: Path,
) -> None:
    before = state_of(theirs)
    elsewhere = {"HOME": home_of(theirs), "XDG_CACHE_HOME": "/proc/nowhere"}
    (said,) = child("nobody", theirs, "tick", **elsewhere)
    assert_problem(said, ["no working copy can be made in /proc/nowhere", "orchestrator.workDir"])
    assert state_of(theirs) == before


@pytest.mark.parametrize("remote", [False, True])
def test_a_full_disk_leaves_no_branch(tmp_path: Path, remote: bool) -> None:
    """No file can grow here, as on a full disk: the limit of a process, which needs no mount."""
    path = repos.make_repo(tmp_path / "r", FILES)
    if remote:
        path = repos.clone(repos.bare_remote(tmp_path / "up.git", FILES), tmp_path / "clone")
    before = repos.refs(path)
    said, explained = child("full", path, "tick", "explain", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said.code in (1, 3), said
    assert any(w in said.out + said.err for w in ("could not be written", "cannot")), said
    assert_plain(said)
    assert repos.refs(path) == before
    assert explained.code == 0


def test_without_home_it_works_and_says_so(
    run: Run, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    for verb in ("explain", "tick"):
        ran = run(verb, "-C", clone)
        assert ran.code == 0
        assert ran.out.count("HOME is not set") == 1


def test_without_an_identity_the_fallback_is_said_once_for_any_number_of_sweeps(
    run: Run, tmp_path: Path
) -> None:
    policy = POLICY + "  second: {every: 7d}\nroles:\n  second: {adapter: builtin}\n"
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml": policy})
    repos.git(path, "config", "orchestrator.workDir", str(tmp_path / "work"))
    ran = run("tick", "-C", path)
    assert ran.code == 0
    assert ran.out.count("swept") == 2
    assert ran.out.count("no committer identity is set") == 1
    who = repos.git(path, "log", "-1", "--format=%cn <%ce>", "run/second-2026-11-30")
    assert who == "orchestrator <orchestrator@localhost>"


def test_git_variables_of_the_caller_are_ignored(
    run: Run, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repos.make_repo(tmp_path / "other", {"a": "a"})
    before = repos.digest_folder(other)
    elsewhere = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_OBJECT_DIRECTORY": "/nonexistent",
        "GIT_COMMON_DIR": str(other / ".git"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "orchestrator.remote",
        "GIT_CONFIG_VALUE_0": "nowhere",
        "GIT_TRACE": str(tmp_path / "trace"),
    }
    for name, value in elsewhere.items():
        monkeypatch.setenv(name, value)
    assert "historian is due" in run("explain", "-C", clone).out
    assert run("tick", "-C", clone).code == 0
    for name in elsewhere:
        monkeypatch.delenv(name)
    assert "refs/heads/run/historian-2026-11-30" in repos.refs(tmp_path / "remote.git")
    assert repos.digest_folder(other) == before
    assert not (tmp_path / "trace").exists()


def test_a_current_folder_that_was_deleted_is_said(
    run: Run, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with monkeypatch.context() as inside:
        inside.chdir(gone)
        gone.rmdir()
        for verb, code in (("explain", 3), ("tick", 3), ("status", 3), ("check", 3), ("init", 2)):
            ran = run(verb)
            words = "the current folder does not exist"
            assert_error(Said(ran.code, ran.out, ran.err), code, words, "-C PATH")
        assert run("explain", "-C", clone).code == 0
        assert run("tick", "-C", clone).code == 0


def test_git_that_is_not_on_path_is_said(
    run: Run, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for verb in ("explain", "tick"):
        ran = run(verb, "-C", clone)
        assert_error(Said(ran.code, ran.out, ran.err), 3, "git could not be started", "on PATH")


@pytest.mark.parametrize("make", ["file", "folder", "link"])
def test_a_lock_that_cannot_be_made_is_said(run: Run, tmp_path: Path, make: str) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    state = path / ".git/orchestrator"
    if make == "file":
        state.write_text("x")
    elif make == "link":
        state.symlink_to("/nonexistent/x")
    else:
        (state / "tick.lock").mkdir(parents=True)
    ran = run("tick", "-C", path)
    assert_error(Said(ran.code, ran.out, ran.err), 3, f"cannot write to {state}", "tick needs")
    assert run("explain", "-C", path).code == 0
