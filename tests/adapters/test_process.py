"""One runner for every agent: what it lets in, what it keeps, and that nothing stays running."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.adapters.base import Ending, Plan, ProcessResult
from orchestrator.adapters.containment import Limits, Tail
from orchestrator.adapters.process import DISPATCH_VARIABLE, kill_leftovers, run_agent
from orchestrator.stop import StopFlag

AGENTS = Path(__file__).parents[2] / "fixtures" / "agents"
QUICK = Limits(interrupt_s=0.3, terminate_s=0.3, kill_s=5.0)
REQUEST = json.dumps({"version": 1, "slug": "scout-2026-11-30"}).encode()

Runner = Callable[..., ProcessResult]


@pytest.fixture
def dispatch_id() -> Iterator[str]:
    """A fresh mark; whatever still carries it when the test ends is ended, and a failure."""
    mark = str(uuid.uuid4())
    yield mark
    assert kill_leftovers(mark) == 0, "the run left processes behind"


@pytest.fixture
def run(tmp_path: Path, dispatch_id: str) -> Runner:
    work = tmp_path / "work"
    work.mkdir()

    def start(agent: str | tuple[str, ...], **given: object) -> ProcessResult:
        argv = (str(AGENTS / agent),) if isinstance(agent, str) else agent
        plan = given.pop("plan", None) or Plan(argv, stdin=REQUEST)
        settings = {
            "workdir": work,
            "home": tmp_path / "home",
            "timeout_s": 20.0,
            "environ": {"PATH": os.environ["PATH"]},
            "stop": StopFlag(),
            "dispatch_id": dispatch_id,
            "limits": QUICK,
        }
        return run_agent(plan, **{**settings, **given})  # type: ignore[arg-type]

    return start


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def eventually(holds: Callable[[], bool], within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def daemons(result: ProcessResult, word: str = "daemon") -> list[int]:
    lines = result.stdout.decode().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith(word)]


# -- what it is given --------------------------------------------------------------------------


def test_a_good_agent_runs_in_its_folder_and_its_output_comes_back(
    run: Runner, tmp_path: Path
) -> None:
    seen: list[int] = []
    result = run("ok", on_start=seen.append)
    assert (result.ending, result.exit_code, result.swept) == (Ending.EXITED, 0, 0)
    assert json.loads(result.stdout.splitlines()[-1])["tokens_in"] == 1200
    assert (tmp_path / "work/runs/scout-2026-11-30/docs-delta.md").exists()
    assert len(seen) == 1
    assert not alive(seen[0])


def test_only_the_allow_list_of_the_environment_reaches_the_agent(
    run: Runner, tmp_path: Path, dispatch_id: str
) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "https_proxy": "http://proxy",
        "HTTP_PROXY": "http://proxy",
        "SSL_CERT_FILE": "/ca.pem",
        "MY_KEY": "wanted",
        "HOME": "/root",
        "GIT_DIR": "/repo/.git",
        "SSH_AUTH_SOCK": "/agent",
        "GH_TOKEN": "t",
        "GITHUB_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "t",
        "ANTHROPIC_API_KEY": "t",
        "PYTHONPATH": "/evil",
        "LD_PRELOAD": "",
    }
    plan = Plan(("/usr/bin/env",), environment={"EXTRA": "1"}, pass_through=("MY_KEY", "ABSENT"))
    result = run((), plan=plan, environ=environ)
    lines = dict(line.split("=", 1) for line in result.stdout.decode().splitlines())
    assert lines == {
        **{k: environ[k] for k in ("PATH", "LANG", "LC_ALL", "TZ", "https_proxy", "HTTP_PROXY")},
        "SSL_CERT_FILE": "/ca.pem",
        "MY_KEY": "wanted",
        "EXTRA": "1",
        "HOME": str(tmp_path / "home"),
        DISPATCH_VARIABLE: dispatch_id,
    }


def test_the_private_home_has_the_plans_files_and_nobody_else_can_look(
    run: Runner, tmp_path: Path
) -> None:
    plan = Plan(
        shell('cat "$HOME/.agent/settings.json"; echo session > "$HOME/session.log"'),
        home_files={".agent/settings.json": b'{"a": 1}\n'},
    )
    result = run((), plan=plan)
    home = tmp_path / "home"
    assert result.stdout == b'{"a": 1}\n'
    assert result.home == home
    assert (home / "session.log").exists()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / ".agent/settings.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a//b", "a/../../b", ".", ""])
def test_a_home_file_cannot_lead_out_of_the_home(run: Runner, name: str) -> None:
    with pytest.raises(ValueError, match="inside a home"):
        run((), plan=Plan(("/bin/true",), home_files={name: b"x"}))


def test_a_prompt_larger_than_any_pipe_arrives_whole(run: Runner) -> None:
    plan = Plan(shell("sleep 0.1; wc -c"), stdin=b"x" * 3_000_000)
    assert run((), plan=plan).stdout.strip() == b"3000000"


def test_without_a_prompt_stdin_is_empty(run: Runner) -> None:
    assert run((), plan=Plan(shell("cat; echo done"))).stdout == b"done\n"


def test_a_parent_that_ignores_interrupts_does_not_make_the_agent_deaf(run: Runner) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = run("hangs", timeout_s=0.3)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.ending, result.exit_code) == (Ending.TIMEOUT, 130)


# -- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["/no/such/program", "/etc/passwd", "/tmp"])
def test_a_program_that_cannot_be_executed_says_why(run: Runner, program: str) -> None:
    result = run((program,))
    assert (result.ending, result.exit_code) == (Ending.NOT_STARTED, None)
    assert result.error is not None
    assert program in result.error


def test_a_folder_that_is_not_there_is_an_answer_not_an_exception(
    run: Runner, tmp_path: Path
) -> None:
    result = run("ok", workdir=tmp_path / "absent")
    assert result.ending is Ending.NOT_STARTED


def test_the_exit_code_and_a_signals_number_are_told(run: Runner) -> None:
    assert run("fails").exit_code == 3
    assert run(shell("kill -SEGV $$")).exit_code == -signal.SIGSEGV


def test_at_the_time_limit_the_agent_is_asked_first_and_may_say_what_it_used(run: Runner) -> None:
    result = run("hangs", timeout_s=0.3)
    assert (result.ending, result.exit_code) == (Ending.TIMEOUT, 130)
    assert json.loads(result.stdout.splitlines()[-1])["tokens_in"] == 77
    assert result.seconds < 3


def test_an_agent_that_ignores_every_request_is_killed_with_its_children(run: Runner) -> None:
    result = run("ignores-sigterm", timeout_s=0.3)
    assert (result.ending, result.exit_code) == (Ending.TIMEOUT, -signal.SIGKILL)
    assert 0.9 < result.seconds < 6
    assert [p for p in daemons(result, "child") if alive(p)] == []
    assert result.swept >= 1


def test_sigterm_reaches_the_whole_group(run: Runner, tmp_path: Path) -> None:
    script = """
        trap '' INT
        (trap 'echo child > told; exit' TERM; while :; do sleep 0.02; done) &
        trap 'wait; exit 5' TERM
        while :; do sleep 0.02; done
    """
    result = run(shell(script), timeout_s=0.3)
    assert result.exit_code == 5
    assert (tmp_path / "work/told").exists()


def test_a_request_to_stop_interrupts_the_agent(run: Runner) -> None:
    stop = StopFlag()
    timer = threading.Timer(0.3, stop.set)
    timer.start()
    result = run("hangs", stop=stop)
    timer.join()
    assert (result.ending, result.exit_code) == (Ending.INTERRUPTED, 130)
    assert result.seconds < 3


def test_asking_twice_skips_the_polite_steps(run: Runner) -> None:
    stop = StopFlag()
    timers = [threading.Timer(t, stop.set) for t in (0.2, 0.4)]
    for timer in timers:
        timer.start()
    slow = Limits(interrupt_s=30, terminate_s=30, kill_s=5)
    result = run("ignores-sigterm", stop=stop, limits=slow)
    for timer in timers:
        timer.join()
    assert result.ending is Ending.INTERRUPTED
    assert result.seconds < 5


def test_when_asked_to_stop_before_the_start_nothing_is_started(
    run: Runner, tmp_path: Path
) -> None:
    stop = StopFlag()
    stop.set(signal.SIGTERM)
    result = run("ok", stop=stop)
    assert (result.ending, result.exit_code) == (Ending.INTERRUPTED, None)
    assert not (tmp_path / "work/runs").exists()


# -- that nothing stays ------------------------------------------------------------------------


def test_daemons_in_sessions_of_their_own_do_not_survive_the_leader(run: Runner) -> None:
    result = run("daemonises")
    pids = daemons(result)
    assert len(pids) == 2
    assert [p for p in pids if alive(p)] == []
    assert result.swept >= 2
    assert (result.ending, result.exit_code) == (Ending.EXITED, 0)


def test_a_daemon_that_keeps_the_pipes_open_holds_nobody_up(run: Runner) -> None:
    result = run(shell("setsid sleep 1234 & sleep 0.1; echo done"))
    assert result.stdout == b"done\n"
    assert result.seconds < 3


def test_other_children_of_this_process_are_left_alone(run: Runner) -> None:
    other = subprocess.Popen(["/bin/sleep", "1234"], start_new_session=True)
    short = subprocess.Popen(["/bin/sh", "-c", "exit 7"])
    run("daemonises")
    assert other.poll() is None
    assert short.wait(5) == 7, "its exit code was taken by somebody else"
    other.kill()
    assert other.wait(5) == -signal.SIGKILL


def test_an_agent_that_kills_its_supervisor_takes_itself_along(run: Runner) -> None:
    result = run(shell("setsid sleep 1234 & echo daemon $!; kill -9 $PPID; sleep 1234"))
    assert result.exit_code is None
    assert result.error == "its supervisor was killed"
    assert eventually(lambda: not [p for p in daemons(result) if alive(p)])


def test_an_agent_that_stops_its_supervisor_is_still_ended(run: Runner) -> None:
    limits = Limits(interrupt_s=0.1, terminate_s=0.1, kill_s=0.5)
    result = run(shell("kill -STOP $PPID; sleep 1234"), timeout_s=0.3, limits=limits)
    assert result.ending is Ending.TIMEOUT
    assert result.seconds < 5


PARENT = """
import os, sys
from pathlib import Path
from orchestrator.adapters.base import Plan
from orchestrator.adapters.process import run_agent
from orchestrator.stop import StopFlag
script = "setsid sleep 1234 & echo $! > pids; echo $$ >> pids; mv pids ready; sleep 1234"
run_agent(Plan(("/bin/sh", "-c", script)), workdir=Path(sys.argv[1]), home=Path(sys.argv[2]),
          timeout_s=60, environ=os.environ, stop=StopFlag(), dispatch_id=sys.argv[3])
