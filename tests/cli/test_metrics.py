"""`tick --metrics`: one file for node_exporter's textfile collector."""

import re
from datetime import timedelta
from pathlib import Path

from tests.cli.conftest import NOW, Run
from tests.support import repos

_LINE = re.compile(r'orchestrator_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')


def _tick(run: Run, clone: Path, days: int = 0) -> dict[str, float]:
    """Every sample of the file a tick leaves; each line is checked to be well-formed."""
    file = clone.parent / "orchestrator.prom"
    assert run("tick", "-C", clone, "--metrics", file, now=NOW + timedelta(days=days)).code == 0
    lines = file.read_text("utf-8").splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(_LINE.fullmatch(line) for line in samples)
    names = [line.split("{")[0].split(" ")[0] for line in samples]
    for name in set(names):
        first = names.index(name)
        assert names[first : first + names.count(name)] == [name] * names.count(name)
        assert f"# TYPE {name} gauge" in lines
    assert [p.name for p in file.parent.glob("*.tmp")] == []
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in samples}


def test_a_sweep_its_review_and_the_rest_after_the_merge_are_all_seen(
    run: Run, clone: Path
) -> None:
    who = '{role="historian"'
    swept = _tick(run, clone)
    assert swept["orchestrator_tick_timestamp_seconds"] == NOW.timestamp()
    assert swept[f'orchestrator_swept{who},outcome="ok"}}'] == 1
    assert swept[f"orchestrator_last_sweep_cost_usd{who}}}"] == 0
    assert swept[f'orchestrator_last_sweep_tokens{who},direction="in"}}'] == 0
    waiting = _tick(run, clone, days=2)
    assert waiting[f'orchestrator_skipped{who},reason="sweep_open"}}'] == 1
    age = f'orchestrator_open_sweep_age_seconds{who},state="awaiting_review"}}'
    assert waiting[age] == 2 * 86_400
    repos.merge_commit(clone.parent / "remote.git", "run/historian-2026-11-30")
    resting = _tick(run, clone, days=3)
    assert resting[f'orchestrator_role_state{who},rule="S2",code="not_due"}}'] == 1
    assert resting[f"orchestrator_last_merged_age_seconds{who}}}"] == 3 * 86_400
    assert resting[f"orchestrator_open_sweeps{who}}}"] == 0
    assert age not in resting


def test_a_file_that_cannot_be_written_is_an_error_after_the_tick(run: Run, clone: Path) -> None:
    ran = run("tick", "-C", clone, "--metrics", clone / "missing" / "x.prom")
    assert ran.code == 1
    assert "historian  swept" in ran.out
    assert "cannot be written: No such file or directory" in ran.err
