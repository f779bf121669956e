"""The `due-*` cases of `fixtures/schedules.json`, as far as they are about `every`."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.rules.engine import evaluate
from tests.support import scenarios

CASES = {
    case["id"]: case
    for case in json.loads(
        (Path(__file__).parents[2] / "fixtures" / "schedules.json").read_text("utf-8")
    )
    if case["kind"] == "every" and case["id"].startswith("due-")
}
DEVIATIONS = {
    "due-08-naive-at": "an `at` without a zone is UTC: YAML itself reads such a timestamp so, and "
    "other tools write them; a test of the marker reader pins it",
}


def _facts(case: dict[str, Any]) -> dict[str, Any]:
    given = case["input"]
    entry = {k: given[k] for k in ("every", "enabled", "cost_limit_usd") if k in given}
    last = given.get("last_at")
    estimate = given.get("estimate", 0)
    branch = given.get("open_branch")
    open_branch = {"date": (branch or "")[-10:], "state": "awaiting_review", "where": ["origin"]}
    return {
        "now": case["now"],
        "entry": entry,
        "registration": {"adapter": "command", "priced": True, "estimate_usd": estimate},
        "branches": [open_branch] if branch else [],
        "last": {"date": last[:10], "at": last} if last else None,
        "today_merged": False,
    }


@pytest.mark.parametrize("name", sorted(set(CASES) - set(DEVIATIONS)))
def test_case(name: str) -> None:
    verdict = evaluate(scenarios.facts(_facts(CASES[name])))
    assert verdict.rule == CASES[name]["expect"]["rule"]


def test_only_assumptions_are_deviated_from() -> None:
    assert {CASES[name]["confidence"] for name in DEVIATIONS} == {"assumption"}
