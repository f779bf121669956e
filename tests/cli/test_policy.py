"""`pause`, `resume` and `schedule`: the policy is changed by people, the program proposes."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.conftest import NOW, Run
from tests.support import repos

POLICY = """\
# What runs here.
schedules:
  # the historian, since 2026
  historian:
    every: "7d"   # weekly
    cost_limit_usd: 5
  scout: {cron: '0 2 * * *', timezone: Europe/Berlin}

roles:
    scout:
        adapter: command   # see docs
        command: [scripts/scout.sh, --deep]
        writes: ["docs/**"]
"""


@pytest.fixture
def policy(clone: Path) -> Path:
    remote = clone.parent / "remote.git"
    repos.commit_files(remote, {"orchestrator.yaml": POLICY}, when=int(NOW.timestamp()) - 60)
    return remote


def _proposed(remote: Path, branch: str) -> str:
    return repos.read(remote, f"policy/{branch}-2026-11-30:orchestrator.yaml")


def test_a_pause_is_one_commit_on_a_branch_that_changes_one_line(
    run: Run, clone: Path, policy: Path
) -> None:
    before = repos.snapshot_user_state(clone)
    ran = run("pause", "historian", "-C", clone)
    assert ran.code == 0
    assert "policy/pause-historian-2026-11-30 is pushed to origin" in ran.out
    wanted = POLICY.replace("usd: 5\n", "usd: 5\n    enabled: false\n")
    assert _proposed(policy, "pause-historian") == wanted
    branch = "refs/heads/policy/pause-historian-2026-11-30"
    assert repos.git(policy, "rev-list", "--count", f"main..{branch}") == "1"
    assert repos.read(policy, "main:orchestrator.yaml") == POLICY
    assert repos.snapshot_user_state(clone) == before


def test_a_pause_counts_once_it_is_merged_and_a_resume_undoes_it(
    run: Run, clone: Path, policy: Path
) -> None:
    run("pause", "historian", "-C", clone)
    repos.fast_forward(policy, "policy/pause-historian-2026-11-30")
    assert run("explain", "historian", "--fetch", "--format", "json", "-C", clone).json["roles"][0][
        "code"
    ] == "disabled"  # fmt: skip
    assert run("resume", "historian", "-C", clone).code == 0
    assert "    enabled: true\n" in _proposed(policy, "resume-historian")


@pytest.mark.parametrize(
    ("arguments", "old", "new"),
    [
        (("historian", "every=1d"), 'every: "7d"   # weekly', 'every: "1d"   # weekly'),
        (("historian", "cost_limit_usd=2.5"), "usd: 5", "usd: 2.5"),
        (("historian", "cost_limit_usd="), "    cost_limit_usd: 5\n", ""),
        (("scout", "timezone=Europe/Paris"), "Berlin", "Paris"),
    ],
)
def test_a_key_is_set_and_nothing_else_moves(
    run: Run, clone: Path, policy: Path, arguments: tuple[str, ...], old: str, new: str
) -> None:
    assert run("schedule", "set", *arguments, "-C", clone).code == 0
    assert _proposed(policy, f"set-{arguments[0]}") == POLICY.replace(old, new)


def test_another_kind_of_timing_replaces_the_one_there_was(
    run: Run, clone: Path, policy: Path
) -> None:
    words = ("cron=0 2 * * MON-FRI", "timezone=Europe/Berlin", "jitter=5m", "overlap=allow")
    assert run("schedule", "set", "historian", *words, "-C", clone).code == 0
    text = _proposed(policy, "set-historian")
    assert "every" not in text
    assert "    cron: 0 2 * * MON-FRI\n" in text
    assert "# the historian, since 2026\n" in text


def test_a_schedule_is_made_and_removed(run: Run, clone: Path, policy: Path) -> None:
    assert run("schedule", "set", "nightly", "cron=@daily", "-C", clone).code == 0
    assert "  nightly:\n    cron: '@daily'\n" in _proposed(policy, "set-nightly")
    assert run("schedule", "delete", "scout", "-C", clone).code == 0
    text = _proposed(policy, "delete-scout")
    assert "scout: {cron" not in text
    assert "adapter: command   # see docs" in text


def test_print_shows_the_change_and_writes_nothing(run: Run, clone: Path, policy: Path) -> None:
    run("explain", "--fetch", "-C", clone)
    before = repos.digest_everything(clone), repos.refs(policy)
    ran = run("pause", "historian", "--print", "-C", clone)
    assert ran.code == 0
    assert "+    enabled: false\n" in ran.out
    assert [line for line in ran.out.splitlines() if line[0] in "+-"][2:] == ["+    enabled: false"]
    assert (repos.digest_everything(clone), repos.refs(policy)) == before


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("pause", "historia"), 2, 'no role "historia" is scheduled'),
        (("resume", "historian"), 2, "changes nothing"),
        (("schedule", "set", "historian", "every"), 2, "is no key=value"),
        (("schedule", "set", "historian", "every=1w"), 1, "expected an interval"),
        (("schedule", "set", "historian", "cron=0 25 * * *"), 1, "out of range for the hour"),
        (("schedule", "set", "historian", "enabled=no"), 1, "expected true or false"),
        (("schedule", "set", "historian", "jitter=5m"), 1, "only beside `cron` or `interval`"),
        (("schedule", "set", "a b", "every=1d"), 1, "cannot be a role"),
        (("schedule", "delete", "nobody"), 2, "is scheduled"),
    ],
)
def test_a_wrong_edit_is_refused_before_anything_is_written(
    run: Run, clone: Path, policy: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    before = repos.refs(policy)
    ran = run(*arguments, "-C", clone)
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert repos.refs(policy) == before


def test_a_branch_that_exists_is_left_alone(run: Run, clone: Path, policy: Path) -> None:
    assert run("pause", "historian", "-C", clone).code == 0
    before = repos.refs(policy)
    later = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
    ran = run("pause", "historian", "-C", clone, now=later)
    assert ran.code == 1
    assert "exists already" in ran.err
    assert repos.refs(policy) == before


def test_a_policy_that_is_refused_whole_is_not_edited(run: Run, clone: Path, policy: Path) -> None:
    repos.commit_files(policy, {"orchestrator.yaml": "schedules: {a: &x {every: 7d}}\n"})
    ran = run("pause", "a", "-C", clone)
    assert ran.code == 1
    assert "the whole file is refused" in ran.err


def test_without_a_remote_the_branch_is_made_here(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "alone", {"orchestrator.yaml": POLICY})
    assert run("schedule", "set", "scout", "cron=@weekly", "-C", path).code == 0
    assert "cron: '@weekly'" in _proposed(path, "set-scout")
    assert (
        run("pause", "scout", "-C", path, "--format", "json").json["branch"].startswith("policy/")
    )
