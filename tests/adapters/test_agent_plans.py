"""How the agent CLIs are started: nothing of the repository's, nothing of the user's."""

import json
from pathlib import Path

import pytest

from orchestrator.adapters.base import Plan, Probe
from orchestrator.adapters.process import agent_environment
from orchestrator.adapters.registry import adapter
from tests.support.agents import request

NAMES = ("claude-code", "codex", "gemini")
SECRETS = {
    "ANTHROPIC_API_KEY": "a-key",
    "CODEX_API_KEY": "c-key",
    "GEMINI_API_KEY": "g-key",
    "GITHUB_TOKEN": "t",
    "GH_TOKEN": "t",
    "AWS_SECRET_ACCESS_KEY": "t",
    "SSH_AUTH_SOCK": "/s",
    "GIT_DIR": "/g",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "PATH": "/usr/bin:/bin",
}
OWN_KEY = {"claude-code": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}


def plan(name: str, flags: tuple[str, ...] = (), **said: object) -> Plan:
    return adapter(name).plan(
        request(name, environ=SECRETS, **said),  # type: ignore[arg-type]
        Probe(ok=True, program="/opt/bin/agent", flags=flags),
    )


def after(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_goes_to_standard_input_where_no_process_list_shows_it(name: str) -> None:
    made = plan(name)
    assert made.stdin == b"Look around.\n"
    assert not any("Look around" in word for word in made.argv)
    assert made.argv[0] == "/opt/bin/agent"


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_sees_its_own_key_and_no_other_secret(name: str) -> None:
    seen = agent_environment(plan(name), SECRETS, Path("/private/home"), "dispatch-1")
    strangers = set(SECRETS) - {"PATH", OWN_KEY[name]}
    assert not strangers & set(seen)
    assert seen[OWN_KEY[name]] == SECRETS[OWN_KEY[name]]
    assert seen["HOME"] == "/private/home"


@pytest.mark.parametrize("name", NAMES)
def test_the_roles_model_is_asked_for_and_none_is_left_to_the_program(name: str) -> None:
    assert "some/model-1" in plan(name, model="some/model-1").argv
    without = plan(name, model=None).argv
    assert not {"--model", "-m"} & set(without)


def test_claude_gets_the_cap_as_its_own_budget() -> None:
    assert after(plan("claude-code", budget=0.02).argv, "--max-budget-usd") == "0.020000"
    assert "--max-budget-usd" not in plan("claude-code", budget=None).argv


def test_claude_has_edit_tools_only_and_loads_nothing_of_the_repository() -> None:
    argv = plan("claude-code").argv
    assert after(argv, "--tools") == "Read,Edit,Write,Glob,Grep"
    assert after(argv, "--permission-mode") == "acceptEdits"
    assert {"--setting-sources=", "--strict-mcp-config"} <= set(argv)
    assert "--restricted" not in argv
    assert "--restricted" in plan("claude-code", flags=("--restricted",)).argv


def test_codex_is_sandboxed_and_its_shell_sees_no_key() -> None:
    argv = plan("codex").argv
    assert after(argv, "--sandbox") == "workspace-write"
    assert after(argv, "-C") == "/private/tree"
    assert 'shell_environment_policy.inherit="core"' in argv
    assert {"--ignore-user-config", "--ignore-rules"} <= set(argv)
    assert not any("model_provider" in word for word in argv)


def test_codex_takes_an_openai_key_and_another_address() -> None:
    environ = {"OPENAI_API_KEY": "o-key", "OPENAI_BASE_URL": 'http://127.0.0.1:9/"v1'}
    made = adapter("codex").plan(request("codex", environ=environ), Probe(ok=True, program="/c"))
    assert made.environment["CODEX_API_KEY"] == "o-key"
    provider = next(word for word in made.argv if word.startswith("model_providers.gateway="))
    assert 'base_url="http://127.0.0.1:9/\\"v1"' in provider


def test_gemini_wins_over_the_repositorys_settings_with_its_own(tmp_path: Path) -> None:
    made = plan("gemini", home=tmp_path)
    settings = json.loads(made.home_files[".gemini/settings.json"])
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert settings["hooksConfig"]["enabled"] is False
    place = made.environment["GEMINI_CLI_SYSTEM_SETTINGS_PATH"]
    assert made.home_files[Path(place).relative_to(tmp_path).as_posix()]
    assert after(made.argv, "--allowed-mcp-server-names") == "none"
    assert after(made.argv, "--approval-mode") == "auto_edit"
