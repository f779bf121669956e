"""`tick` from the command line: its lines, its document, its exit code, its signals."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from orchestrator.cli.tick import stopped_by_signals
from orchestrator.model.names import Ref
from orchestrator.report.schemas import document_schema
from orchestrator.stop import StopFlag
from tests.cli.conftest import NOW, Run
from tests.cli.test_program import SOURCE
from tests.support import repos

BRANCH = "run/historian-2026-11-30"


def test_tick_sweeps_and_then_rests_in_one_line_each(run: Run, clone: Path) -> None:
    ran = run("tick", "-C", clone)
    assert (ran.code, ran.err) == (0, "")
    lines = [line for line in ran.out.splitlines() if not line.startswith("note: ")]
    assert lines == [f"historian  swept    {BRANCH}  ok  0 in / 0 out  $0"]
    again = run("tick", "-C", clone)
    assert again.code == 0
    assert again.out == f"historian  rests    S1 origin/{BRANCH} awaits review\n"


def test_tick_quiet_says_nothing_when_all_rest(run: Run, clone: Path) -> None:
    assert run("tick", "-C", clone, "--quiet").out.startswith("historian  swept")
    ran = run("tick", "-C", clone, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_tick_verbose_tells_the_start_and_every_check(run: Run, clone: Path) -> None:
    ran = run("tick", "-C", clone, "--verbose")
    assert ran.err == f"historian: builtin starts on {BRANCH}, for at most 1 h\n"
    assert "    S0 no: on by default\n" in ran.out
    assert "    S4 yes: historian-2026-11-30 with builtin" in ran.out


def test_tick_in_json_is_one_document_that_matches_its_schema(run: Run, clone: Path) -> None:
    validator = jsonschema.Draft202012Validator(document_schema("tick"))
    swept = run("tick", "-C", clone, "--format", "json").json
    validator.validate(swept)
    (role,) = swept["roles"]
    assert (role["action"], role["rule"]) == ("dispatch", "S4")
    remote = repos.refs(clone.parent / "remote.git")
    assert role["sweep"] == {
        "slug": "historian-2026-11-30",
        "branch": BRANCH,
        "intent": role["sweep"]["intent"],
        "closing": remote[Ref(f"refs/heads/{BRANCH}")],
        "status": role["sweep"]["status"],
        "tokens_in": 0,
        "tokens_out": 0,
        "cost_usd": 0.0,
        "failed": None,
    }
    rested = run("tick", "-C", clone, "--format", "json").json
    validator.validate(rested)
    (role,) = rested["roles"]
    assert (role["code"], role["state"], role["sweep"]) == ("sweep_open", "awaiting_review", None)


def test_tick_says_what_explain_said(run: Run, clone: Path) -> None:
    run("tick", "-C", clone)
    explained = run("explain", "-C", clone, "--format", "json").json
    ticked = run("tick", "-C", clone, "--format", "json").json
    assert ticked["roles"] == explained["roles"]


def test_tick_without_its_remote_evaluates_nothing_and_exits_3(
    run: Run, clone: Path, tmp_path: Path
) -> None:
    (tmp_path / "remote.git").rename(tmp_path / "gone.git")
    ran = run("tick", "-C", clone, "--format", "json")
    assert ran.code == 3
    assert list(ran.json) == ["version", "error"]


def test_tick_of_a_role_nobody_scheduled_is_wrong_usage(run: Run, clone: Path) -> None:
    ran = run("tick", "histrian", "-C", clone)
    assert ran.code == 2
    assert "did you mean historian?" in ran.err


def test_tick_with_an_error_in_the_policy_exits_1(run: Run, clone: Path, tmp_path: Path) -> None:
    policy = "schedules:\n  historian:\n    every: soon\n"
    repos.commit_files(tmp_path / "remote.git", {"orchestrator.yaml": policy})
    ran = run("tick", "-C", clone, "--quiet")
    assert ran.code == 1
    assert "historian  error    config_error: " in ran.out
    assert "orchestrator.yaml:3:12 @ " in ran.out


def test_signals_are_counted_while_a_tick_runs_and_put_back_after() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    stop = StopFlag()
    with stopped_by_signals(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        assert not stop.insisted
        os.kill(os.getpid(), signal.SIGINT)
    assert (stop.signal, stop.insisted) == (signal.SIGTERM, True)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == before


def test_a_signal_the_caller_ignores_stays_ignored() -> None:
    """`nohup orchestrator tick` survives the terminal's end."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = StopFlag()
        with stopped_by_signals(stop):
            os.kill(os.getpid(), signal.SIGHUP)
        assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


AGENT = """\
#!/bin/sh
echo started > "$STARTED"
exec sleep 300
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_agent_and_closes_its_sweep_as_failed(
    clone: Path, tmp_path: Path, number: signal.Signals
) -> None:
    started = tmp_path / "started"
    agent = tmp_path / "agent.sh"
    agent.write_text(AGENT.replace("$STARTED", str(started)), "utf-8")
    agent.chmod(0o755)
    policy = (
        "schedules:\n  slow:\n    every: 1d\nroles:\n  slow:\n    adapter: command\n"
        f"    command: [{agent}]\n"
    )
    repos.commit_files(tmp_path / "remote.git", {"orchestrator.yaml": policy})
    repos.git(clone, "config", "orchestrator.allowCommand", str(agent))
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "tick", "-C", str(clone)],
        env={**repos.environment(), "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(600):
            if started.exists() or process.poll() is not None:
                break
            signal.sigtimedwait([], 0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert started.exists(), out + err
    assert process.returncode == 1
    assert "slow  failed   run/slow-" in out
    assert "interrupted" in out


def test_tomorrow_is_another_day(run: Run, clone: Path) -> None:
    """A merged sweep counts from its dispatch, at the clock the caller gave."""
    run("tick", "-C", clone)
    remote = clone.parent / "remote.git"
    repos.fast_forward(remote, BRANCH)
    resting = run("tick", "-C", clone, now=NOW + timedelta(days=6, hours=23))
    assert resting.out == "historian  rests    S2 not due until 2026-12-07T02:00:00Z, in 1 h\n"
    assert run("tick", "-C", clone, now=NOW + timedelta(days=7)).out.startswith("historian  swept")
