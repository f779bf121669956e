"""The program as a whole: options anywhere, errors once, exit codes, nothing else on stdout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import orchestrator
from orchestrator.cli.console import look_of
from orchestrator.cli.group import VERBS
from tests.cli.conftest import Run
from tests.support import repos

SOURCE = Path(orchestrator.__file__).parents[1]


def test_options_may_stand_before_and_after_the_verb(run: Run, clone: Path) -> None:
    before = run("-C", clone, "--format", "json", "explain")
    after = run("explain", "-C", clone, "--format=json")
    assert before == after
    assert before.json["roles"][0]["code"] == "due"


def test_of_an_option_given_twice_the_last_counts(run: Run, clone: Path, tmp_path: Path) -> None:
    assert run("-C", tmp_path / "nowhere", "status", "-C", clone).code == 0


def test_version_and_help_are_answered_without_a_repository(run: Run) -> None:
    assert run("--version").out == f"orchestrator {orchestrator.__version__}\n"
    assert run("explain", "--version").out == f"orchestrator {orchestrator.__version__}\n"
    for verb in VERBS:
        assert run(verb, "-h").out.startswith(f"Usage: orchestrator {verb} ")
        assert run("--help").out.count(f"\n  {verb} ") == 1


def test_without_a_verb_the_help_goes_to_standard_error(run: Run) -> None:
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: orchestrator" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("expain",), "error: no such command: expain\nhint: did you mean explain?\n"),
        (("frobnicate",), "hint: the commands are: tick, explain"),
        (("explain", "--fech"), "hint: did you mean --fetch?\n"),
        (("--formt", "json", "tick"), "hint: did you mean --format?\n"),
        (("explain", "--at"), "hint: orchestrator explain --help shows what it takes\n"),
        (("tick", "--format", "yaml"), "error: invalid value for '--format'"),
        (("schema", "--of", "nonsense"), "error: invalid value for '--of'"),
        (("check", "file", "--ref", "main"), "error: a FILE is checked as it is"),
    ],
)
def test_wrong_usage_says_what_was_meant_and_exits_2(
    run: Run, arguments: tuple[str, ...], words: str
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert ran.err.startswith("error: ")


@pytest.mark.parametrize("verb", ["explain", "status", "check"])
def test_where_there_is_no_repository_it_exits_3_with_a_way_out(
    run: Run, tmp_path: Path, verb: str
) -> None:
    ran = run(verb, "-C", tmp_path)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: ")
    assert "\nhint: " in ran.err


def test_with_json_an_error_is_one_document_on_stdout_too(run: Run, tmp_path: Path) -> None:
    ran = run("explain", "-C", tmp_path, "--format", "json")
    assert ran.code == 3
    assert list(ran.json) == ["version", "error"]
    assert ran.json["error"]["code"] == "cannot_look"
    assert ran.json["error"]["message"] in ran.err
    usage = run("--format=json", "explain", "--fech")
    assert usage.code == 2
    assert usage.json["error"]["code"] == "usage"


def test_an_unknown_role_is_wrong_usage_and_named(run: Run, clone: Path) -> None:
    for verb in ("explain", "status"):
        ran = run(verb, "histrian", "-C", clone)
        assert ran.code == 2
        assert "hint: did you mean historian?" in ran.err


def _raise(*_: object, **__: object) -> None:
    raise ValueError("a value that may hold a secret")


def test_a_bug_is_called_one_and_shows_no_traceback_unless_asked(
    run: Run, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.observe.evaluate_repository", _raise)
    ran = run("explain", "-C", clone)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        "error: this is a bug in orchestrator: ValueError in orchestrator.cli"
    )
    assert "report it" in ran.err
    assert "secret" not in ran.err.replace("read that for secrets", "")
    assert "Traceback" not in ran.err
    assert "Traceback" in run("explain", "-C", clone, "--verbose").err
    assert run("explain", "-C", clone, "--format", "json").json["error"]["code"] == "bug"


def test_an_interrupt_is_quiet_and_exits_130(
    run: Run, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.observe.evaluate_repository", interrupt)
    ran = run("status", "-C", clone)
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


def _process(*arguments: str, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "orchestrator", *arguments],
        env={**repos.environment(), "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_a_reader_that_went_away_is_no_error(clone: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = _process("explain", "-C", str(clone), stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def test_a_full_disk_below_the_output_is_an_error() -> None:
    with open("/dev/full", "wb") as full:
        process = _process("init", "--print", stdout=full.fileno())
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == b"error: the output could not be written: No space left on device\n"


HEAVY = ("pydantic", "asyncio", "logging", "orchestrator.report.json", "jsonschema")


@pytest.mark.parametrize("verb", ["explain", "tick"])
def test_text_loads_neither_pydantic_nor_the_other_verbs(clone: Path, verb: str) -> None:
    others = [f"orchestrator.cli.{v}" for v in VERBS if v != verb]
    code = (
        "import sys\nfrom orchestrator.cli import main\n"
        f"assert main([{verb!r}, '-C', {str(clone)!r}]) == 0\n"
        f"print([m for m in {[*HEAVY, *others]!r} if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**repos.environment(), "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("environ", "colored"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
def test_colour_without_a_terminal_only_when_forced(environ: dict[str, str], colored: bool) -> None:
    with open(os.devnull, "w", encoding="utf-8") as stream:
        look = look_of(stream, environ)
    assert (look.color, look.width) == (colored, 80)


@pytest.mark.parametrize(
    ("environ", "colored"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "CLICOLOR": "0"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
@pytest.mark.parametrize(("columns", "width"), [(0, 80), (20, 40), (80, 80), (240, 100)])
def test_a_terminal_has_colour_and_a_width_of_at_most_100(
    environ: dict[str, str], colored: bool, columns: int, width: int
) -> None:
    import fcntl
    import struct
    import termios

    ours, theirs = os.openpty()
    with open(ours, "rb"), open(theirs, "w", encoding="utf-8") as terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        look = look_of(terminal, environ)
    assert (look.color, look.width) == (colored, width)
