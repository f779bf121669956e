"""Is everything there that a tick needs? Tried out, and nothing of it left behind."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.doctor import Examined, Finding, Level, examine
from orchestrator.errors import ExitCode
from tests.adapters.test_program import HELP
from tests.support import repos
from tests.support.world import FILES, World

LONG_AFTER = datetime(2026, 11, 30, 2, tzinfo=UTC)
CLAUDE = (
    "schedules:\n  scout:\n    every: 1d\n"
    "roles:\n  scout:\n    adapter: claude-code\n    model: {model}\n    estimate_usd: 1\n"
)


def looked(world: World) -> Examined:
    before = repos.refs(world.shared), repos.refs(world.home)
    found = examine(world.settings(), world.now)
    assert (repos.refs(world.shared), repos.refs(world.home)) == before, "a ref was left or lost"
    return found


def one(found: Examined, check: str) -> Finding:
    (finding,) = (f for f in found.findings if f.check == check)
    return finding


def claude_world(root: Path, model: str = "claude-sonnet-4-5") -> World:
    world = World.with_remote(root, {**FILES, "orchestrator.yaml": CLAUDE.format(model=model)})
    program = root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\ncase $1 in --version) echo 2.1.0;; *) echo '{HELP['claude-code']}';; esac\n"
    )
    program.chmod(0o755)
    world.environ |= {"PATH": f"{root}/bin:/usr/bin:/bin", "ANTHROPIC_API_KEY": "k" * 20}
    return world


@pytest.mark.parametrize("remote", [True, False], ids=["remote", "alone"])
def test_all_is_well_and_every_check_has_its_line(*, remote: bool, tmp_path: Path) -> None:
    world = (World.with_remote if remote else World.alone)(tmp_path)
    world.tick() if remote else None
    found = looked(world)
    assert found.exit_code is ExitCode.OK
    assert {f.level for f in found.findings} == {Level.OK}
    checks = [f.check for f in found.findings]
    assert checks == [
        "remote", "default branch", "run branch", "branches", "identity", "clock", "policy",
        "agent of historian",
    ]  # fmt: skip


def test_a_server_that_refuses_branches_is_found_before_a_sweep_is_due(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    hook = world.shared / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'run/* is protected' >&2\nexit 1\n")
    hook.chmod(0o755)
    found = looked(world)
    assert found.exit_code is ExitCode.ATTENTION
    assert "run/* is protected" in one(found, "branches").said


def test_a_branch_that_may_be_made_and_not_deleted_is_named_with_its_cure(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    repos.git(world.shared, "config", "receive.denyDeletes", "true")
    found = examine(world.settings(), world.now)
    finding = one(found, "branches")
    assert finding.level is Level.ERROR
    (left,) = [ref for ref in repos.refs(world.shared) if "probe-" in ref]
    assert f"--delete {left.removeprefix('refs/heads/')}" in (finding.hint or "")


def test_a_branch_called_run_is_an_error_and_no_probe_is_tried(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    repos.git(world.shared, "branch", "run", "main")
    found = looked(world)
    assert one(found, "run branch").level is Level.ERROR
    assert "branches" not in {f.check for f in found.findings}


def test_an_unreadable_remote_ends_it_with_3(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    repos.git(world.home, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    found = examine(world.settings(), world.now)
    assert found.exit_code is ExitCode.CANNOT_LOOK
    assert found.findings[-1].level is Level.ERROR


def test_a_clock_behind_the_remotes_commits_is_an_error(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    newest = datetime.fromtimestamp(repos.WHEN, UTC)
    world.now = newest - timedelta(minutes=1)
    assert one(looked(world), "clock").level is Level.OK
    world.now = newest - timedelta(minutes=10)
    assert one(looked(world), "clock").level is Level.ERROR


def test_a_missing_identity_is_a_warning(tmp_path: Path) -> None:
    world = World.with_remote(tmp_path)
    world.environ = {k: v for k, v in world.environ.items() if not k.startswith("GIT_COMMITTER")}
    found = looked(world)
    assert one(found, "identity").level is Level.WARNING
    assert found.exit_code is ExitCode.OK


def test_a_broken_policy_and_an_absent_one_are_told_apart(tmp_path: Path) -> None:
    broken = World.with_remote(tmp_path / "a", {"orchestrator.yaml": "schedules: 7\n"})
    assert one(looked(broken), "policy").level is Level.ERROR
    absent = World.with_remote(tmp_path / "b", {"README.md": "# App\n"})
    assert one(looked(absent), "policy").level is Level.WARNING


def test_an_agents_program_version_flags_and_key_are_asked_for(tmp_path: Path) -> None:
    world = claude_world(tmp_path)
    finding = one(looked(world), "agent of scout")
    assert (finding.level, "2.1.0" in finding.said) == (Level.OK, True)
    world.environ["ANTHROPIC_API_KEY"] = ""
    found = looked(world)
    assert "has no credentials here" in one(found, "agent of scout").said
    assert found.exit_code is ExitCode.ATTENTION


def test_a_model_without_a_price_is_a_warning(tmp_path: Path) -> None:
    found = looked(claude_world(tmp_path, "my-gateway-model"))
    warning = found.findings[-1]
    assert warning.level is Level.WARNING
    assert "no price is known for the model my-gateway-model" in warning.said
    assert found.exit_code is ExitCode.OK
