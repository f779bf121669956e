"""Every report, whole, as people and programs see it; and the schemas programs may rely on."""

import json
import re
from typing import Any

import jsonschema
import pytest

from orchestrator.errors import RemoteUnreachableError
from orchestrator.report.json import bug_json, error_json
from orchestrator.report.layout import columns
from orchestrator.report.schemas import DIALECT, document_schema, schema_text
from tests.report.golden import FOLDER, GOLDEN

_STYLE = re.compile("\x1b\\[[0-9;]*m")
# Reports whose lines are read, not searched or copied: these keep to the terminal's width.
_FITTING = sorted(n for n in GOLDEN if n.startswith(("explain", "status")) and n.endswith(".txt"))


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_what_is_printed_is_what_was_reviewed(name: str) -> None:
    """When this fails on purpose: scripts/regen, then read the difference."""
    assert GOLDEN[name]() == (FOLDER / name).read_text("utf-8")


def test_every_reviewed_file_is_compared() -> None:
    assert {p.name for p in FOLDER.iterdir()} == set(GOLDEN)


@pytest.mark.parametrize("name", _FITTING)
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    width = 100 if name.endswith("100.txt") else 80
    lines = _STYLE.sub("", GOLDEN[name]()).splitlines()
    assert [line for line in lines if columns(line) > width] == []


@pytest.mark.parametrize("name", sorted(n for n in GOLDEN if n.endswith(".txt")))
def test_text_has_no_trailing_space_and_ends_with_one_newline(name: str) -> None:
    text = GOLDEN[name]()
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("kind", ["explain", "tick", "status", "check"])
def test_a_document_matches_its_own_schema(kind: str) -> None:
    schema = document_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(GOLDEN[f"{kind}.json"]()))
    failure = RemoteUnreachableError("origin did not answer in 60 s", "try again later")
    validator.validate(json.loads(error_json(failure)))
    validator.validate(json.loads(bug_json("this is a bug", "report it")))
    assert not validator.is_valid({"version": 1})


@pytest.mark.parametrize("kind", ["config", "marker", "explain", "tick", "status", "check"])
def test_a_schema_says_its_dialect_and_its_title(kind: str) -> None:
    schema = json.loads(schema_text(kind))
    assert schema["$schema"] == DIALECT
    assert schema["title"]
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_document_of_explain_has_its_keys_in_the_agreed_order() -> None:
    document: dict[str, Any] = json.loads(GOLDEN["tick.json"]())
    agreed = ["version", "now", "repository", "config", "roles"]
    assert list(document) == [*agreed, "notes", "mended", "error"]
    assert list(document["repository"]) == ["path", "remote", "default_branch", "tip"]
    assert list(document["config"]) == ["path", "commit", "present", "problems"]
    problem = ["code", "message", "hint", "line", "column", "key"]
    assert list(document["config"]["problems"][0])[:6] == problem
    for role in document["roles"]:
        assert list(role) == [
            *("role", "rule", "action", "code", "reason", "due_at", "state", "checks", "error"),
            *("sweep", "unblock", "warnings"),
        ]
    (swept,) = (r["sweep"] for r in document["roles"] if r["role"] == "sweeper")
    assert list(swept) == [
        *("slug", "branch", "intent", "closing", "status", "tokens_in", "tokens_out"),
        *("cost_usd", "failed"),
    ]


def test_state_is_null_unless_a_sweep_is_open() -> None:
    document = json.loads(GOLDEN["tick.json"]())
    assert {r["state"] for r in document["roles"] if r["rule"] != "S1"} == {None}
    assert {r["state"] for r in document["roles"] if r["rule"] == "S1"} == {
        *("awaiting_review", "in_flight", "failed", "unpublished"),
    }


def test_unknown_usage_stays_null() -> None:
    document = json.loads(GOLDEN["tick.json"]())
    (sweep,) = (r["sweep"] for r in document["roles"] if r["role"] == "timed")
    assert (sweep["tokens_in"], sweep["tokens_out"], sweep["cost_usd"]) == (None, None, None)
