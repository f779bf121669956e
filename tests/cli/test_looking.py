"""`explain`, `status` and `check` on real repositories: what they say, and that they only look."""

import io
import sys
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from orchestrator.report.schemas import document_schema
from tests.cli.conftest import NOW, POLICY, Run
from tests.support import repos

MARKER = """\
sweep: historian-2026-11-29
role: historian
every: 7d
at: 2026-11-29T02:00:00Z
covering_since: null
adapter: builtin
model: null
cost_limit_usd: null
tokens_in: 1234
tokens_out: 56
cost_usd: 0.0123
"""
MARKER_PATH = "runs/historian-2026-11-29/sweep.yaml"


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """A repository of its own whose historian swept yesterday."""
    files = {"orchestrator.yaml": POLICY, MARKER_PATH: MARKER}
    return repos.make_repo(tmp_path / "swept", files)


def test_explain_names_rule_evidence_and_the_next_time(run: Run, swept: Path) -> None:
    ran = run("explain", "-C", swept)
    tip = repos.tip(swept)[:9]
    assert ran.code == 0
    assert ran.err == ""
    assert f"orchestrator.yaml from main @ {tip}" in ran.out
    assert "historian rests: not due until 2026-12-06T02:00:00Z, in 6 d (S2)" in ran.out
    assert f"{MARKER_PATH} @ {tip}" in ran.out
    assert f"orchestrator.yaml:3 @ {tip}, every: 7d" in ran.out
    assert "To change it: time alone does" in ran.out


def test_explain_quiet_is_one_line_a_role(run: Run, swept: Path) -> None:
    ran = run("explain", "-C", swept, "--quiet")
    assert ran.out == "historian rests: not due until 2026-12-06T02:00:00Z, in 6 d (S2)\n"


@pytest.mark.parametrize(
    "at",
    [
        "2026-12-06T02:00:00Z",
        "2026-12-06T03:00+01:00",
        "2026-12-06 02:00",
        "2026-12-06T02:00:00.5Z",
    ],
)
def test_explain_at_asks_about_another_clock(run: Run, swept: Path, at: str) -> None:
    ran = run("explain", "-C", swept, "--at", at, "--format", "json")
    assert ran.json["now"] == "2026-12-06T02:00:00Z"
    assert ran.json["roles"][0]["code"] == "due"


@pytest.mark.parametrize("at", ["tomorrow", "20261206", "2026-W49-1", "2026-02-30", ""])
def test_a_time_that_is_none_is_wrong_usage(run: Run, swept: Path, at: str) -> None:
    ran = run("explain", "-C", swept, "--at", at)
    assert ran.code == 2
    assert "--at expects a time" in ran.err


def test_explain_reads_a_policy_that_is_not_merged_yet(run: Run, swept: Path) -> None:
    files = {"orchestrator.yaml": POLICY.replace("7d", "1d")}
    repos.commit_files(swept, files, branch="faster", start="main")
    assert run("explain", "-C", swept, "--format=json").json["roles"][0]["code"] == "not_due"
    ran = run("explain", "-C", swept, "--config-ref", "faster")
    assert "historian is due" in ran.out
    assert f"orchestrator.yaml @ {repos.tip(swept, 'faster')[:9]}, which is not the tip" in ran.out


def test_explain_says_when_the_policy_is_only_in_the_working_tree(run: Run, alone: Path) -> None:
    assert "`orchestrator init` writes one" in run("explain", "-C", alone).out
    (alone / "orchestrator.yaml").write_text(POLICY, "utf-8")
    ran = run("explain", "-C", alone)
    assert ran.code == 0
    assert "your working tree has orchestrator.yaml: commit it and merge it" in ran.out


def test_explain_fetches_only_when_told(run: Run, clone: Path, tmp_path: Path) -> None:
    repos.commit_files(tmp_path / "remote.git", {"orchestrator.yaml": "schedules:\n"})
    assert run("explain", "-C", clone, "--format=json").json["roles"] != []
    assert run("explain", "-C", clone, "--format=json", "--fetch").json["roles"] == []


def test_a_remote_that_does_not_answer_exits_3(run: Run, clone: Path, tmp_path: Path) -> None:
    (tmp_path / "remote.git").rename(tmp_path / "gone.git")
    ran = run("explain", "-C", clone, "--fetch", "--format=json")
    assert ran.code == 3
    assert ran.json["error"]["code"] in ("remote_unreachable", "cannot_look")


def test_a_broken_marker_is_an_error_with_its_place(run: Run, swept: Path) -> None:
    repos.commit_files(swept, {MARKER_PATH: MARKER.replace("at: 2026-11-29T02:00:00Z", "at: soon")})
    for verb in ("explain", "status", "check"):
        ran = run(verb, "-C", swept)
        assert ran.code == 1
        assert f"{MARKER_PATH}:4:5" in ran.out


def test_status_is_a_table_with_what_the_last_sweep_cost(run: Run, swept: Path) -> None:
    ran = run("status", "-C", swept, "--quiet")
    assert ran.out == (
        "ROLE       STATE    LAST MERGED    TOKENS     COST  NEXT DUE\n"
        "historian  resting  2026-11-29   1,234/56  $0.0123  in 6 d\n"
    )


