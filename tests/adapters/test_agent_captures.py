"""What the real agent CLIs printed in each situation, read by their adapters."""

from typing import NamedTuple

import pytest

from orchestrator.adapters.base import Ending, Report
from orchestrator.adapters.registry import adapter
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, CostSource, Usage
from tests.support.agents import CAPTURES, MODELS, captured, request

REPORTED, COMPUTED = CostSource.REPORTED, CostSource.COMPUTED
NOTHING_SPENT = Usage(0, 0, 0.0, REPORTED)
TWO_CALLS = {
    "claude": Usage(8400, 300, 0.0138, REPORTED),
    "codex": Usage(8400, 300, 0.00675, COMPUTED),
    "gemini": Usage(8400, 300, 0.00165, COMPUTED),
}
ONE_CALL = {
    "claude": Usage(4200, 150, 0.0069, COMPUTED),
    "codex": Usage(4200, 150, 0.003375, COMPUTED),
    "gemini": Usage(4200, 150, 0.000825, COMPUTED),
}


class Case(NamedTuple):
    capture: str
    status: Status
    usage: Usage
    words: str | None = None
    ending: Ending = Ending.EXITED
    denied: str | None = None


CASES = (
    Case("claude-write-json", Status.OK, TWO_CALLS["claude"]),
    Case("claude-stream", Status.OK, TWO_CALLS["claude"]),
    Case(
        "claude-maxbudget",
        Status.BUDGET,
        Usage(12600, 450, 0.0207, REPORTED),
        "Reached maximum budget ($0.02)",
    ),
    Case(
        "claude-maxturns",
        Status.TURN_LIMIT,
        Usage(12600, 450, 0.0207, REPORTED),
        "Reached maximum number of turns (3)",
    ),
    Case("claude-noauth", Status.AUTH, NOTHING_SPENT, "Not logged in"),
    Case("claude-401-noretry", Status.AUTH, NOTHING_SPENT, "401 scripted 401"),
    Case(
        "claude-nopermission",
        Status.OK,
        TWO_CALLS["claude"],
        denied="it was refused Write (1 times)",
    ),
    Case(
        "claude-sigint-stream",
        Status.INTERRUPTED,
        Usage(4200, 150, 0.0069, REPORTED),
        "it was asked to stop",
        Ending.INTERRUPTED,
    ),
    Case(
        "claude-sigint-stream",
        Status.TIMEOUT,
        Usage(4200, 150, 0.0069, REPORTED),
        "the time limit was reached",
        Ending.TIMEOUT,
    ),
    Case(
        "claude-sigint-stream",
        Status.FAILED,
        Usage(4200, 150, 0.0069, REPORTED),
        "[ede_diagnostic]",
    ),
    Case("claude-sigterm-hang", Status.FAILED, UNKNOWN_USAGE, "it ended with exit code 143"),
    Case("claude-unknownmodel", Status.OK, Usage(8400, 300, None, CostSource.UNKNOWN)),
    Case(
        "claude-killed",
        Status.TIMEOUT,
        ONE_CALL["claude"],
        "the time limit was reached",
        Ending.TIMEOUT,
    ),
    Case("claude-killed", Status.FAILED, ONE_CALL["claude"], "it was ended by signal 9"),
    Case("codex-write", Status.OK, TWO_CALLS["codex"]),
    Case("codex-readonly", Status.OK, TWO_CALLS["codex"]),
    Case("codex-401", Status.AUTH, UNKNOWN_USAGE, "unexpected status 401 Unauthorized"),
    Case("codex-nokey", Status.AUTH, UNKNOWN_USAGE, "Missing environment variable"),
    Case("codex-refused-bounded", Status.UNAVAILABLE, UNKNOWN_USAGE, "Connection failed"),
    Case(
        "codex-sigterm",
        Status.INTERRUPTED,
        UNKNOWN_USAGE,
        "it was asked to stop",
        Ending.INTERRUPTED,
    ),
    Case("codex-sigterm", Status.FAILED, UNKNOWN_USAGE, "it was ended by signal 15"),
    Case("codex-killed", Status.TIMEOUT, ONE_CALL["codex"], None, Ending.TIMEOUT),
    Case("gemini-write", Status.OK, TWO_CALLS["gemini"]),
    Case("gemini-401", Status.AUTH, UNKNOWN_USAGE, "authentication_error"),
    Case("gemini-noauth", Status.AUTH, UNKNOWN_USAGE, "Please set an Auth method"),
    Case("gemini-maxturns", Status.TURN_LIMIT, UNKNOWN_USAGE, "Reached max session turns"),
    Case("gemini-sigint", Status.BAD_OUTPUT, UNKNOWN_USAGE, "without its final record"),
    Case(
        "gemini-sigint",
        Status.INTERRUPTED,
        UNKNOWN_USAGE,
        "it was asked to stop",
        Ending.INTERRUPTED,
    ),
    Case("gemini-killed", Status.TIMEOUT, ONE_CALL["gemini"], None, Ending.TIMEOUT),
)
ADAPTERS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}


def read(case: Case) -> Report:
    name = ADAPTERS[case.capture.partition("-")[0]]
    # A marker's model may be anything; what ran is what the output says, where it says it.
    asked = request(name, model=MODELS[name])
    return adapter(name).parse(captured(case.capture, case.ending), asked)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.capture}-{c.ending}-{c.status}")
def test_what_a_real_program_printed_is_read_as_what_happened(case: Case) -> None:
    found = read(case)
    assert found.status is case.status, found
    assert found.usage[:2] == case.usage[:2]
    assert found.usage.cost_usd == (
        None if case.usage.cost_usd is None else pytest.approx(case.usage.cost_usd, abs=1e-9)
    )
    assert found.usage.source is case.usage.source
    assert found.denied == case.denied
    if case.words is not None:
        assert case.words in (found.error or "")


def test_every_recorded_run_is_read() -> None:
    assert {case.capture for case in CASES} == {folder.name for folder in CAPTURES.iterdir()}


@pytest.mark.parametrize("name", ADAPTERS.values())
def test_a_program_that_did_not_start_is_unavailable_with_the_reason(name: str) -> None:
    result = captured("gemini-sigint", Ending.NOT_STARTED)
    found = adapter(name).parse(result, request(name))
    assert (found.status, found.usage) == (Status.UNAVAILABLE, UNKNOWN_USAGE)
