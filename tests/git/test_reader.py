"""Reading: configuration, refs, trees, history, from ordinary and from odd repositories."""

import os
import time
from datetime import date
from pathlib import Path

import pytest

from orchestrator.errors import CannotLookError, MissingObjectError
from orchestrator.git.reader import Entry, Reader, TooLargeError
from orchestrator.model.names import Oid, Ref, SweepName
from tests.support import repos

MAIN = Ref("refs/heads/main")
SWEEP = SweepName("historian", date(2026, 11, 30))


def reader(path: Path) -> Reader:
    return Reader.open(str(path), dict(os.environ))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "r", {"README.md": "hello\n", "runs/a/sweep.yaml": "x\n"})


# -- configuration ---------------------------------------------------------------------------


def test_configuration_is_read_as_git_reads_it(path: Path) -> None:
    repos.git(path, "config", "--add", "orchestrator.allowCommand", "a")
    repos.git(path, "config", "--add", "orchestrator.allowCommand", "b")
    repos.git(path, "config", "x.on", "yes")
    found = reader(path)
    assert found.config_all("orchestrator.allowCommand") == ("a", "b")
    assert found.config("orchestrator.allowcommand") == "b"
    assert found.config("x.none") is None
    assert found.config_bool("x.on", default=False)
    assert found.config_bool("x.none", default=True)


def test_a_boolean_that_is_none_says_where_it_is_set(path: Path) -> None:
    repos.git(path, "config", "x.on", "maybe")
    with pytest.raises(CannotLookError) as caught:
        reader(path).config_bool("x.on", default=False)
    assert caught.value.hint == (
        "see where it is set with: git config --show-origin --get-all x.on"
    )


@pytest.mark.parametrize(
    ("environ", "config", "expected"),
    [
        ({}, {}, ("orchestrator", "orchestrator@localhost", True)),
        ({}, {"user.name": "Ann", "user.email": "a@x"}, ("Ann", "a@x", False)),
        ({}, {"user.name": "Ann"}, ("Ann", "orchestrator@localhost", True)),
        (
            {"GIT_COMMITTER_NAME": "Bot", "GIT_COMMITTER_EMAIL": "<b@x>\n"},
            {"user.name": "Ann"},
            ("Bot", "b@x", False),
        ),
        (
            {"GIT_COMMITTER_NAME": "<>"},
            {"user.name": "Ann", "user.email": "a@x"},
            ("Ann", "a@x", False),
        ),
        ({}, {"user.name": "A", "committer.name": "C", "user.email": "e"}, ("C", "e", False)),
    ],
)
def test_who_commits(
    path: Path, environ: dict[str, str], config: dict[str, str], expected: tuple[str, str, bool]
) -> None:
    for key, value in config.items():
        repos.git(path, "config", key, value)
    who = reader(path).identity(environ)
    assert (who.name, who.email, who.fallback) == expected


# -- refs ------------------------------------------------------------------------------------


