"""The real CLIs, end to end: what they did, what they left, and what it cost."""

from pathlib import Path

import pytest

from orchestrator.model.usage import CostSource
from orchestrator.rules.verdict import Code
from tests.support.live import SITUATIONS, Situation, installed, tried

CASES = [(name, s) for name in installed() for s in SITUATIONS if name in s.only]


@pytest.mark.parametrize(("name", "situation"), CASES, ids=lambda v: getattr(v, "name", v))
def test_a_real_agent_ends_as_it_should_and_its_cost_is_known(
    name: str, situation: Situation, tmp_path: Path
) -> None:
    row = tried(name, situation, tmp_path)
    assert row.status is situation.status, row.evaluation.outcomes[0]
    assert row.leftovers == ()
    assert row.outside == ()
    usage = row.usage
    if situation.calls:
        assert usage[:2] == row.expected[:2], row
        assert usage.cost_usd == pytest.approx(row.expected.cost_usd, abs=1e-9)
        assert usage.source in (CostSource.REPORTED, CostSource.COMPUTED)
    else:
        assert not any(usage[:3]), row
    done = situation.status is not None and situation.status.completed
    assert row.evaluation.exit_code == (0 if done else 1)
    kept = situation.status is not None and not situation.withdrawn
    assert len(row.branches) == kept
    if not kept:
        assert row.evaluation.outcomes[0].verdict.code is Code.AGENT_UNAVAILABLE
    if done:
        assert "docs/x.md" in row.files
