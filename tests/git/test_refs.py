"""Refs: created exactly once, moved only from where they were, never in anybody's way."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.git.reader import Reader
from orchestrator.git.writer import RefBlockedError, Writer
from orchestrator.model.names import Oid, Ref
from tests.support import races, repos

REF = Ref("refs/heads/run/historian-2026-11-30")
TRACKING = Ref("refs/remotes/origin/run/historian-2026-11-30")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "r", {"a": "a"})


def writer(path: Path) -> Writer:
    return Writer(Reader.open(str(path), dict(os.environ)))


def other(path: Path) -> Oid:
    """A commit beside main's."""
    return repos.commit_files(path, {"o": "o"}, branch="other", start="main")


def pack(path: Path) -> None:
    repos.git(path, "pack-refs", "--all", "--prune")


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_is_created_once(path: Path, packed: bool) -> None:
    tip = repos.tip(path)
    assert writer(path).create_ref(REF, tip, "sweep: begin")
    if packed:
        pack(path)
    assert not writer(path).create_ref(REF, other(path), "again")
    assert repos.refs(path)[REF] == tip


def test_the_reason_is_in_the_reflog(path: Path) -> None:
    writer(path).create_ref(REF, repos.tip(path), "sweep: begin")
    assert repos.git(path, "reflog", "show", "--format=%gs", REF) == "sweep: begin"


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_moves_only_from_where_it_is_expected(path: Path, packed: bool) -> None:
    first, second = repos.tip(path), other(path)
    writer(path).create_ref(REF, first, "r")
    if packed:
        pack(path)
    assert not writer(path).move_ref(REF, second, second, "r")
    assert writer(path).move_ref(REF, second, first, "r")
    assert not writer(path).move_ref(REF, second, first, "r")
    assert not writer(path).move_ref(Ref(REF + "x"), second, first, "r")
    assert repos.refs(path)[REF] == second
    assert Ref(REF + "x") not in repos.refs(path)


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_is_deleted_only_from_where_it_is_expected(path: Path, packed: bool) -> None:
    first, second = repos.tip(path), other(path)
    writer(path).create_ref(REF, first, "r")
    if packed:
        pack(path)
    assert not writer(path).delete_ref(REF, second)
    assert repos.refs(path)[REF] == first
    assert writer(path).delete_ref(REF, first)
    assert REF not in repos.refs(path)
    assert not writer(path).delete_ref(REF, first)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("refs/heads/run", "refs/heads/run/x-2026-11-30"),
        ("refs/heads/run/x-2026-11-30", "refs/heads/run/x-2026-11-30/y"),
        ("refs/heads/run/x-2026-11-30/y", "refs/heads/run/x-2026-11-30"),
    ],
)
def test_a_branch_in_the_way_blocks_and_is_named(
    path: Path, packed: bool, there: str, wanted: str
) -> None:
    tip = repos.tip(path)
    repos.git(path, "update-ref", there, tip)
    if packed:
        pack(path)
    with pytest.raises(RefBlockedError) as caught:
        writer(path).create_ref(Ref(wanted), tip, "r")
    assert caught.value.conflict == there
    assert caught.value.lock is None
    assert there.removeprefix("refs/heads/") in caught.value.message
    assert Ref(wanted) not in repos.refs(path)
    assert not list((path / ".git").rglob("*.lock"))


@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_in_the_way_blocks_in_a_bare_repository_too(tmp_path: Path, packed: bool) -> None:
    path = repos.bare_remote(tmp_path / "r.git", {"a": "a"})
    tip = repos.tip(path)
    repos.git(path, "update-ref", "refs/heads/run", tip)
    if packed:
        pack(path)
    with pytest.raises(RefBlockedError):
        writer(path).create_ref(REF, tip, "r")
    repos.clone(path, tmp_path / "still-clones")


def test_a_symbolic_ref_is_never_moved_or_created_over(path: Path) -> None:
    tip = repos.tip(path)
    repos.git(path, "symbolic-ref", REF, "refs/heads/none")
    assert not writer(path).create_ref(REF, tip, "r")
    repos.git(path, "symbolic-ref", REF, "refs/heads/main")
    assert not writer(path).move_ref(REF, other(path), tip, "r")
    assert not writer(path).delete_ref(REF, tip)
    assert repos.tip(path) == tip


