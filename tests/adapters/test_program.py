"""Finding an agent's program, and asking it what it can do."""

import time
from pathlib import Path

import pytest

from orchestrator.adapters import program
from orchestrator.adapters.base import Operator
from orchestrator.adapters.registry import adapter
from tests.support.agents import registration

HELP = {
    "claude-code": "--output-format --permission-mode --setting-sources --strict-mcp-config "
    "--tools --max-budget-usd",
    "codex": "--json --sandbox --cd --skip-git-repo-check --ignore-user-config --ignore-rules "
    "--disable --config",
    "gemini": "--output-format --approval-mode --skip-trust --allowed-mcp-server-names "
    "--extensions",
}
PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}
KEYS = {
    "claude-code": "ANTHROPIC_API_KEY",
    "codex": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
}
EACH = pytest.mark.parametrize("name", PROGRAMS)


def install(folder: Path, name: str, body: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / PROGRAMS[name]
    path.write_text(body if body is not None else f"#!/bin/sh\necho '{HELP[name]}'\n")
    path.chmod(0o755)
    return path


def operator(folder: Path, name: str, **programs: str) -> Operator:
    return Operator((), programs, {"PATH": f"{folder}:/usr/bin:/bin", KEYS[name]: "k" * 20})


@EACH
def test_a_program_with_all_it_needs_may_run_and_its_flags_are_known(
    name: str, tmp_path: Path
) -> None:
    path = install(tmp_path / "bin", name)
    found = adapter(name).probe(registration(name), operator(tmp_path / "bin", name))
    assert (found.ok, found.program, found.reason) == (True, str(path), None)
    assert set(HELP[name].split()) <= set(found.flags)


@EACH
def test_a_program_that_is_nowhere_is_named_with_the_way_to_it(name: str, tmp_path: Path) -> None:
    found = adapter(name).probe(registration(name), operator(tmp_path, name))
    assert found.reason == f"the program {PROGRAMS[name]} is not on PATH"
    assert f"git config orchestrator.{name}.path" in (found.hint or "")
    assert "npm install -g" in (found.hint or "")


@EACH
def test_the_operators_path_wins_and_a_wrong_one_is_not_passed_over(
    name: str, tmp_path: Path
) -> None:
    install(tmp_path / "bin", name)
    own = install(tmp_path / "own", name)
    base = operator(tmp_path / "bin", name)
    right = Operator((), {name: str(own)}, base.environment)
    assert adapter(name).probe(registration(name), right).program == str(own)
    for wrong in (str(tmp_path / "gone"), "claude", str(tmp_path)):
        found = adapter(name).probe(
            registration(name), Operator((), {name: wrong}, base.environment)
        )
        assert not found.ok
        assert "which is no executable file" in (found.reason or "")


@EACH
def test_without_credentials_nothing_is_even_started(name: str, tmp_path: Path) -> None:
    install(tmp_path / "bin", name, f"#!/bin/sh\ntouch {tmp_path}/started\n")
    found = adapter(name).probe(
        registration(name), Operator((), {}, {"PATH": f"{tmp_path}/bin:/bin", KEYS[name]: ""})
    )
    assert "has no credentials here" in (found.reason or "")
    assert not (tmp_path / "started").exists()


@EACH
@pytest.mark.parametrize("model", ["--yolo", "-x", "a b", "", "a\nb", "x" * 300])
def test_a_model_that_could_be_an_option_is_refused(name: str, model: str, tmp_path: Path) -> None:
    install(tmp_path / "bin", name)
    found = adapter(name).probe(registration(name, model), operator(tmp_path / "bin", name))
    assert not found.ok
    assert "is not a model's name" in (found.reason or "")


def test_a_program_too_old_to_be_contained_is_refused(tmp_path: Path) -> None:
    install(tmp_path / "bin", "claude-code", "#!/bin/sh\necho '--output-format --tools-old'\n")
    found = adapter("claude-code").probe(
        registration("claude-code"), operator(tmp_path / "bin", "claude-code")
    )
    assert "does not know --permission-mode" in (found.reason or "")
    assert "--tools," in (found.reason or "")


def test_a_program_whose_interpreter_is_not_on_path_is_said_so(tmp_path: Path) -> None:
    install(tmp_path / "bin", "gemini", "#!/usr/bin/env no-such-node\n")
    found = adapter("gemini").probe(registration("gemini"), operator(tmp_path / "bin", "gemini"))
    assert "needs a program that is not on PATH" in (found.reason or "")
    assert "no-such-node" in (found.reason or "")


def test_a_program_finds_the_node_it_was_installed_with(tmp_path: Path) -> None:
    path = install(tmp_path / "nvm", "gemini", "#!/usr/bin/env node\n")
    node = tmp_path / "nvm" / "node"
    node.write_text(f"#!/bin/sh\necho '{HELP['gemini']}'\n")
    node.chmod(0o755)
    asking = Operator((), {"gemini": str(path)}, {"PATH": "/usr/bin:/bin", "GEMINI_API_KEY": "k"})
    assert adapter("gemini").probe(registration("gemini"), asking).ok


def test_a_program_that_never_answers_is_ended_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "ASK_TIMEOUT_S", 0.5)
    install(tmp_path / "bin", "codex", "#!/bin/sh\ntrap '' INT TERM\nsleep 60 & sleep 61\n")
    began = time.monotonic()
    found = adapter("codex").probe(registration("codex"), operator(tmp_path / "bin", "codex"))
    assert "did not print its help within 0.5 s" in (found.reason or "")
    assert time.monotonic() - began < 15


def test_a_program_that_cannot_be_executed_is_said_so(tmp_path: Path) -> None:
    install(tmp_path / "bin", "codex", "#!/no/such/interpreter\n")
    found = adapter("codex").probe(registration("codex"), operator(tmp_path / "bin", "codex"))
    assert "could not be started" in (found.reason or "")


def test_asking_passes_no_key_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    path = install(tmp_path / "bin", "codex", "#!/bin/sh\nenv; touch here $HOME/there\n")
    asked = program.ask(str(path), ("--help",), operator(tmp_path / "bin", "codex"))
    assert asked.exit_code == 0
    assert b"OPENAI_API_KEY" not in asked.stdout
    assert not list((tmp_path / "temp").iterdir())


def test_a_version_is_read_from_whatever_is_around_it(tmp_path: Path) -> None:
    path = install(tmp_path / "bin", "codex", "#!/bin/sh\necho 'codex-cli 0.171.0 (x)'\n")
    assert program.version_of(str(path), operator(tmp_path, "codex")) == "0.171.0"
    path = install(tmp_path / "bin", "codex", "#!/bin/sh\nexit 1\n")
    assert program.version_of(str(path), operator(tmp_path, "codex")) is None