def test_a_ref_resolves_through_symbolic_refs(path: Path) -> None:
    repos.git(path, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main")
    found = reader(path)
    assert found.resolve(Ref("refs/remotes/origin/HEAD")) == found.resolve(MAIN) == repos.tip(path)
    assert found.resolve(Ref("refs/heads/none")) is None
    assert found.symref(Ref("refs/remotes/origin/HEAD")) == MAIN
    assert found.symref(MAIN) is None


def test_a_symbolic_ref_to_nothing_names_it_and_resolves_to_nothing(path: Path) -> None:
    repos.git(path, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/unborn")
    found = reader(path)
    assert found.symref(Ref("refs/remotes/origin/HEAD")) == "refs/remotes/origin/unborn"
    assert found.resolve(Ref("refs/remotes/origin/HEAD")) is None


def test_symbolic_refs_in_a_circle_resolve_to_nothing(path: Path) -> None:
    for a, b in (("a", "b"), ("b", "a")):
        (path / ".git/refs/heads" / a).write_text(f"ref: refs/heads/{b}\n")
    assert reader(path).resolve(Ref("refs/heads/a")) is None


def test_a_branch_whose_name_is_not_utf8_resolves(path: Path) -> None:
    name = os.fsdecode(b"refs/heads/caf\xe9")
    repos.git(path, "update-ref", name, "HEAD")
    assert reader(path).resolve(Ref(name)) == repos.tip(path)


def test_a_damaged_ref_is_an_error_not_an_absence(path: Path) -> None:
    (path / ".git/refs/heads/torn").write_text("zz\n")
    with pytest.raises(CannotLookError, match="refs/heads/torn"):
        reader(path).resolve(Ref("refs/heads/torn"))


def test_sweep_branches_are_found_here_and_on_every_remote(path: Path) -> None:
    oid = repos.tip(path)
    for name in (
        f"refs/heads/{SWEEP.branch}",
        f"refs/remotes/origin/{SWEEP.branch}",
        f"refs/remotes/team/fork/{SWEEP.branch}",
        f"refs/remotes/unasked/{SWEEP.branch}",
        "refs/heads/run/notes",
        "refs/heads/run/x/y-2026-11-30",
        "refs/heads/run/historian-2026-02-30",
        f"refs/heads/other/{SWEEP.branch}",
    ):
        repos.git(path, "update-ref", name, oid)
    repos.git(path, "update-ref", os.fsdecode(b"refs/heads/run/caf\xe9-2026-11-30"), oid)
    repos.git(path, "pack-refs", "--all")
    found = reader(path).sweep_refs(["origin", "team/fork"])
    assert [(r.name, r.remote, r.sweep, r.oid) for r in found] == [
        (f"refs/heads/{SWEEP.branch}", None, SWEEP, oid),
        (f"refs/remotes/origin/{SWEEP.branch}", "origin", SWEEP, oid),
        (f"refs/remotes/team/fork/{SWEEP.branch}", "team/fork", SWEEP, oid),
    ]


def test_a_remote_below_another_remotes_run_folder_is_told_apart(path: Path) -> None:
    oid = repos.tip(path)
    repos.git(path, "update-ref", f"refs/remotes/a/run/{SWEEP.branch}", oid)
    (found,) = reader(path).sweep_refs(["a", "a/run"])
    assert found.remote == "a/run"


def test_a_symbolic_sweep_ref_counts_with_what_it_leads_to(path: Path) -> None:
    repos.git(path, "symbolic-ref", SWEEP.local_ref, "refs/heads/main")
    dangling = SweepName("historian", date(2026, 11, 29)).local_ref
    repos.git(path, "symbolic-ref", dangling, "refs/heads/none")
    (found,) = reader(path).sweep_refs([])
    assert (found.name, found.oid) == (SWEEP.local_ref, repos.tip(path))


def test_a_damaged_sweep_ref_stops_the_look_and_names_the_way_out(path: Path) -> None:
    torn = path / ".git" / SWEEP.local_ref
    torn.parent.mkdir()
    torn.write_text("")
    with pytest.raises(CannotLookError) as caught:
        reader(path).sweep_refs([])
    assert SWEEP.branch in caught.value.message
    assert caught.value.hint is not None
    assert f"git update-ref -d {SWEEP.local_ref}" in caught.value.hint


def test_a_damaged_ref_that_is_no_sweeps_disturbs_nobody(path: Path) -> None:
    torn = path / ".git/refs/heads/run/notes"
    torn.parent.mkdir()
    torn.write_text("")
    assert reader(path).sweep_refs([]) == ()


def test_listing_sweeps_does_not_slow_down_with_other_refs(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"}, bare=True)
    repos.pack_many_refs(path, 100_000, repos.tip(path))
    repos.opened(path).references.create(SWEEP.local_ref, repos.tip(path))
    found, best = reader(path), 1.0
    for _ in range(5):  # the best of several: other tests want the processor too
        started = time.perf_counter()
        assert len(found.sweep_refs(["origin"])) == 1
        best = min(best, time.perf_counter() - started)
    assert best < 0.05  # reading all of them takes 65 to 220 ms


def test_branches_people_work_on_are_known(path: Path, tmp_path: Path) -> None:
    repos.git(path, "worktree", "add", "-q", str(tmp_path / "w"), "-b", SWEEP.branch)
    expected = {MAIN: str(path), SWEEP.local_ref: str(tmp_path / "w")}
    assert reader(path).worktree_branches() == expected
    assert reader(tmp_path / "w").worktree_branches() == expected


def test_a_branch_in_the_middle_of_a_rebase_is_worked_on(path: Path) -> None:
    repos.commit_files(path, {"README.md": "theirs\n"}, branch=SWEEP.branch, start="main")
    repos.commit_files(path, {"README.md": "ours\n"})
    repos.git(path, "checkout", "-q", SWEEP.branch)
    repos.git(path, "rebase", "main", ok=False)
    assert reader(path).worktree_branches() == {SWEEP.local_ref: str(path)}


def test_nobody_works_in_a_bare_repository(tmp_path: Path) -> None:
    path = repos.bare_remote(tmp_path / "r.git", {"a": "a"})
    assert reader(path).worktree_branches() == {}


@pytest.mark.parametrize("text", ["main", "main~0", "HEAD", "v1", "refs/tags/v1"])
def test_a_revision_means_its_commit(path: Path, text: str) -> None:
    repos.git(path, "tag", "-a", "v1", "-m", "v1")
    assert reader(path).revision(text) == repos.tip(path)


def test_an_abbreviation_that_means_two_objects_says_so(path: Path) -> None:
    repo = repos.opened(path)
    ids: dict[str, int] = {}
    number, short = 0, ""
    while not short:
        oid = str(repo.create_blob(str(number).encode()))
        short = oid[:4] if ids.setdefault(oid[:4], number) != number else ""
        number += 1
    with pytest.raises(CannotLookError, match="means more than one commit"):
        reader(path).revision(short)


@pytest.mark.parametrize("text", ["none", "main:README.md", "", "main~99", "-x", "a..b", "\udcff"])
def test_a_revision_that_means_no_commit_is_an_error(path: Path, text: str) -> None:
    with pytest.raises(CannotLookError):
        reader(path).revision(text)


# -- objects ---------------------------------------------------------------------------------


def test_every_kind_of_entry_is_told_apart(path: Path) -> None:
    repos.commit_files(
        path,
        {"run.sh": "#!", "link": "README.md"},
        modes={"run.sh": 0o100755, "link": 0o120000},
    )
    sub = repos.make_repo(path / "sub", {"s": "s"})
    repos.git(path, "update-index", "--add", "--cacheinfo", f"160000,{repos.tip(sub)},sub")
    repos.git(path, "commit", "-qm", "submodule")
    found = reader(path)
    tip = repos.tip(path)
    kinds = {"run.sh": "executable", "link": "symlink", "sub": "gitlink", "runs": "tree"}
    for name, kind in kinds.items():
        entry = found.entry(tip, name)
        assert entry is not None
        assert entry.kind == kind
        assert (name, kind) in found.names(tip, "")
    assert found.entry(tip, "README.md") == Entry("blob", _blob(path, "README.md"), 6)
    assert found.entry(tip, "link/x") is None
    assert found.entry(tip, "sub/s") is None
    assert found.entry(tip, "README.md/x") is None
    assert found.entry(tip, "none") is None


def _blob(path: Path, name: str) -> Oid:
    return Oid(repos.git(path, "rev-parse", f"main:{name}"))


def test_a_folders_names(path: Path) -> None:
    found, tip = reader(path), repos.tip(path)
    assert found.names(tip, "runs") == (("a", "tree"),)
    assert found.names(tip, "runs/a/") == (("sweep.yaml", "blob"),)
    assert found.names(tip, "README.md") == ()
    assert found.names(tip, "none") == ()


def test_a_folder_of_five_thousand_is_listed_in_milliseconds(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", bare=True)
    tip = repos.big_tree(path, "runs", 5000)
    best = 1.0
    for _ in range(8):
        found = reader(path)
        started = time.perf_counter()
        assert len(found.names(tip, "runs")) == 5000
        best = min(best, time.perf_counter() - started)
    assert best < 0.04


def test_a_file_is_read_within_its_limit(path: Path) -> None:
    found, oid = reader(path), _blob(path, "README.md")
    assert found.read_blob(oid, 6) == b"hello\n"
    with pytest.raises(TooLargeError):
        found.read_blob(oid, 5)


def test_an_object_that_is_not_here_is_missing(path: Path) -> None:
    found, nowhere = reader(path), Oid("1" * 40)
    assert not found.has(nowhere)
    for look in (
        lambda: found.commit(nowhere),
        lambda: found.read_blob(nowhere, 9),
        lambda: found.entry(nowhere, "a"),
        lambda: found.is_ancestor(nowhere, repos.tip(path)),
    ):
        with pytest.raises(MissingObjectError):
            look()


def test_a_file_is_no_commit(path: Path) -> None:
    with pytest.raises(CannotLookError, match="not the kind of object"):
        reader(path).commit(_blob(path, "README.md"))


def test_a_rotten_object_is_an_error_with_its_place(path: Path) -> None:
    oid = _blob(path, "README.md")
    file = path / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    file.write_bytes(b"rot")
    with pytest.raises(CannotLookError, match=oid[:10]):
        reader(path).read_blob(oid, 99)


def test_ancestry(path: Path) -> None:
    first = repos.tip(path)
    second = repos.commit_files(path, {"b": "b"})
    side = repos.commit_files(path, {"c": "c"}, branch="side", start=first)
    found = reader(path)
    assert found.is_ancestor(first, second)
    assert found.is_ancestor(first, first)
    assert not found.is_ancestor(second, first)
    assert not found.is_ancestor(side, second)


def test_first_parents_follow_the_branch_not_what_was_merged(path: Path) -> None:
    first = repos.tip(path)
    repos.commit_files(path, {"c": "c"}, branch="side", start="main")
    second = repos.commit_files(path, {"b": "b"})
    merged = repos.merge_commit(path, "side")
    log = reader(path).first_parents(merged, 10)
    assert [c.oid for c in log] == [merged, second, first]
    assert [c.oid for c in reader(path).first_parents(merged, 2)] == [merged, second]


def test_history_ends_where_a_shallow_clone_was_cut(tmp_path: Path) -> None:
    remote = repos.bare_remote(tmp_path / "up.git", {"a": "a"})
    tip = repos.commit_files(remote, {"b": "b"})
    found = reader(repos.clone(remote, tmp_path / "c", "shallow"))
    assert found.is_shallow
    assert [c.oid for c in found.first_parents(tip, 10)] == [tip]


def test_a_partial_clone_says_that_a_file_is_missing_and_fetches_it_when_allowed(
    tmp_path: Path,
) -> None:
    remote = repos.bare_remote(tmp_path / "up.git", {"orchestrator.yaml": "schedules: {}\n"})
    path = repos.clone(remote, tmp_path / "c", "partial")
    found = reader(path)
    assert found.is_partial
    entry = found.entry(repos.tip(remote), "orchestrator.yaml")
    assert entry is not None
    assert entry.size is None
    with pytest.raises(MissingObjectError) as caught:
        found.read_blob(entry.oid, 100)
    assert caught.value.hint is not None
    assert "partial clone" in caught.value.hint
    assert not found.has(entry.oid)
    found.allow_fetch(found.git)
    assert found.read_blob(entry.oid, 100) == b"schedules: {}\n"


def test_looking_changes_nothing(path: Path) -> None:
    (path / "README.md").write_text("dirty\n")
    before = repos.digest_everything(path)
    found, tip = reader(path), repos.tip(path)
    found.sweep_refs(["origin"])
    found.entry(tip, "README.md")
    found.names(tip, "")
    list(found.first_parents(tip, 5))
    found.worktree_branches()
    found.identity({})
    assert found.is_empty is False
    assert repos.digest_everything(path) == before
