"""`init` and `schema`: files that are right as they are printed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from orchestrator.cli.init import SCHEDULERS, template
from orchestrator.configfile import read_config
from orchestrator.markerfile import render_marker
from orchestrator.model.config import ScheduleEntry
from orchestrator.model.marker import Marker
from orchestrator.model.names import SweepName
from orchestrator.model.usage import FREE
from orchestrator.report.schemas import schema_text
from tests.cli.conftest import NOW, Run
from tests.support import repos


def test_init_writes_a_policy_that_is_right_and_is_not_written_twice(run: Run, alone: Path) -> None:
    (alone / "deeper").mkdir()
    ran = run("init", "-C", alone / "deeper")
    written = alone / "orchestrator.yaml"
    assert ran.code == 0
    assert f"wrote {written}" in ran.out
    for words in ("git commit", "orchestrator explain", "tick --quiet"):
        assert words in ran.out
    assert max(len(line) for line in ran.out.splitlines() if str(alone) not in line) <= 80
    assert run("check", written).out == f"{written}: 1 schedule, no problems\n"
    before = written.read_bytes()
    again = run("init", "-C", alone)
    assert again.code == 1
    assert "exists already" in again.err
    assert written.read_bytes() == before


def test_init_does_not_follow_a_dangling_link(run: Run, alone: Path, tmp_path: Path) -> None:
    (alone / "orchestrator.yaml").symlink_to(tmp_path / "elsewhere")
    assert run("init", "-C", alone).code == 1
    assert not (tmp_path / "elsewhere").exists()


def test_init_prints_and_writes_nothing_when_asked_to(run: Run, alone: Path) -> None:
    ran = run("init", "--print", "-C", alone)
    assert ran.out == template("orchestrator.yaml")
    assert not (alone / "orchestrator.yaml").exists()


def test_init_works_outside_of_any_repository_and_refuses_a_bare_one(
    run: Run, tmp_path: Path
) -> None:
    assert run("init", "-C", tmp_path).code == 0
    assert (tmp_path / "orchestrator.yaml").exists()
    bare = repos.bare_remote(tmp_path / "bare.git")
    assert run("init", "-C", bare).code == 2
    assert run("init", "-C", tmp_path / "nowhere").code == 2


def test_the_policy_is_ten_to_twenty_five_lines_and_schedules_the_historian() -> None:
    text = template("orchestrator.yaml")
    config = read_config(text.encode())
    assert config.problems == ()
    assert list(config.schedules) == ["historian"]
    assert 10 <= len(text.splitlines()) <= 25


def test_the_policys_commented_example_is_right_too() -> None:
    """Whoever removes the comment signs of the keys gets a policy without problems."""
    lines = template("orchestrator.yaml").splitlines()
    start = lines.index("# roles:")
    kept = [line.replace("    # ", "    ", 1) for line in lines[3:start] if "    # " in line[:6]]
    example = [line.removeprefix("# ") for line in lines[start:]]
    config = read_config("\n".join([*lines[:5], *kept, *example, ""]).encode())
    assert config.problems == ()
    assert list(config.roles) == ["historian"]
    entry = config.schedules["historian"]
    assert isinstance(entry, ScheduleEntry)
    assert (entry.cost_limit_usd, entry.enabled) == (5, False)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_schedulers_file_has_no_gap_left_and_fits_100_columns(
    run: Run, alone: Path, scheduler: str
) -> None:
    ran = run("init", "--with", scheduler, "-C", alone)
    assert ran.code == 0
    assert not [
        w for w in ("@PROGRAM", "@REPO", "@PATH", "@HOME", "@USER", "@VERSION") if w in ran.out
    ]
    comments = [
        line for line in ran.out.splitlines() if line.startswith("#") and str(alone) not in line
    ]
    assert max(map(len, comments)) <= 100


def test_the_crontab_has_one_job_with_absolute_paths_and_says_nothing_when_resting(
    run: Run, tmp_path: Path
) -> None:
    odd = repos.make_repo(tmp_path / "100% odd", {"a": "b"})
    lines = run("init", "--with", "cron", "-C", odd).out.splitlines()
    assert len(lines) <= 10
    settings = dict(line.split("=", 1) for line in lines if "=" in line and line[0].isupper())
    assert set(settings) == {"HOME", "PATH", "MAILTO"}
    assert all(folder.startswith("/") for folder in settings["PATH"].split(":"))
    minute, hour, day, month, weekday, command = lines[-1].split(" ", 5)
    assert (minute, hour, day, month, weekday) == ("*/15", "*", "*", "*", "*")
    assert command.startswith("/")
    assert command.endswith(rf" -C '{tmp_path}/100\% odd' tick --quiet")


def _units(text: str, folder: Path) -> list[Path]:
    """Split what is printed into the two files it names."""
    found, lines = [], text.splitlines()
    heads = [n for n, line in enumerate(lines) if line.startswith("# ~/.config/systemd/user/")]
    for start, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        path = folder / lines[start].rsplit("/", 1)[1]
        path.write_text("\n".join(lines[start:end]) + "\n", "utf-8")
        found.append(path)
    return found


def test_systemd_finds_nothing_wrong_with_the_units(run: Run, tmp_path: Path) -> None:
    odd = repos.make_repo(tmp_path / "100% o$d", {"a": "b"})
    units = _units(run("init", "--with", "systemd", "-C", odd).out, tmp_path)
    assert [u.name for u in units] == ["orchestrator.service", "orchestrator.timer"]
    service = units[0].read_text("utf-8")
    assert f'-C "{tmp_path}/100%% o$$d" tick --quiet\n' in service
    verifier = shutil.which("systemd-analyze")
    if verifier is not None:  # only some machines have it; the text above is checked on all
        done = subprocess.run(
            [verifier, "--user", "verify", *map(str, units)],
            env={**repos.environment(), "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        about_units = [line for line in done.stderr.splitlines() if "orchestrator." in line]
        assert about_units == []


def _yaml(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_the_github_workflow_may_push_branches_and_nothing_else(run: Run) -> None:
    workflow = _yaml(run("init", "--with", "github-actions").out)
    assert workflow["permissions"] == {"contents": "write"}
    assert workflow["concurrency"]["cancel-in-progress"] is False
    assert set(workflow["on"]) == {"schedule", "workflow_dispatch"}
    (job,) = workflow["jobs"].values()
    assert job["timeout-minutes"] > 60
    tick = job["steps"][-1]
    assert tick["run"] == "orchestrator tick"
    assert tick["env"]["GIT_COMMITTER_NAME"] == "github-actions[bot]"


def test_the_gitlab_job_runs_on_schedules_alone(run: Run) -> None:
    pipeline = _yaml(run("init", "--with", "gitlab-ci").out)
    (job,) = pipeline.values()
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule"'}]
    assert job["resource_group"] == "orchestrator"
    assert job["script"][-1] == "orchestrator tick"


def _config_validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(schema_text("config")))


@pytest.mark.parametrize(
    "policy",
    [
        template("orchestrator.yaml"),
        "",
        "schedules:\n",
        "schedules: {a.b-c_1: {every: ' 07d ', cost_limit_usd: null, enabled: false}}",
        "roles: {scout: {adapter: command, command: [scripts/x, --deep], timeout: 45m}}",
        "roles: {scout: {writes: ['docs/**', '**/*.md', '.github/x'], instructions: a/.b}}",
    ],
)
def test_a_policy_without_errors_is_valid_in_editors_too(policy: str) -> None:
    assert read_config(policy.encode()).errors == ()
    _config_validator().validate(_yaml(policy))


@pytest.mark.parametrize(
    "policy",
    [
        "schedules: []",
        "schedules: {historian: 7d}",
        "schedules: {historian: {}}",
        "schedules: {historian: {every: 7}}",
        "schedules: {historian: {every: 0d}}",
        "schedules: {historian: {every: 1w}}",
        "schedules: {historian: {every: 1h30m}}",
        "schedules: {historian: {every: 7d, enabled: 'no'}}",
        "schedules: {historian: {every: 7d, enabled: null}}",
        "schedules: {historian: {every: 7d, cost_limit_usd: -1}}",
        "schedules: {historian: {every: 7d, cost_limit_usd: '5'}}",
        "schedules: {historian: {every: 7d, cost_limit_usd: true}}",
        "schedules: {historian: {every: 7d, budget: 5}}",
        "schedules: {a..b: {every: 7d}}",
        "schedules: {a.LOCK: {every: 7d}}",
        "schedules: {-a: {every: 7d}}",
        f"schedules: {{{'a' * 101}: {{every: 7d}}}}",
        "roles: {scout: {adapter: command}}",
        "roles: {scout: {command: [x]}}",
        "roles: {scout: {adapter: command, command: []}}",
        "roles: {scout: {adapter: command, command: run}}",
        "roles: {scout: {model: -x}}",
        "roles: {scout: {instructions: ../x}}",
        "roles: {scout: {instructions: a/../x}}",
        "roles: {scout: {instructions: /etc/passwd}}",
        "roles: {scout: {writes: 'docs/**'}}",
        "roles: {scout: {writes: ['~/x']}}",
        "roles: {scout: {writes: ['a//b']}}",
    ],
)
def test_what_check_refuses_editors_refuse_too(policy: str) -> None:
    assert read_config(policy.encode()).errors != ()
    assert not _config_validator().is_valid(_yaml(policy))


def test_a_marker_as_written_matches_its_schema() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(schema_text("marker")))
    marker = Marker(
        sweep=SweepName.on("historian", NOW),
        every="7d",
        at=NOW,
        covering_since=None,
        adapter="builtin",
        model=None,
        cost_limit_usd=5,
    )
    for made in (marker, marker.closed(FREE, None), marker.closed(FREE, "timeout: 60 min")):
        validator.validate(_untimed(render_marker(made)))


def _untimed(data: bytes) -> dict[str, Any]:
    """The marker as JSON would hold it: times are text."""
    from orchestrator.yamlio import parse
    from orchestrator.yamlnode import Mapping, Scalar

    root = parse(data)
    assert isinstance(root, Mapping)
    return {k.text: v.value for k, v in root.items if isinstance(v, Scalar)}


@pytest.mark.parametrize("kind", ["config", "marker", "explain", "tick", "status", "check"])
def test_schema_prints_each_schema(run: Run, kind: str) -> None:
    ran = run("schema", "--of", kind)
    assert (ran.code, ran.out, ran.err) == (0, schema_text(kind), "")
    assert run("schema").out == schema_text("config")


def test_the_program_of_a_schedulers_file_can_be_started() -> None:
    from orchestrator.cli.init import program_command

    program = program_command()
    assert Path(program[0]).is_absolute()
    assert program == (sys.executable, "-m", "orchestrator") or program[0].endswith("/orchestrator")