"""


def test_when_this_program_is_killed_its_agent_ends_too(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", PARENT, str(tmp_path), str(tmp_path / "home"), str(uuid.uuid4())]
    parent = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert eventually((tmp_path / "ready").exists, 10)
    pids = [int(p) for p in (tmp_path / "ready").read_text().split()]
    assert all(map(alive, pids))
    parent.kill()
    parent.wait(5)
    assert eventually(lambda: not any(map(alive, pids)))


def test_leftovers_are_found_by_their_mark_and_nothing_else_is_touched() -> None:
    mine, others = str(uuid.uuid4()), str(uuid.uuid4())
    started = [
        subprocess.Popen(["/bin/sleep", "1234"], env={DISPATCH_VARIABLE: value, "OTHER": mine})
        for value in (mine, others, mine + "0")
    ]
    # A child has the mark once its exec is done, not before.
    assert eventually(
        lambda: all(b"sleep" in Path(f"/proc/{p.pid}/cmdline").read_bytes() for p in started)
    )
    assert kill_leftovers(mine) == 1
    assert started[0].wait(5) == -signal.SIGKILL
    assert [p.poll() for p in started[1:]] == [None, None]
    assert kill_leftovers("") == kill_leftovers("x") == kill_leftovers("a=b\0c") == 0
    for process in started[1:]:
        process.kill()
        process.wait(5)


# -- what it keeps -----------------------------------------------------------------------------


def test_a_flood_keeps_the_end_of_what_was_printed(run: Runner) -> None:
    limits = Limits(0.3, 0.3, 5.0, stdout_bytes=100_000, stderr_bytes=10_000)
    result = run("floods-output", limits=limits)
    assert result.exit_code == 0
    assert len(result.stdout) <= 100_000
    assert len(result.stderr) <= 10_000
    assert json.loads(result.stdout.splitlines()[-1])["tokens_in"] == 5


def test_what_is_cut_starts_with_a_whole_line() -> None:
    tail = Tail(20)
    for line in (b"secret-", b"token-1234567890\n", b"next line\n"):
        tail.add(line)
    assert tail.read() == b"next line\n"


def test_a_single_endless_line_is_cut_without_its_beginning() -> None:
    tail = Tail(10)
    tail.add(b"0123456789abcdefghij")
    assert tail.read() == b"fghij"


def test_output_within_the_cap_is_kept_byte_for_byte() -> None:
    tail = Tail(10)
    tail.add(b"01234")
    tail.add(b"56789")
    assert tail.read() == b"0123456789"


def test_transcripts_are_private_and_hold_no_secret(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    key = "a-very-private-key-0123"
    plan = Plan((str(AGENTS / "prints-secrets"),), stdin=REQUEST, pass_through=("AGENT_API_KEY",))
    environ = {"PATH": os.environ["PATH"], "AGENT_API_KEY": key}
    result = run((), plan=plan, environ=environ, transcripts=folder)
    assert key.encode() in result.stdout
    kept = {p.name: p.read_text() for p in folder.iterdir()}
    assert sorted(kept) == ["stderr.txt", "stdout.txt"]
    for text in kept.values():
        assert key not in text
        assert "ghp_" not in text
        assert "hunter2" not in text
    assert "using [redacted]" in kept["stdout.txt"]
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
