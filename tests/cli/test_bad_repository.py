"""Everything a repository or its remote can have wrong: damaged, foreign, closed, empty, gone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.git import wire
from tests.cli.conftest import POLICY, Run
from tests.support import repos, servers
from tests.support.refusals import Said, assert_error, assert_plain, assert_problem, state_of

FILES = {"orchestrator.yaml": POLICY}
ALL = ("explain", "tick", "check", "status")


def cannot_look(
    run: Run, path: Path, words: str, hint: str = "", verbs: tuple[str, ...] = ALL
) -> None:
    """Each verb exits 3 with one error that says `words`, and changes not one byte."""
    before = state_of(path)
    for verb in verbs:
        ran = run(verb, "-C", path)
        assert_error(Said(ran.code, ran.out, ran.err), 3, words, hint)
    assert state_of(path) == before


# -- which repository, which branch ------------------------------------------------------------


def test_no_repository(run: Run, tmp_path: Path) -> None:
    cannot_look(run, tmp_path, "no git repository", "-C PATH")


@pytest.mark.parametrize("path", ["nowhere", "a\0b", "x" * 5000, "/dev/null"])
def test_a_path_that_leads_nowhere(run: Run, tmp_path: Path, path: str) -> None:
    for verb in ALL:
        ran = run(verb, "-C", path if path[0] == "/" else f"{tmp_path}/{path}")
        assert_error(Said(ran.code, ran.out, ran.err), 3, "", "-C PATH")


def test_no_commits(run: Run, tmp_path: Path) -> None:
    cannot_look(run, repos.make_repo(tmp_path / "r"), "no commits yet", "commit orchestrator.yaml")


def test_no_branch_with_a_usual_name(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", FILES, branch="dev")
    cannot_look(run, path, "nothing says which it is", "--default-branch")


def test_two_branches_with_usual_names(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    repos.git(path, "branch", "master")
    cannot_look(run, path, "main and master both exist", "--default-branch")


def test_sha256(run: Run, tmp_path: Path) -> None:
    repos.git(tmp_path, "init", "-q", "--object-format=sha256", "r")
    cannot_look(run, tmp_path / "r", "sha256 object ids", "--object-format=sha1")


def test_reftable(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    repos.git(path, "config", "core.repositoryformatversion", "1")
    repos.git(path, "config", "extensions.refStorage", "reftable")
    cannot_look(run, path, "reftable", "--ref-format=files")


# -- damage ------------------------------------------------------------------------------------


def _ref(text: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        (path / ".git/refs/heads/main").write_bytes(text)

    return damage


def _head(path: Path) -> None:
    (path / ".git/HEAD").write_text("garbage\n")


def _packed_refs(path: Path) -> None:
    repos.git(path, "pack-refs", "--all")
    (path / ".git/packed-refs").write_bytes(b"\xff\xfe\nnonsense\n")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_ref(b"garbage\n"), "refs/heads/main"),
        (_ref(b"\0"), "refs/heads/main"),
        (_ref(b"1" * 40 + b"\n"), "1111111111 is not in"),
        (_head, "is damaged"),
        (_packed_refs, "packed references"),
    ],
)
def test_a_ref_that_is_damaged(
    run: Run, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    damage(path)
    cannot_look(run, path, words, "git fsck")


def test_a_head_that_leads_nowhere_is_nothing_to_us(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    (path / ".git/HEAD").write_text("ref: refs/heads/nowhere\n")
    assert run("explain", "-C", path).code == 0


OBJECTS = {"commit": "main", "tree": "main^{tree}", "file": "main:orchestrator.yaml"}


@pytest.mark.parametrize("what", OBJECTS)
@pytest.mark.parametrize("left", [0, 2, 10, -1, None])
def test_an_object_that_was_cut_short_or_lost(
    run: Run, tmp_path: Path, what: str, left: int | None
) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    oid = repos.git(path, "rev-parse", OBJECTS[what])
    file = path / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    if left is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:left])
    cannot_look(run, path, oid[:10], "git fsck")


def test_history_that_was_cut_short_below_an_open_sweep(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    middle = repos.commit_files(path, {"a": "a"})
    repos.commit_files(path, {"b": "b"})
    branch = "run/historian-2026-11-29"
    repos.commit_files(path, {"c": "c"}, branch=branch, start="main~2")
    file = path / ".git/objects" / middle[:2] / middle[2:]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:20])
    cannot_look(run, path, "the history between", "git fsck")


@pytest.mark.parametrize("kind", ["pack", "idx"])
def test_a_pack_that_was_cut_short(run: Run, tmp_path: Path, kind: str) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    repos.git(path, "gc", "-q")
    (file,) = (path / ".git/objects/pack").glob(f"*.{kind}")
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-30])
    cannot_look(run, path, "is not in", "git fsck")


def test_a_sweep_branch_that_is_damaged_is_never_taken_for_none(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", FILES)
    ref = path / ".git/refs/heads/run/historian-2026-11-29"
    ref.parent.mkdir()
    ref.write_text("garbage\n")
    cannot_look(run, path, "refs/heads/run/historian-2026-11-29", "git update-ref -d")


ABSURD = b"""\
tree %s
parent %s
author \xff\xfe <x> 99999999999999999999 +9999
committer \xe9 <\xff> -77777777777777777 -0000
encoding nonsense

\xff\xfe sweep

