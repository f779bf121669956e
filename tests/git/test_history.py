"""What the historian reads: listings, renames, windows and who did it, in real repositories."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ObjectType

from orchestrator.errors import CannotLookError, MissingObjectError
from orchestrator.git.history import Changes, History
from orchestrator.git.objects import write_tree
from orchestrator.model.names import Oid
from tests.support.repos import (
    WHEN,
    clone,
    commit_files,
    git,
    make_repo,
    merge_commit,
    opened,
    store_commit,
)

DAY = 86_400
LONG = "".join(f"line {n} of a file that is long enough to be recognised\n" for n in range(40))


def history_of(path: Path) -> History:
    return History.open(opened(path).path)


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(WHEN + seconds, UTC)


def test_a_listing_has_every_file_with_mode_and_blob(tmp_path: Path) -> None:
    files = {"a/b/c.txt": "1", "top": "2", "\u00fcml.md": "3", "a/link": "b"}
    repo = make_repo(tmp_path / "r")
    tip = commit_files(repo, files, modes={"a/link": 0o120000, "top": 0o100755})
    listed = history_of(repo).files(tip)
    assert {p: mode for p, (mode, _) in listed.items()} == {
        "a/b/c.txt": 0o100644,
        "top": 0o100755,
        "\u00fcml.md": 0o100644,
        "a/link": 0o120000,
    }
    expected = git(repo, "-c", "core.quotePath=no", "ls-tree", "-r", "main").splitlines()
    assert {line.split("\t")[1]: line.split()[2] for line in expected} == {
        p: oid for p, (_, oid) in listed.items()
    }


def test_a_hundred_thousand_files_are_listed_and_compared_in_seconds(tmp_path: Path) -> None:
    repo = opened(make_repo(tmp_path / "r", bare=True))
    blob = Oid(str(repo.create_blob(b"x")))
    other = Oid(str(repo.create_blob(b"y")))

    def root(first: Oid) -> str:
        rows = []
        for folder in range(200):
            inner = [(b"f%03d" % n, 0o100644, first if folder == 0 else blob) for n in range(500)]
            oid = Oid(str(repo.odb.write(ObjectType.TREE, write_tree(inner))))
            rows.append((b"d%03d" % folder, 0o040000, oid))
        return str(repo.odb.write(ObjectType.TREE, write_tree(rows)))

    before = store_commit(repo, root(blob), [], "before")
    after = store_commit(repo, root(other), [before], "after")
    history = History.open(repo.path)
    began = time.perf_counter()
    changes = history.changes(before, after)
    assert time.perf_counter() - began < 10
    assert (len(changes.modified), len(changes.added)) == (500, 0)
    assert len(history.files(after)) == 100_000


def changes_between(path: Path, before: dict[str, str], after: dict[str, str]) -> Changes:
    repo = make_repo(path, before)
    since = Oid(str(opened(repo).revparse_single("main").id))
    gone: dict[str, str | bytes | None] = dict.fromkeys(before.keys() - after.keys())
    until = commit_files(repo, {**gone, **after})
    return history_of(repo).changes(since, until)


def test_renames_are_gits_and_one_to_one(tmp_path: Path) -> None:
    before = {"same.md": "same bytes", "edited.md": LONG, "gone.md": "gone", "kept.md": "kept"}
    after = {"moved/same.md": "same bytes", "new.md": f"{LONG}one more\n", "kept.md": "changed"}
    found = changes_between(tmp_path / "r", before, after)
    assert found.renames == {"same.md": "moved/same.md", "edited.md": "new.md"}
    assert found.modified == {"kept.md"}
    assert "gone.md" in found.deleted
    assert found.complete


def test_several_files_with_the_same_bytes_pair_by_name_or_not_at_all(tmp_path: Path) -> None:
    before = {"a/__init__.py": "same", "a/x.py": "same", "lone.md": "twice"}
    after = {"b/__init__.py": "same", "b/x.py": "same", "one.md": "twice", "two.md": "twice"}
    found = changes_between(tmp_path / "r", before, after)
    assert found.renames == {"a/__init__.py": "b/__init__.py", "a/x.py": "b/x.py"}
    assert found.candidates == {"lone.md": ("one.md", "two.md")}


def test_empty_files_are_no_renames_of_each_other(tmp_path: Path) -> None:
    found = changes_between(tmp_path / "r", {"a": "", "k": "k"}, {"b": "", "k": "k"})
    assert (found.renames, found.candidates) == ({}, {})


def test_the_log_is_the_first_parent_line_with_the_runs_it_added(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"README.md": "x", "runs/old/a.md": "x"})
    since = Oid(str(opened(repo).revparse_single("main").id))
    commit_files(repo, {"runs/one/report.md": "1"}, branch="side", start="main")
    commit_files(repo, {"runs/one/more.md": "1"}, branch="side", message="On the side")
    first = commit_files(repo, {"b": "1"}, message="Subject\n\nBody\n", when=WHEN + DAY)
    second = merge_commit(repo, "side")
    log = history_of(repo).log(since, second)
    assert [(c.oid, c.subject, c.runs) for c in log.commits] == [
        (second, "Merge side", ("one",)),
        (first, "Subject", ()),
    ]
    assert (log.met, log.shallow, log.commits[1].time) == (True, False, WHEN + DAY)
    assert log.commits[0].short == second[:10]


def test_a_window_that_begins_off_the_line_ends_where_the_lines_meet(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"a": "1"})
    commit_files(repo, {"a": "2"})
    off = commit_files(repo, {"b": "1"}, branch="side", start="main")
    commit_files(repo, {"a": "3"})
    tip = commit_files(repo, {"a": "4"})
    log = history_of(repo).log(off, tip)
    assert (len(log.commits), log.met) == (2, True)


def test_a_window_of_another_history_is_said_not_to_meet(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"a": "1"})
    alone = store_commit(opened(repo), str(opened(repo).revparse_single("main^{tree}").id), [], "x")
    tip = commit_files(repo, {"a": "2"})
    log = history_of(repo).log(alone, tip)
    assert (len(log.commits), log.met, log.shallow) == (2, False, False)


def test_absurd_dates_and_foreign_bytes_are_read(tmp_path: Path) -> None:
    repo = opened(make_repo(tmp_path / "r", {"a": "1"}))
    tree = repo.revparse_single("main^{tree}").id
    strange = [
        b"tree %s\nauthor A <a> 1 +0000\ncommitter A <a> 99999999999999999 +0000\n\n\xff\xfe\n",
        b"tree %s\nauthor A <a> x\ncommitter nobody\n\nno date\n",
        b"tree %s\nauthor \xe9 <a> 1 +0000\ncommitter A <a> -5 +9999\nencoding latin-1\n\ncaf\xe9",
    ]
    history = History.open(repo.path)
    read = [
        history.commit(Oid(str(repo.odb.write(ObjectType.COMMIT, data % str(tree).encode()))))
        for data in strange
    ]
    assert [c.time for c in read] == [99999999999999999, 0, -5]
    assert [c.subject for c in read] == ["\ufffd\ufffd", "no date", "café"]


@pytest.fixture
def dated(tmp_path: Path) -> tuple[History, list[Oid]]:
    """Ten commits, one a day; the eighth claims to be from 1970, the third from 2100."""
    repo = make_repo(tmp_path / "r", {"n": "0"})
    oids = [Oid(str(opened(repo).revparse_single("main").id))]
    for day in range(1, 10):
        when = {7: 0, 2: 4_102_444_800}.get(day, WHEN + day * DAY)
        oids.append(commit_files(repo, {"n": str(day)}, when=when))
    return history_of(repo), oids


def test_the_window_starts_at_the_newest_commit_not_later(
    dated: tuple[History, list[Oid]],
) -> None:
    history, oids = dated
    assert history.window_start(oids[9], at(8 * DAY + 5)) == oids[8]
    assert history.window_start(oids[9], at(8 * DAY)) == oids[8]
    assert history.window_start(oids[9], at(99 * DAY)) == oids[9]


def test_a_skewed_clock_never_shortens_the_window(dated: tuple[History, list[Oid]]) -> None:
    """The commit from 1970 is not taken, and the one from 2100 only makes the window longer."""
    history, oids = dated
    starts = [history.window_start(oids[9], at(day * DAY + 5)) for day in range(10)]
    assert [oids.index(s) for s in starts if s is not None] == [0, 1, 1, 1, 1, 1, 1, 1, 8, 9]


def test_the_last_sweeps_own_commit_is_better_than_a_clock(
    dated: tuple[History, list[Oid]],
) -> None:
    history, oids = dated
    assert history.window_start(oids[9], at(8 * DAY), oids[3]) == oids[3]
    assert history.window_start(oids[5], at(4 * DAY), oids[8]) != oids[8]  # not in it
    assert history.window_start(oids[9], at(8 * DAY), Oid("1" * 40)) == oids[8]


def test_a_first_sweep_has_no_window_and_a_young_repository_its_oldest_commit(
    dated: tuple[History, list[Oid]],
) -> None:
    history, oids = dated
    assert history.window_start(oids[9], None) is None
    assert history.window_start(oids[9], at(-DAY)) == oids[0]


def test_a_shallow_clone_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"n": "0"})
    oids = [commit_files(repo, {"n": str(n)}, when=WHEN + n * DAY) for n in range(1, 6)]
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{repo}", str(tmp_path / "c"))
    history = history_of(tmp_path / "c")
    assert history.window_start(oids[4], at(0)) == oids[3]
    assert history.at_boundary(oids[3])
    assert not history.at_boundary(oids[4])
    log = history.log(oids[0], oids[4])
    assert ([c.oid for c in log.commits], log.met, log.shallow) == ([oids[4], oids[3]], False, True)
    assert history.trace(log, {"n"})["n"][0].commit.oid == oids[4]


def test_the_commit_that_removed_a_path_is_found_in_one_pass(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"a.md": "1", "d/x/1": "1", "d/x/2": "2", "d/y": "3"})
    since = Oid(str(opened(repo).revparse_single("main").id))
    touched = commit_files(repo, {"a.md": "2"})
    removed = commit_files(repo, {"a.md": None, "d/x/1": None, "d/x/2": None})
    tip = commit_files(repo, {"d/y": "4"})
    history = history_of(repo)
    found = history.trace(history.log(since, tip), {"a.md", "d/x", "d/x/1", "d", "never"})
    assert {p: [t.commit.oid for t in ts] for p, ts in found.items()} == {
        "a.md": [removed, touched],
        "d/x": [removed],
        "d/x/1": [removed],
    }
    assert found["a.md"][0].after is None
    assert found["a.md"][1].before != found["a.md"][1].after


def test_a_blob_is_read_up_to_a_limit(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"a": "12345"})
    history = history_of(repo)
    oid = history.files(Oid(str(opened(repo).revparse_single("main").id)))["a"][1]
    assert history.read(oid, 5) == b"12345"
    assert history.read(oid, 4) is None
    assert history.read(Oid("2" * 40), 5) is None


def test_a_missing_or_damaged_object_is_said_in_words(tmp_path: Path) -> None:
    repo = opened(make_repo(tmp_path / "r", {"a": "1"}))
    history = History.open(repo.path)
    assert not history.has(Oid("1" * 40))
    with pytest.raises(MissingObjectError):
        history.files(Oid("1" * 40))
    lost = store_commit(repo, "3" * 40, [], "its tree is not here")
    with pytest.raises(MissingObjectError):
        history.files(lost)


def test_renames_need_no_blobs_in_a_partial_clone(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"same.md": "bytes", "edited.md": LONG})
    opened(repo).config["uploadpack.allowFilter"] = True
    since = Oid(str(opened(repo).revparse_single("main").id))
    files = {"same.md": None, "edited.md": None, "s.md": "bytes", "e.md": f"{LONG}!"}
    until = commit_files(repo, files)
    clone(repo, tmp_path / "c", "partial")
    found = history_of(tmp_path / "c").changes(since, until)
    assert (found.renames, found.complete) == ({"same.md": "s.md"}, False)


def test_what_is_no_repository_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(CannotLookError):
        History.open(str(tmp_path))


def test_a_repository_of_somebody_else_opens_when_the_caller_had_opened_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "r", {"a": "1"})
    before = pygit2.settings.owner_validation
    try:
        assert History.open(str(repo / ".git"), trusted=True).has(
            Oid(str(opened(repo).revparse_single("main").id))
        )
    finally:
        pygit2.settings.owner_validation = before
