"""The `overlap` cases of `fixtures/schedules.json`, in this program's terms.

An execution that runs (or compensates) is an open sweep, one that completed is a merged one.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.model.names import role_problem
from orchestrator.rules.engine import evaluate
from orchestrator.rules.verdict import Code, RuleId
from tests.support import scenarios

CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for case in json.loads(
        (Path(__file__).parents[2] / "fixtures" / "schedules.json").read_text("utf-8")
    )
    if case["kind"] == "overlap"
}
DECIDED = (
    "over-01-skip",
    "over-02-skip-done",
    "over-03-skip-compensating",
    "over-07-manual-counts",
)
ELSEWHERE = {
    "over-05-cancel": "`cancel_previous` is not read yet: a policy that asks for it is refused",
    "over-06-latest-only": "S1 of the other reference wins: any open sweep of the role holds",
    "over-08-trigger-skip": "tests/cli/test_trigger.py, with the role's name",
    "over-11-start-fails": "nothing is recorded, so the occurrence stays due; the clone's own "
    "waiting time decides when it tries again",
    "over-12-manual-id": "a sweep is named for its day; its marker says `trigger: manual`",
    "over-14-id-chars": "below",
}


def _verdict(previous: str, *, by_hand: bool) -> tuple[RuleId | None, Code]:
    is_open = previous in ("RUNNING", "COMPENSATING")
    branch = {"date": "2026-11-29", "where": ["origin"]}
    branch |= {"state": "in_flight"} if is_open else {"merged": "marker"}
    data = {
        "now": "2026-11-30T02:00:00Z",
        "entry": {"cron": "0 2 * * *", "overlap": "skip"},
        "registration": {"adapter": "builtin", "priced": False, "estimate_usd": 0},
        "branches": [branch],
        "last": None,
        "today_merged": False,
        "newest_occurrence": None if by_hand else "2026-11-29T02:00:00Z",
    }
    found = evaluate(scenarios.facts(data))
    return found.rule, found.code


def test_every_case_is_accounted_for() -> None:
    assert CASES.keys() == {*DECIDED, *ELSEWHERE}


@pytest.mark.parametrize("name", DECIDED)
def test_an_open_sweep_holds_the_next_occurrence_back(name: str) -> None:
    given, expect = CASES[name]["input"], CASES[name]["expect"]
    found = _verdict(given["previous"], by_hand=given.get("previous_kind") == "manual")
    wanted = (RuleId.S4, Code.DUE) if expect["start"] else (RuleId.S1, Code.SWEEP_OPEN)
    assert found == wanted


def test_a_role_s_name_is_as_limited_as_the_case_says() -> None:
    names = CASES["over-14-id-chars"]["input"]["schedule_ids"]
    assert [n for n in names["ok"] if role_problem(n) is not None] == []
    assert [n for n in names["bad"] if role_problem(n) is None] == []
