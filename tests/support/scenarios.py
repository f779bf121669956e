"""Scenario files: facts in, verdict out. The compact form in `fixtures/scenarios` becomes facts."""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

from orchestrator.configfile import read_config
from orchestrator.markerfile import read_marker
from orchestrator.model.config import Registration, ScheduleEntry
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.model.timing import Every
from orchestrator.rules.facts import (
    Backoff,
    BranchRef,
    BrokenMarker,
    Merged,
    MergedSweep,
    RoleFacts,
    SweepBranch,
    SweepState,
    TimingSince,
    release_command,
)

FOLDER = Path(__file__).parents[2] / "fixtures" / "scenarios"
TIP = Oid("11" * 20)
ROLE = "historian"


def load() -> dict[str, dict[str, Any]]:
    return {p.stem: json.loads(p.read_text("utf-8")) for p in sorted(FOLDER.glob("*.json"))}


def time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _problem(data: dict[str, Any]) -> Problem:
    return Problem(ErrorCode(data["problem"]), data["message"], "look at it", path="a", line=1)


def _entry(data: dict[str, Any]) -> ScheduleEntry | Problem:
    if "problem" in data:
        return _problem(data)
    if "every" not in data:
        text = json.dumps({"schedules": {ROLE: data}}, indent=1)
        return read_config(text.encode()).schedules[ROLE]
    every = Every.parse(data["every"])
    assert every is not None
    lines = {key: 3 + n for n, key in enumerate(data)}
    cap = data.get("cost_limit_usd")
    return ScheduleEntry(ROLE, every, data.get("enabled", True), cap, line=2, lines=lines)


def _since(data: dict[str, Any] | None) -> TimingSince | None:
    at = time(data["at"]) if data else None
    return TimingSince(TIP, at) if at is not None else None


def _registration(data: dict[str, Any]) -> Registration | Problem:
    if "problem" in data:
        return _problem(data)
    return Registration(
        role=ROLE,
        adapter=data["adapter"],
        priced=data["priced"],
        model=None,
        estimate_usd=data["estimate_usd"],
        instructions=None,
        timeout_s=3600.0,
        writes=("docs/**",),
        command=(),
        source="orchestrator.yaml:9",
    )


def _branch(data: dict[str, Any]) -> SweepBranch:
    sweep = SweepName(ROLE, date.fromisoformat(data["date"]))
    refs = tuple(
        BranchRef(sweep.local_ref, Oid("22" * 20), None)
        if where == "local"
        else BranchRef(sweep.tracking_ref(where), Oid("33" * 20), where)
        for where in data["where"]
    )
    branch = SweepBranch(
        sweep=sweep,
        refs=refs,
        merged=Merged(data["merged"]) if "merged" in data else None,
        state=SweepState(data["state"]) if "state" in data else None,
        since=time(data.get("since")),
        instance=data.get("instance"),
        alive=data.get("alive"),
        failed=data.get("failed"),
    )
    return branch._replace(release=release_command(branch, "origin"))


def _last(data: dict[str, Any] | None) -> MergedSweep | BrokenMarker | None:
    if data is None:
        return None
    sweep = SweepName(ROLE, date.fromisoformat(data["date"]))
    if "broken" in data:
        place = sweep.marker_path
        problem = Problem(ErrorCode.MARKER_ERROR, data["broken"], "mend it", path=place, line=4)
        return BrokenMarker(problem, sweep)
    at = time(data["at"])
    assert at is not None
    covering = time(data.get("covering_since"))
    found = MergedSweep(sweep, at, data.get("failed"), covering, data.get("unfinished", False))
    if "trigger" not in data:
        return found
    marker = read_marker(f"at: {data['at']}\ntrigger: {data['trigger']}\n".encode(), sweep)
    return found._replace(marker=marker)


def _backoff(data: dict[str, Any] | None) -> Backoff | None:
    if data is None:
        return None
    until = time(data["until"])
    assert until is not None
    return Backoff(until, data["failures"], "claude-code", data["reason"])


def facts(data: dict[str, Any]) -> RoleFacts:
    """The facts of one scenario."""
    registration = _registration(data["registration"])
    known = isinstance(registration, Registration)
    now = time(data["now"])
    assert now is not None
    return RoleFacts(
        role=ROLE,
        now=now,
        entry=_entry(data["entry"]),
        registration=registration,
        tip=TIP,
        tip_name="origin/main",
        config_place="orchestrator.yaml",
        config_commit=TIP,
        branches=tuple(_branch(b) for b in data["branches"]),
        last=_last(data["last"]),
        today_merged=data["today_merged"],
        obstacle=_problem(data["obstacle"]) if data.get("obstacle") else None,
        estimate_usd=registration.estimate_usd if isinstance(registration, Registration) else None,
        estimate_source="orchestrator.yaml:9" if known else "",
        remote="origin",
        backoff=_backoff(data.get("backoff")),
        paced_by=_last(data.get("paced_by")),
        newest_occurrence=time(data.get("newest_occurrence")),
        timing_since=_since(data.get("timing_since")),
        by_hand=data.get("by_hand", False),
    )
