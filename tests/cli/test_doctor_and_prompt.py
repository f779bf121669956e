"""`doctor` and `prompt` as they are called."""

from pathlib import Path

from tests.cli.conftest import Run
from tests.support import repos


def test_doctor_prints_a_line_for_each_check(clone: Path, run: Run) -> None:
    ran = run("doctor", "-C", clone)
    lines = ran.out.splitlines()
    assert ran.code == 0, ran
    assert "ok       branches: a branch under run/ was created on origin and deleted again" in lines
    assert any(line.startswith("warning  identity: ") for line in lines)
    quiet = run("doctor", "-C", clone, "--quiet").out.splitlines()
    assert quiet == [line for line in lines if not line.startswith("ok ")]


def test_doctor_in_json_says_the_same(clone: Path, run: Run) -> None:
    document = run("doctor", "-C", clone, "--format", "json").json
    assert (document["version"], document["exit_code"]) == (1, 0)
    assert {"check", "level", "message", "hint"} == set(document["findings"][0])
    assert "agent of historian" in [f["check"] for f in document["findings"]]


def test_doctor_where_nothing_can_be_read_exits_3(tmp_path: Path, run: Run) -> None:
    ran = run("doctor", "-C", tmp_path)
    assert ran.code == 3
    assert ran.out.startswith("error    repository: ")


def test_prompt_prints_the_instructions_and_limits_and_changes_nothing(
    clone: Path, run: Run
) -> None:
    before = repos.refs(clone)
    ran = run("prompt", "historian", "-C", clone)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("# Historian\n")
    assert "runs/historian-2026-11-30/docs-delta.md" in ran.out
    assert "- `docs/**`" in ran.out
    assert repos.refs(clone) == before


def test_prompt_of_an_unknown_role_is_wrong_usage(clone: Path, run: Run) -> None:
    ran = run("prompt", "historain", "-C", clone)
    assert ran.code == 2
    assert "did you mean historian?" in ran.err
