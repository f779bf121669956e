"""Any program as an agent: what it is told, what it may say, and where it may run at all."""

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from orchestrator.adapters.base import (
    Ending,
    Operator,
    Probe,
    ProcessResult,
    Report,
    Request,
)
from orchestrator.adapters.command import CommandAdapter
from orchestrator.adapters.containment import Limits
from orchestrator.adapters.process import run_agent
from orchestrator.errors import OrchestratorError
from orchestrator.model.config import Registration
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, CostSource, Usage
from orchestrator.stop import StopFlag

AGENTS = Path(__file__).parents[2] / "fixtures" / "agents"
COMMAND = CommandAdapter()


def registration(*command: str) -> Registration:
    return Registration("scout", "command", True, "m-1", 0.0, None, 60.0, (), command, "test")


def operator(*allowed: str, path: str = "/usr/bin:/bin") -> Operator:
    return Operator(allowed, {}, {"PATH": path})


def request_for(workdir: Path, *command: str) -> Request:
    return Request(
        registration=registration(*command),
        sweep=SweepName("scout", date(2026, 11, 30)),
        git_dir=workdir / ".git",
        base=Oid("1" * 40),
        since=None,
        covering_since=datetime(2026, 11, 23, 2, tzinfo=UTC),
        at=datetime(2026, 11, 30, 2, tzinfo=UTC),
        workdir=workdir,
        prompt="Look around.\n",
        budget_usd=1.5,
        timeout_s=60.0,
        operator=operator("*"),
    )


# -- whether it may run ------------------------------------------------------------------------


def test_a_program_the_operator_did_not_allow_is_refused_with_the_line_to_type() -> None:
    probe = COMMAND.probe(registration("scripts/my scout.sh", "--deep"), operator("scripts/other"))
    assert not probe.ok
    assert probe.hint is not None
    assert "git config --add orchestrator.allowCommand 'scripts/my scout.sh'" in probe.hint


@pytest.mark.parametrize("allowed", [("scripts/scout.sh",), ("*",), ("other", "scripts/scout.sh")])
def test_a_program_allowed_as_written_or_by_a_star_may_run(allowed: tuple[str, ...]) -> None:
    probe = COMMAND.probe(registration("scripts/scout.sh"), operator(*allowed))
    assert probe == Probe(ok=True, program="scripts/scout.sh")


@pytest.mark.parametrize("allowed", ["scripts/*", "scripts", "scout.sh", "./scripts/scout.sh"])
def test_nothing_but_the_exact_words_allows_a_program(allowed: str) -> None:
    assert not COMMAND.probe(registration("scripts/scout.sh"), operator(allowed)).ok


@pytest.mark.parametrize("program", ["../x", "a/../../x", "./../x", ".git/hooks/x"])
def test_a_relative_program_outside_the_working_copy_is_refused(program: str) -> None:
    probe = COMMAND.probe(registration(program), operator("*"))
    assert not probe.ok
    assert "not inside the working copy" in (probe.reason or "")


def test_a_bare_name_is_looked_up_on_path_and_never_in_a_relative_folder(tmp_path: Path) -> None:
    (tmp_path / "scout").write_text("#!/bin/sh\n")
    path = f":.:{tmp_path}:/bin"
    assert not COMMAND.probe(registration("scout"), operator("*", path=path)).ok
    (tmp_path / "scout").chmod(0o755)
    found = COMMAND.probe(registration("scout"), operator("*", path=path))
    assert found == Probe(ok=True, program=str(tmp_path / "scout"))


def test_an_absolute_program_must_be_there_and_executable(tmp_path: Path) -> None:
    program = tmp_path / "scout"
    assert not COMMAND.probe(registration(str(program)), operator("*")).ok
    program.write_text("")
    assert "chmod +x" in (COMMAND.probe(registration(str(program)), operator("*")).hint or "")
    program.chmod(0o755)
    assert COMMAND.probe(registration(str(program)), operator("*")).ok


@pytest.mark.parametrize("command", [(), ("",), ("a\0b",)])
def test_a_command_that_names_no_program_is_refused(command: tuple[str, ...]) -> None:
    assert not COMMAND.probe(registration(*command), operator("*")).ok


# -- how it is started -------------------------------------------------------------------------


def test_the_request_on_stdin_is_the_documented_object(tmp_path: Path) -> None:
    asked = request_for(tmp_path, "/bin/true", "--deep")
    plan = COMMAND.plan(asked, Probe(ok=True, program="/bin/true"))
    assert plan.argv == ("/bin/true", "--deep")
    assert plan.checkout
    assert json.loads(plan.stdin) == {
        "version": 1,
        "role": "scout",
        "slug": "scout-2026-11-30",
        "branch": "run/scout-2026-11-30",
        "covering_since": "2026-11-23T02:00:00Z",
        "prompt": "Look around.\n",
        "model": "m-1",
        "budget_usd": 1.5,
        "timeout_s": 60.0,
        "workdir": str(tmp_path),
    }
    first = COMMAND.plan(replace(asked, covering_since=None), Probe(ok=True))
    assert json.loads(first.stdin)["covering_since"] is None


def test_a_relative_program_is_the_working_copys(tmp_path: Path) -> None:
    plan = COMMAND.plan(request_for(tmp_path, "scripts/x", "a"), Probe(ok=True))
    assert plan.argv == (str(tmp_path / "scripts/x"), "a")