def test_status_in_json_matches_its_schema(run: Run, swept: Path) -> None:
    document = run("status", "-C", swept, "--format", "json").json
    jsonschema.Draft202012Validator(document_schema("status")).validate(document)
    (role,) = document["roles"]
    assert (role["state"], role["due_at"]) == ("resting", "2026-12-06T02:00:00Z")
    assert role["last"] == {
        "slug": "historian-2026-11-29",
        "at": "2026-11-29T02:00:00Z",
        "tokens_in": 1234,
        "tokens_out": 56,
        "cost_usd": 0.0123,
        "failed": None,
    }


def test_status_shows_an_open_sweep_made_by_other_hands(run: Run, swept: Path) -> None:
    files = {"runs/historian-2026-11-30/sweep.yaml": "at: 2026-11-30T00:00:00Z\ntokens_in: 5\n"}
    repos.commit_files(swept, files, branch="run/historian-2026-11-30", start="main")
    later = NOW + timedelta(days=30)
    ran = run("status", "-C", swept, now=later)
    assert "historian  awaiting review  2026-11-29" in ran.out
    assert "historian: run/historian-2026-11-30 awaiting review" in ran.out


@pytest.mark.parametrize("verb", ["explain", "status", "check"])
def test_looking_changes_not_one_byte(run: Run, clone: Path, verb: str) -> None:
    before = repos.digest_everything(clone)
    assert run(verb, "-C", clone).code == 0
    assert repos.digest_everything(clone) == before


@pytest.mark.parametrize("verb", ["explain", "status", "check"])
def test_the_json_of_each_verb_matches_its_schema(run: Run, clone: Path, verb: str) -> None:
    document = run(verb, "-C", clone, "--format", "json").json
    jsonschema.Draft202012Validator(document_schema(verb)).validate(document)


def test_check_sums_up_when_all_is_well(run: Run, clone: Path) -> None:
    ran = run("check", "-C", clone)
    tip = repos.tip(clone)[:9]
    assert ran.out == f"orchestrator.yaml on origin/main @ {tip}: 1 schedule, no problems\n"
    assert run("check", "-C", clone, "--quiet").out == ""


BAD = """\
shedules: {}
schedules:
  historian:
    every: 7 days
    enabeld: true
  scout:
    every: 1d
  spender:
    every: 1d
    cost_limit_usd: 5
  odd:
    every: 1d
roles:
  spender:
    adapter: command
    command: [spend]
  odd:
    adapter: nonsense
"""


def test_check_names_every_problem_by_place_with_its_way_out(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(BAD, "utf-8")
    ran = run("check", file)
    assert ran.code == 1
    lines = [line.removeprefix(str(file)) for line in ran.out.splitlines()]
    starts = [":1:1: warning: ", ":4:12: error: ", ":5:5: error: ", ":6", ":10", ":18"]
    places = [line for line in lines if line.startswith(":") and not line.startswith(": ")]
    assert len(places) == len(starts)
    assert all(p.startswith(s) for p, s in zip(places, starts, strict=True))
    assert places[1].endswith("(schedules.historian.every)")
    assert "    hint: write 7d" in lines
    assert lines[-1] == ": 4 schedules, 5 errors, 1 warning"
    document = run("check", file, "--format=json").json
    jsonschema.Draft202012Validator(document_schema("check")).validate(document)
    assert not document["ok"]
    codes = [p["code"] for p in document["problems"] if p["severity"] == "error"]
    assert codes == [*["config_error"] * 2, "unknown_role", "no_estimate", "config_error"]


def test_check_warnings_alone_are_no_reason_to_fail(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY + "shedules: {}\n", "utf-8")
    ran = run("check", file)
    assert (ran.code, "1 schedule, 1 warning" in ran.out) == (0, True)


def test_check_reads_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for policy, code in ((POLICY, 0), ("schedules: [", 1), (POLICY + "#" * 70_000, 1)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(policy.encode())))
        ran = run("check", "-")
        assert ran.code == code
        assert ran.out.startswith("<stdin>:")


@pytest.mark.parametrize("name", ["absent.yaml", "."])
def test_check_of_what_cannot_be_read_exits_3(run: Run, tmp_path: Path, name: str) -> None:
    ran = run("check", tmp_path / name)
    assert ran.code == 3
    assert "cannot be read" in ran.err


def test_check_falls_back_to_the_working_tree_and_says_so(run: Run, alone: Path) -> None:
    ran = run("check", "-C", alone)
    assert ran.code == 0
    assert "there is no such file, so nothing is scheduled" in ran.out
    (alone / "orchestrator.yaml").write_text("schedules:\n  historian:\n    every: 1w\n", "utf-8")
    (alone / "deeper").mkdir()
    ran = run("check", "-C", alone / "deeper")
    assert ran.code == 1
    assert ran.out.startswith(f"{alone}/orchestrator.yaml:3:12: error: ")
    assert "note: orchestrator.yaml is not on main yet" in ran.out


def test_check_of_a_revision(run: Run, clone: Path) -> None:
    files = {"orchestrator.yaml": POLICY.replace("7d", "0d")}
    repos.commit_files(clone, files, branch="worse", start="main")
    assert run("check", "-C", clone).code == 0
    ran = run("check", "-C", clone, "--ref", "worse")
    assert ran.code == 1
    assert f"orchestrator.yaml on worse @ {repos.tip(clone, 'worse')[:9]}" in ran.out
    assert run("check", "-C", clone, "--ref", "nowhere").code == 3