Sweep: historian-2026-11-29
Sweep-Phase: intent
Instance: \xff\x1b[31melsewhere
"""


def test_an_absurd_commit_on_a_sweep_branch_is_only_an_open_sweep(run: Run, clone: Path) -> None:
    repo = repos.opened(clone)
    tree = repo.revparse_single("main^{tree}").id
    oid = repo.odb.write(1, ABSURD % (str(tree).encode(), repos.tip(clone).encode()))
    folder = os.fsencode(clone) + b"/.git/refs/remotes/origin/run"
    os.mkdir(folder)
    for name in (b"historian-2026-11-29", b"hist\xff-2026-11-29", b"historian-\xff"):
        with open(folder + b"/" + name, "w", encoding="ascii") as file:
            file.write(f"{oid}\n")
    for verb in ("explain", "tick", "status"):
        ran = run(verb, "-C", clone, *(["--no-fetch"] if verb == "tick" else []))
        assert ran.code == 0
        assert "origin/run/historian-2026-11-29" in ran.out
        assert_plain(Said(ran.code, ran.out, ran.err))


def test_a_branch_called_run_is_said_before_anything_is_tried(
    run: Run, clone: Path, tmp_path: Path
) -> None:
    repos.git(clone, "branch", "run")
    before = state_of(clone)
    for verb in ("explain", "tick"):
        ran = run(verb, "-C", clone)
        words = ("a branch called run exists in this repository", "rename it: git branch -m run")
        assert_problem(Said(ran.code, ran.out, ran.err), words)
    assert state_of(clone) == before
    repos.git(clone, "branch", "-D", "run")
    repos.git(tmp_path / "remote.git", "branch", "run", "main")
    for arguments in (["tick"], ["explain", "--fetch"]):
        ran = run(*arguments, "-C", clone)
        assert_problem(Said(ran.code, ran.out, ran.err), ["a branch called run exists on origin"])
    assert not [r for r in repos.refs(clone) if "run/" in r]


# -- the remote --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("/nonexistent/up.git", "does not appear to be a git repository"),
        ("http://127.0.0.1:1/up.git", "unable to access"),
        ("http://ann:hunter2secret@127.0.0.1:1/up.git", "unable to access"),
        ("ext::sh -c 'touch PWNED'", "not allowed"),
        ("evil::x", "not allowed"),
        ("-x", "strange pathname"),
        ("--upload-pack=touch PWNED", "origin"),
    ],
)
def test_a_remote_that_cannot_be_reached(run: Run, clone: Path, url: str, words: str) -> None:
    repos.git(clone, "config", "remote.origin.url", url)
    cannot_look(run, clone, words, "git ls-remote origin", verbs=("tick",))
    assert "hunter2" not in run("tick", "-C", clone).err
    assert not list(clone.rglob("PWNED"))
    assert run("explain", "-C", clone).code == 0


def test_a_remote_that_lost_its_url_is_not_taken_for_no_remote(run: Run, clone: Path) -> None:
    repos.git(clone, "config", "--unset", "remote.origin.url")
    cannot_look(run, clone, "the remote origin cannot be read", verbs=("tick",))
    assert "origin/main" in run("explain", "-C", clone).out


def test_a_remote_that_asks_for_a_password_is_not_waited_for(
    run: Run, clone: Path, tmp_path: Path
) -> None:
    with servers.http_server(tmp_path) as server:
        server.password = "secret"
        repos.git(clone, "config", "remote.origin.url", server.url("remote.git"))
        cannot_look(run, clone, "could not read Username", "without prompts", verbs=("tick",))


def test_a_remote_that_never_answers_is_left_at_the_limit(
    run: Run, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "ASK_TIMEOUT_S", 0.5)
    with servers.silent_server() as port:
        for scheme in ("http", "git"):
            url = f"{scheme}://127.0.0.1:{port}/up.git"
            repos.git(clone, "config", "remote.origin.url", url)
            cannot_look(run, clone, "no answer within 0.5 s", verbs=("tick",))


def test_a_push_url_of_another_repository_is_noticed_and_taken_back(
    run: Run, clone: Path, tmp_path: Path
) -> None:
    other = repos.bare_remote(tmp_path / "other.git", FILES)
    repos.git(clone, "config", "remote.origin.pushurl", str(other))
    before = [repos.refs(p) for p in (clone, other, tmp_path / "remote.git")]
    ran = run("tick", "-C", clone)
    assert_problem(Said(ran.code, ran.out, ran.err), ["origin does not show it", "git remote -v"])
    assert [repos.refs(p) for p in (clone, other, tmp_path / "remote.git")] == before


def test_a_shallow_clone_that_ends_inside_the_window_sweeps(
    run: Run, clone: Path, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    marker = "role: historian\nat: 2026-11-20T00:00:00Z\n"
    repos.commit_files(remote, {"runs/historian-2026-11-20/sweep.yaml": marker})
    for day in range(3):
        repos.commit_files(remote, {"README.md": f"{day}\n"}, when=repos.WHEN + day * 86_400)
    shallow = repos.clone(remote, tmp_path / "shallow", "shallow")
    repos.git(shallow, "config", "orchestrator.workDir", str(tmp_path / "work"))
    ran = run("tick", "-C", shallow)
    assert (ran.code, ran.err) == (0, "")
    assert "swept" in ran.out


def test_a_partial_clone_that_lacks_the_policy_says_so_until_it_may_fetch(
    run: Run, clone: Path, tmp_path: Path
) -> None:
    path = repos.clone(tmp_path / "remote.git", tmp_path / "partial", "partial")
    cannot_look(run, path, "is not in", "--fetch", verbs=("explain", "check", "status"))
    assert "historian is due" in run("explain", "-C", path, "--fetch").out
