"""A dispatched agent: contained, limited, harvested, and paid for to the cent."""

from pathlib import Path

import pytest

from orchestrator.model.status import Status
from orchestrator.outcome import SweepResult
from orchestrator.rules.facts import SweepState
from orchestrator.rules.verdict import Action, Code
from tests.support import repos
from tests.support.world import FILES, World

AGENTS = Path(__file__).parents[1] / "fixtures" / "agents"
PROGRAM = "scripts/agent"


def world_with(tmp_path: Path, agent: str, *, allow: bool = True, **role: str) -> World:
    """A repository whose one role runs the agent of that name, committed beside its code."""
    written = {"command": f"[{PROGRAM}]", "estimate_usd": "0", **role}
    lines = "".join(f"    {key}: {value}\n" for key, value in written.items())
    policy = (
        "schedules:\n  scout:\n    every: 1d\n    cost_limit_usd: 5\n"
        f"roles:\n  scout:\n    adapter: command\n{lines}"
    )
    script = (AGENTS / agent).read_text("utf-8")
    world = World.with_remote(tmp_path, {**FILES, "orchestrator.yaml": policy})
    repos.commit_files(world.shared, {PROGRAM: script}, modes={PROGRAM: 0o100755})
    if allow:
        repos.git(world.home, "config", "--add", "orchestrator.allowCommand", PROGRAM)
    return world


def swept(world: World) -> SweepResult:
    outcome = world.only()
    assert outcome.sweep is not None, outcome.verdict
    return outcome.sweep


def at_branch(world: World, path: str) -> str:
    return repos.read(world.shared, f"{world.today('scout').branch}:{path}")


def marker(world: World) -> str:
    return at_branch(world, world.today("scout").marker_path)


def files_on_branch(world: World) -> set[str]:
    branch = world.today("scout").branch
    return set(repos.git(world.shared, "ls-tree", "-r", "--name-only", branch).splitlines())


WRITES = '["docs/**"]'