def test_what_a_push_taught_is_recorded_and_forgotten(path: Path) -> None:
    tip, second = repos.tip(path), other(path)
    writer(path).set_tracking(TRACKING, tip)
    writer(path).set_tracking(TRACKING, second)
    assert repos.refs(path)[TRACKING] == second
    writer(path).set_tracking(TRACKING, None)
    writer(path).set_tracking(TRACKING, None)
    assert TRACKING not in repos.refs(path)
    with pytest.raises(ValueError, match="not a remote-tracking ref"):
        writer(path).set_tracking(REF, tip)


def lock_file(path: Path, age_s: float) -> Path:
    lock = path / ".git" / f"{REF}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    at = time.time() - age_s
    os.utime(lock, (at, at))
    return lock


def test_a_lock_left_by_a_killed_process_blocks_with_its_path_and_age(path: Path) -> None:
    lock = lock_file(path, 900)
    started = time.monotonic()
    with pytest.raises(RefBlockedError) as caught:
        writer(path).create_ref(REF, repos.tip(path), "r")
    assert time.monotonic() - started < 0.5
    assert caught.value.lock == str(lock)
    assert caught.value.age_s == pytest.approx(900, abs=5)
    assert caught.value.hint == f"if no git command is running: rm {lock}"


def test_a_fresh_lock_is_waited_for_a_moment_then_blocks(path: Path) -> None:
    lock = lock_file(path, 0)
    with pytest.raises(RefBlockedError) as caught:
        writer(path).create_ref(REF, repos.tip(path), "r")
    assert caught.value.lock == str(lock)


def test_a_lock_that_goes_away_in_time_is_no_trouble(path: Path) -> None:
    lock = lock_file(path, 0)
    remover = [
        sys.executable,
        "-S",
        "-c",
        f"import os,time;time.sleep(.3);os.unlink({str(lock)!r})",
    ]
    with subprocess.Popen(remover):
        assert writer(path).create_ref(REF, repos.tip(path), "r")


def test_a_stale_lock_is_broken_and_a_fresh_one_is_not(path: Path) -> None:
    lock = lock_file(path, 100)
    assert writer(path).break_stale_lock(REF, 600) is None
    assert lock.exists()
    os.utime(lock, (time.time() - 700,) * 2)
    assert writer(path).break_stale_lock(REF, 600) == str(lock)
    assert writer(path).break_stale_lock(REF, 600) is None
    assert writer(path).create_ref(REF, repos.tip(path), "r")


def test_a_stale_lock_of_all_packed_refs_is_broken_with_it(path: Path) -> None:
    tip = repos.tip(path)
    writer(path).create_ref(REF, tip, "r")
    pack(path)
    packed = path / ".git" / "packed-refs.lock"
    packed.touch()
    os.utime(packed, (time.time() - 700,) * 2)
    with pytest.raises(RefBlockedError) as caught:
        writer(path).delete_ref(REF, tip)
    assert caught.value.lock == str(packed)
    assert writer(path).break_stale_lock(REF, 600) == str(packed)
    assert writer(path).delete_ref(REF, tip)


def test_an_old_lock_that_a_process_still_has_open_is_not_broken(path: Path) -> None:
    lock = lock_file(path, 700)
    with lock.open("a"):
        os.utime(lock, (time.time() - 700,) * 2)
        assert writer(path).break_stale_lock(REF, 600) is None
    assert writer(path).break_stale_lock(REF, 600) == str(lock)


@pytest.mark.parametrize("creators", [[races.by_writer] * 4, [races.by_writer, races.by_git] * 2])
def test_of_four_processes_that_create_a_ref_exactly_one_wins(
    tmp_path: Path, creators: list[races.Creator]
) -> None:
    rounds = 200 if races.by_git not in creators else 40
    result = races.race_to_create(tmp_path / "r", creators, rounds)
    assert result.winners == {1: rounds}
    assert result.overwritten == 0


def test_the_race_would_show_a_writer_that_does_not_look_under_the_lock(tmp_path: Path) -> None:
    result = races.race_to_create(tmp_path / "r", [races.by_lock_alone] * 4, 40)
    assert result.overwritten > 0
    assert max(result.winners) > 1


def test_a_moved_ref_is_moved_by_one_of_four(tmp_path: Path) -> None:
    result = races.race_to_create(tmp_path / "r", [races.by_move] * 4, 80)
    assert result.winners == {1: 80}
    assert result.overwritten == 0
