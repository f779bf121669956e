"""`orchestrator trigger`: a person asks for a sweep."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import NOW, Run
from tests.support import repos

PAUSED = "schedules:\n  historian:\n    every: 7d\n    enabled: false\n"
CALENDAR = "schedules:\n  historian:\n    cron: 0 2 * * *\n"


def _commit(clone: Path, policy: str) -> Path:
    remote = clone.parent / "remote.git"
    repos.commit_files(remote, {"orchestrator.yaml": policy}, when=int(NOW.timestamp()) - 86_400)
    return remote


def _marker(remote: Path, day: str) -> str:
    return repos.read(remote, f"run/historian-{day}:runs/historian-{day}/sweep.yaml")


def test_a_paused_role_sweeps_when_a_person_asks(run: Run, clone: Path) -> None:
    remote = _commit(clone, PAUSED)
    assert run("tick", "-C", clone).code == 0
    ran = run("trigger", "historian", "-C", clone)
    assert ran.code == 0
    assert "historian  swept" in ran.out
    assert "trigger: manual\n" in _marker(remote, "2026-11-30")


def test_a_sweep_asked_for_by_hand_moves_no_interval(run: Run, clone: Path) -> None:
    remote = clone.parent / "remote.git"
    for day, verb in ((0, ("tick",)), (3, ("trigger", "historian"))):
        now = NOW + timedelta(days=day)
        assert run(*verb, "-C", clone, now=now).code == 0
        repos.merge_commit(remote, f"run/historian-{now.date()}")
    ran = run("explain", "--fetch", "--format", "json", "-C", clone, now=NOW + timedelta(days=6))
    (role,) = ran.json["roles"]
    assert (role["rule"], role["due_at"]) == ("S2", "2026-12-07T02:00:00Z")
    assert run("tick", "-C", clone, now=NOW + timedelta(days=7)).code == 0
    assert "covering_since: 2026-12-03T02:00:00Z\n" in _marker(remote, "2026-12-07")


def test_a_sweep_asked_for_by_hand_moves_no_calendar(run: Run, clone: Path) -> None:
    remote = _commit(clone, CALENDAR)
    before = NOW - timedelta(hours=10)
    assert run("trigger", "historian", "-C", clone, now=before).code == 0
    assert "occurrence" not in _marker(remote, "2026-11-29")
    repos.merge_commit(remote, "run/historian-2026-11-29")
    assert run("tick", "-C", clone).code == 0
    assert "occurrence: 2026-11-30T02:00:00Z\n" in _marker(remote, "2026-11-30")


@pytest.mark.parametrize("merged", [False, True])
def test_an_open_sweep_and_today_s_hold_a_person_back_too(
    run: Run, clone: Path, merged: bool
) -> None:
    assert run("tick", "-C", clone).code == 0
    if merged:
        repos.merge_commit(clone.parent / "remote.git", "run/historian-2026-11-30")
    ran = run("trigger", "historian", "-C", clone)
    assert ran.code == 1
    wanted = "today's sweep exists already" if merged else "(awaiting review; overlap: skip)"
    assert ran.err.startswith("not started: ")
    assert wanted in ran.err


def test_a_running_sweep_is_named_as_the_reason(run: Run, clone: Path) -> None:
    remote = clone.parent / "remote.git"
    message = "Begin\n\nSweep: historian-2026-11-29\nSweep-Phase: intent\n"
    marker = {"runs/historian-2026-11-29/sweep.yaml": "at: 2026-11-29T02:00:00Z\n"}
    repos.commit_files(
        remote, marker, branch="run/historian-2026-11-29", start="main", message=message,
        when=int(NOW.timestamp()) - 3600,
    )  # fmt: skip
    ran = run("trigger", "historian", "-C", clone)
    assert "the previous execution of historian is still running (overlap: skip)" in ran.err


def test_a_role_nobody_scheduled_is_a_usage_error(run: Run, clone: Path) -> None:
    assert run("trigger", "historia", "-C", clone).code == 2