def test_an_agents_work_tokens_and_dollars_reach_the_branch(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", writes=WRITES, model="some-model")
    result = swept(world)
    assert (result.status, result.failed) == (Status.OK, None)
    assert "A sentence the agent added." in at_branch(world, "docs/guide.md")
    assert "Delta of scout-2026-11-30" in at_branch(world, "runs/scout-2026-11-30/docs-delta.md")
    assert (
        "adapter: command\nmodel: some-model\ncost_limit_usd: 5\n"
        "tokens_in: 1200\ntokens_out: 340\ncost_usd: 0.42\n"
    ) in marker(world)
    message = repos.git(world.shared, "show", "-s", "--format=%B", world.today("scout").branch)
    assert "1,200 tokens in, 340 out, $0.4200." in message
    assert "Cost-Source: reported" in message


def test_a_program_the_operator_did_not_allow_is_named_and_no_branch_is_made(
    tmp_path: Path,
) -> None:
    world = world_with(tmp_path, "ok", allow=False)
    before = repos.refs(world.shared)
    evaluation = world.tick()
    (outcome,) = evaluation.outcomes
    assert (outcome.verdict.action, outcome.verdict.code) == (
        Action.ERROR,
        Code.AGENT_UNAVAILABLE,
    )
    assert f"git config --add orchestrator.allowCommand {PROGRAM}" in (
        outcome.verdict.unblock or ""
    )
    assert evaluation.exit_code == 1
    assert repos.refs(world.shared) == before


def test_an_agent_that_changed_nothing_leaves_an_intent_and_a_closing(tmp_path: Path) -> None:
    world = world_with(tmp_path, "no-change")
    result = swept(world)
    assert (result.status, result.failed) == (Status.NO_CHANGE, None)
    branch = world.today("scout").branch
    count = repos.git(world.shared, "rev-list", "--count", f"main..{branch}")
    assert count == "2"


@pytest.mark.parametrize(
    ("agent", "status"),
    [
        ("fails", Status.FAILED),
        ("garbage-usage", Status.BAD_OUTPUT),
        ("huge-files", Status.BAD_OUTPUT),
    ],
)
def test_a_run_that_went_wrong_is_closed_as_failed_and_the_tick_exits_1(
    agent: str, status: Status, tmp_path: Path
) -> None:
    world = world_with(tmp_path, agent, writes=WRITES)
    evaluation = world.tick()
    (outcome,) = evaluation.outcomes
    assert outcome.sweep is not None
    assert outcome.sweep.status is status, outcome.sweep
    assert evaluation.exit_code == 1
    assert f"{status}: " in marker(world).partition("failed: ")[2]
    again = world.tick()
    assert again.outcomes[0].verdict.state is SweepState.FAILED
    assert again.exit_code == 0, "the tick that saw it fail has said so"


@pytest.mark.parametrize(
    ("agent", "usage"),
    [
        ("hangs", "tokens_in: 77\ntokens_out: 7\ncost_usd: null\n"),
        ("ignores-sigterm", "tokens_in: null\ntokens_out: null\ncost_usd: null\n"),
    ],
    ids=["told-when-asked-to-end", "killed"],
)
def test_the_time_limit_ends_an_agent_and_what_it_still_said_is_kept(
    agent: str, usage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_with(tmp_path, agent)
    _limit(monkeypatch, 1.0)
    result = swept(world)
    assert result.status is Status.TIMEOUT
    assert usage + "failed: " in marker(world)


def _limit(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A time limit shorter than the minute that a policy can say, and quick steps of the end."""
    from orchestrator import launch
    from orchestrator.adapters import process
    from orchestrator.adapters.containment import Limits

    run = process.run_agent

    def short(*args: object, **said: object) -> object:
        said.update(timeout_s=seconds, limits=Limits(interrupt_s=0.5, terminate_s=0.5))
        return run(*args, **said)  # type: ignore[arg-type]

    monkeypatch.setattr(launch, "run_agent", short)


def test_secrets_an_agent_prints_reach_no_commit_and_no_output(tmp_path: Path) -> None:
    secret = "s3cr3t-value-of-the-key"
    world = world_with(tmp_path, "prints-secrets", writes=WRITES)
    world.environ["AGENT_API_KEY"] = secret
    failing = (AGENTS / "prints-secrets").read_text("utf-8").replace('"auth"', '"failed"')
    repos.commit_files(world.shared, {PROGRAM: failing}, modes={PROGRAM: 0o100755})
    result = swept(world)
    assert result.failed is not None
    branch = world.today("scout").branch
    everything = repos.git(world.shared, "log", "-p", "--format=%B", f"main..{branch}")
    for leaked in (secret, "hunter2", "ghp_AbCdEfGh"):
        assert leaked not in everything
        assert leaked not in result.failed
    assert result.transcript is not None
    for kept in Path(result.transcript).rglob("*"):
        assert kept.stat().st_mode & 0o777 == 0o600
        assert secret not in kept.read_text("utf-8", "replace")


def test_what_an_agent_may_not_change_is_left_out_and_named(tmp_path: Path) -> None:
    world = world_with(tmp_path, "writes-outside", writes='["**"]')
    before = repos.snapshot_user_state(world.home)
    files = {*FILES, PROGRAM}
    result = swept(world)
    branch = world.today("scout")
    assert files_on_branch(world) - files == {"docs/allowed.md", "main.c", branch.marker_path}
    named = {path for path, _ in result.left_out}
    assert {"orchestrator.yaml", branch.marker_path, "docs/passwd.md"} <= named
    message = repos.git(world.shared, "show", "-s", "--format=%B", branch.branch)
    assert "orchestrator.yaml" in message
    assert at_branch(world, "orchestrator.yaml") == repos.read(
        world.shared, "main:orchestrator.yaml"
    )
    assert "cost_usd: null" in marker(world)
    assert repos.snapshot_user_state(world.home) == before
    assert not (tmp_path / "cache" / "orchestrator" / "escape").exists()


def test_the_private_working_copy_is_gone_afterwards(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", writes=WRITES)
    swept(world)
    assert list((tmp_path / "cache" / "orchestrator").iterdir()) == []


def test_the_prompt_holds_the_instructions_the_limits_and_the_findings(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", writes='["**/*.txt"]', instructions="docs/scout.md")
    script = "#!/bin/sh\ncat > heard.txt\n"
    repos.commit_files(
        world.shared,
        {PROGRAM: script, "docs/scout.md": "Look for {role} things.\n"},
        modes={PROGRAM: 0o100755},
    )
    swept(world)
    import json

    heard = json.loads(at_branch(world, "heard.txt"))
    assert heard["version"] == 1
    assert heard["slug"] == "scout-2026-11-30"
    assert heard["branch"] == "run/scout-2026-11-30"
    assert (heard["budget_usd"], heard["timeout_s"]) == (5, 3600)
    assert "Look for scout things." in heard["prompt"]
    assert "`**/*.txt`" in heard["prompt"]
    assert "## Merged" in heard["prompt"]


def test_instructions_that_do_not_exist_close_the_sweep_as_failed(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", instructions="docs/absent.md")
    result = swept(world)
    assert result.failed is not None
    assert "docs/absent.md" in result.failed


def test_a_cap_on_a_priced_role_without_an_estimate_is_an_error(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", estimate_usd="null")
    assert world.only().verdict.code is Code.NO_ESTIMATE


def test_an_estimate_over_the_cap_is_skipped_and_the_tick_exits_1(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", estimate_usd="5.01")
    evaluation = world.tick()
    assert evaluation.outcomes[0].verdict.action is Action.SKIP
    assert evaluation.exit_code == 1


def test_a_file_that_brings_a_credential_is_left_out(tmp_path: Path) -> None:
    world = world_with(tmp_path, "no-change", writes=WRITES)
    world.environ["SOME_API_KEY"] = "s3cr3t-value-of-the-key"
    token = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    old = "ghp_000000000000000000000000000000000000"
    script = (
        "#!/bin/sh\nmkdir -p docs\n"
        "echo 'key: s3cr3t-value-of-the-key' > docs/key.md\n"
        f"echo {token} > docs/token.md\n"
        "echo 'more' >> docs/example.md\n"
    )
    files = {PROGRAM: script, "docs/example.md": f"Such as {old}\n"}
    repos.commit_files(world.shared, files, modes={PROGRAM: 0o100755})
    result = swept(world)
    assert dict(result.left_out) == {
        "docs/key.md": "it holds what looks like a credential",
        "docs/token.md": "it holds what looks like a credential",
    }
    assert at_branch(world, "docs/example.md") == f"Such as {old}\nmore\n"


@pytest.mark.parametrize(
    ("mode", "words"), [(None, "is not a file on"), (0o100644, "is not executable on")]
)
def test_a_program_that_could_not_start_is_found_out_before_the_claim(
    mode: int | None, words: str, tmp_path: Path
) -> None:
    world = world_with(tmp_path, "ok")
    files = {PROGRAM: None if mode is None else "#!/bin/sh\n"}
    repos.commit_files(world.shared, files, modes={PROGRAM: mode or 0})
    before = repos.refs(world.shared)
    outcome = world.only()
    assert outcome.verdict.code is Code.AGENT_UNAVAILABLE
    assert words in outcome.verdict.reason
    assert repos.refs(world.shared) == before


def test_explain_warns_of_an_agent_that_could_not_be_started_here(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", allow=False)
    verdict = world.explain(fetch=True).verdict
    assert verdict.code is Code.DUE
    assert "orchestrator.allowCommand" in " ".join(verdict.warnings)


def test_a_moved_folder_may_touch_more_files_than_an_agent_could(tmp_path: Path) -> None:
    pages = {f"docs/p{n}.md": f"[g](g/g.md) {'x' * 40_000}\n" for n in range(120)}
    world = World.with_remote(tmp_path, {**FILES, **pages, "docs/g/g.md": "# G\n"})
    assert swept(world).failed is None
    world.merge(world.today())
    world.wait(days=7)
    moved = {"docs/g/g.md": None, "docs/h/g.md": "# G\n"}
    repos.commit_files(world.shared, moved, when=int(world.now.timestamp()) - 60)
    assert swept(world).failed is None
    branch = world.today().branch
    assert repos.read(world.shared, f"{branch}:docs/p7.md").startswith("[g](h/g.md)")


def test_a_sweep_that_cost_more_than_its_cap_says_so_now_and_when_the_next_is_due(
    tmp_path: Path,
) -> None:
    world = world_with(tmp_path, "ok")
    costly = '#!/bin/sh\necho \'{"status": "ok", "cost_usd": 100}\'\n'
    repos.commit_files(world.shared, {PROGRAM: costly}, modes={PROGRAM: 0o100755})
    assert "over the cap of $5" in (swept(world).note or "")
    world.merge(world.today("scout"))
    world.wait(days=1)
    verdict = world.explain(fetch=True).verdict
    assert "cost $100, over the cap of $5" in " ".join(verdict.warnings)


def test_a_role_says_how_much_its_agent_may_change(tmp_path: Path) -> None:
    world = world_with(tmp_path, "ok", writes=WRITES, max_bytes="5")
    result = swept(world)
    assert result.status is Status.BAD_OUTPUT
    assert result.failed is not None
    assert "more than 5 bytes" in result.failed
    assert "`max_bytes`" in result.failed
    assert "A sentence the agent added." not in at_branch(world, "docs/guide.md")
