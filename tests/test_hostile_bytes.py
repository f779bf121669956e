"""Any bytes as the policy, or as a marker, on a real repository: an answer, never a surprise."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from orchestrator.errors import OrchestratorError
from orchestrator.observe import evaluate_repository
from orchestrator.outcome import Evaluation
from orchestrator.rules.verdict import Action
from orchestrator.site import Settings
from tests.support import repos

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
MARKER_PATH = "runs/historian-2026-11-29/sweep.yaml"
POLICY = "schedules:\n  historian:\n    every: 7d\n"
_WORDS = [
    "schedules", "roles", "historian", "every", "enabled", "cost_limit_usd", "at", "role", "sweep",
    "7d", "0d", "true", "no", "null", ".nan", "1e999", "2026-11-29", "2026-11-29T02:00:00Z",
    ": ", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}", ", ", "#", "'", '"', "|", ">", "&a ",
    "*a", "<<: ", "!!str ", "---\n", "%YAML 1.1\n", "\t", "\0", "\ufeff", "\u2028", "<<<<<<< a\n",
]  # fmt: skip
LIKE_YAML = st.lists(st.sampled_from(_WORDS), max_size=25).map(lambda w: "".join(w).encode())
ENTRY = st.lists(st.sampled_from(_WORDS), max_size=8).map(
    lambda w: ("schedules:\n  historian:\n    every: " + "".join(w)).encode()
)
BYTES = st.one_of(st.binary(max_size=200), LIKE_YAML, ENTRY)
often = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "r", {"a": "a"}, bare=True)


def asked(path: Path, files: dict[str, bytes | str]) -> Evaluation | None:
    """What `explain` finds; None when it cannot look."""
    repos.commit_files(path, files)
    try:
        return evaluate_repository(Settings(str(path)), NOW)
    except OrchestratorError:
        return None


def could_be_due(data: bytes) -> bool:
    """What another reader makes of it: a role with `every` in words that are an interval."""
    try:
        found = YAML(typ="safe", pure=True).load(data.decode("utf-8-sig"))
    except Exception:  # noqa: BLE001 - whatever that reader cannot read is not due
        return False
    schedules = found.get("schedules") if isinstance(found, dict) else None
    entry = schedules.get("historian") if isinstance(schedules, dict) else None
    if not isinstance(entry, dict):
        return False
    every = entry.get("every")
    if not isinstance(every, str) or entry.get("enabled", True) is not True:
        return False
    number, unit = every.strip()[:-1], every.strip()[-1:]
    return number.isascii() and number.isdigit() and int(number) > 0 and unit in ("d", "h", "m")


@often
@given(data=BYTES)
@example(data=POLICY.encode())
@example(data=b"\xef\xbb\xbf" + POLICY.encode())
def test_any_bytes_as_a_policy_get_an_answer_and_only_a_valid_entry_is_due(
    path: Path, data: bytes
) -> None:
    found = asked(path, {"orchestrator.yaml": data})
    assert found is not None
    for outcome in found.outcomes:
        if outcome.verdict.role == "historian" and outcome.verdict.action is Action.DISPATCH:
            assert could_be_due(data)
    if data.removeprefix(b"\xef\xbb\xbf") == POLICY.encode():
        assert [o.verdict.action for o in found.outcomes] == [Action.DISPATCH]


@often
@given(data=BYTES)
@example(data=b"at: 2026-11-29T02:00:00Z")
@example(data=b"at: 2026-11-01T02:00:00Z")
def test_any_bytes_as_the_last_marker_get_an_answer_and_only_a_time_is_one(
    path: Path, data: bytes
) -> None:
    found = asked(path, {"orchestrator.yaml": POLICY, MARKER_PATH: data})
    assert found is not None
    (outcome,) = found.outcomes
    if outcome.verdict.action is not Action.ERROR:
        assert b"at: " in data or b"at:" in data or b'"at"' in data or b"'at'" in data
    if outcome.verdict.action is Action.DISPATCH:
        assert b"20" in data