def test_a_link_in_the_working_copy_cannot_start_a_program_outside(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("/bin/sh")
    with pytest.raises(OrchestratorError, match="leads out of the working copy"):
        COMMAND.plan(request_for(tmp_path, "./x"), Probe(ok=True))


# -- what came of it ---------------------------------------------------------------------------


def ran(agent: str, tmp_path: Path, timeout_s: float = 20.0) -> Report:
    work = tmp_path / "work"
    work.mkdir()
    asked = request_for(work, str(AGENTS / agent))
    probe = COMMAND.probe(asked.registration, asked.operator)
    result = run_agent(
        COMMAND.plan(asked, probe),
        workdir=work,
        home=tmp_path / "home",
        timeout_s=timeout_s,
        environ=os.environ,
        stop=StopFlag(),
        dispatch_id=str(uuid4()),
        limits=Limits(0.3, 0.3, 5.0),
    )
    return COMMAND.parse(result, asked)


def test_a_good_agents_status_and_usage_are_taken(tmp_path: Path) -> None:
    usage = Usage(1200, 340, 0.42, CostSource.REPORTED)
    assert ran("ok", tmp_path) == Report(Status.OK, usage)


def test_an_agent_that_changed_nothing_may_say_so(tmp_path: Path) -> None:
    assert ran("no-change", tmp_path).status is Status.NO_CHANGE


def test_a_failed_agents_usage_counts_all_the_same(tmp_path: Path) -> None:
    usage = Usage(500, None, 0.05, CostSource.REPORTED)
    assert ran("fails", tmp_path) == Report(Status.FAILED, usage, "the model said no")


def test_what_an_agent_used_before_the_time_limit_counts(tmp_path: Path) -> None:
    report = ran("hangs", tmp_path, 0.3)
    assert report.status is Status.TIMEOUT
    assert report.usage == Usage(77, 7, None, CostSource.UNKNOWN)


def test_nonsense_is_bad_output_and_its_usage_stays_unknown(tmp_path: Path) -> None:
    report = ran("garbage-usage", tmp_path)
    assert (report.status, report.usage) == (Status.BAD_OUTPUT, UNKNOWN_USAGE)
    assert "splendid" in (report.error or "")


def test_a_result_after_a_flood_is_still_read(tmp_path: Path) -> None:
    assert ran("floods-output", tmp_path).usage.cost_usd == 0.07


def parsed(
    stdout: bytes, code: int | None = 0, ending: Ending = Ending.EXITED, stderr: bytes = b""
) -> Report:
    result = ProcessResult(ending, code, stdout, stderr, 1.0, Path("/home"), error="no such file")
    return COMMAND.parse(result, request_for(Path("/w"), "x"))


@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"all done\n",
        b"[1, 2]\n",
        b'"ok"\n',
        b'{"status": \n',
        b'{"tokens_in": 5}\nbut then more\n',
        b"{" * 5000,
        b'{"a":' * 5000,
        b'{"tokens_in": ' + b"9" * 5000 + b"}",
        b"\xff\xfe{}",
    ],
)
def test_without_a_last_line_that_is_an_object_exit_zero_is_ok_with_unknown_usage(
    stdout: bytes,
) -> None:
    assert parsed(stdout) == Report(Status.OK, UNKNOWN_USAGE)


def test_blank_lines_after_the_object_do_not_hide_it() -> None:
    assert parsed(b'noise\n{"status": "no_change"}\n\n  \n').status is Status.NO_CHANGE


@pytest.mark.parametrize(
    "field",
    [
        '"tokens_in": "5"',
        '"tokens_in": -1',
        '"tokens_in": true',
        '"tokens_out": 1.5',
        '"cost_usd": NaN',
        '"cost_usd": Infinity',
        '"cost_usd": -0.1',
        '"cost_usd": "1"',
        '"cost_usd": true',
        '"status": 7',
        '"status": "OK"',
        '"status": ["ok"]',
    ],
)
def test_a_field_of_the_wrong_kind_is_bad_output(field: str) -> None:
    report = parsed(f"{{{field}}}".encode())
    assert (report.status, report.usage) == (Status.BAD_OUTPUT, UNKNOWN_USAGE)
    assert report.error


def test_one_unreadable_number_does_not_lose_the_others() -> None:
    report = parsed(b'{"tokens_in": 5, "tokens_out": "x", "cost_usd": 0}')
    assert report.usage == Usage(5, None, 0.0, CostSource.REPORTED)


def test_null_fields_are_absent_fields() -> None:
    line = b'{"status": null, "tokens_in": null, "cost_usd": null, "error": null}'
    assert parsed(line) == Report(Status.OK, UNKNOWN_USAGE)


def test_an_exit_code_other_than_zero_is_a_failure_whatever_it_claims() -> None:
    report = parsed(b'{"status": "ok"}', 3, stderr=b"first\nlast words\n\n")
    assert report.status is Status.FAILED
    assert report.error == "it ended with exit code 3: last words"
    assert parsed(b'{"status": "budget"}', 1).status is Status.BUDGET
    assert parsed(b"", -9).error == "it was ended by signal 9"


def test_a_failure_it_reports_itself_counts_with_exit_zero() -> None:
    report = parsed(b'{"status": "rate_limited"}')
    assert report == Report(Status.RATE_LIMITED, UNKNOWN_USAGE, "it did not say why")


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending.TIMEOUT, Status.TIMEOUT),
        (Ending.INTERRUPTED, Status.INTERRUPTED),
        (Ending.NOT_STARTED, Status.UNAVAILABLE),
    ],
)
def test_a_run_that_was_ended_is_never_ok(ending: Ending, status: Status) -> None:
    report = parsed(b'{"status": "ok", "tokens_in": 4}', 0, ending)
    assert (report.status, report.usage.tokens_in) == (status, 4)
    assert report.error


def test_a_supervisor_that_was_killed_makes_the_run_a_failure() -> None:
    assert parsed(b'{"status": "ok"}', None).status is Status.FAILED
