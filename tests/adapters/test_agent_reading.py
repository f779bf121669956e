"""Output that no program should print, and HOMEs that no program should leave."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.reading import json_objects, trouble
from orchestrator.adapters.registry import adapter
from orchestrator.adapters.sessions import session_files
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, CostSource, Usage
from tests.support.agents import captured, printed, request

NAMES = ("claude-code", "codex", "gemini")


def result_of(capture: str) -> dict[str, Any]:
    found = json.loads(captured(capture).stdout.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def claude(record: dict[str, Any], code: int = 0) -> tuple[Status, Usage]:
    said = adapter("claude-code").parse(
        printed(json.dumps(record).encode(), code=code), request("claude-code")
    )
    return said.status, said.usage


@pytest.mark.parametrize("name", NAMES)
def test_exit_0_alone_is_no_success(name: str) -> None:
    for stdout in (b"", b"All done!\n", b"{}", b"[]", b'{"type":"result"'):
        found = adapter(name).parse(printed(stdout), request(name))
        assert found.status is Status.BAD_OUTPUT, stdout
        assert found.usage == UNKNOWN_USAGE


@pytest.mark.parametrize("name", NAMES)
def test_a_good_record_with_a_bad_exit_code_is_a_failure(name: str) -> None:
    case = {"claude-code": "claude-stream", "codex": "codex-write", "gemini": "gemini-write"}[name]
    good = captured(case)
    found = adapter(name).parse(printed(good.stdout, b"broken\n", code=3), request(name))
    assert found.status is Status.FAILED
    assert found.usage.tokens_in == 8400
    assert found.error == "it ended with exit code 3: broken"


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=400), code=st.integers(-20, 255))
def test_no_output_whatever_breaks_an_adapter(name: str, data: bytes, code: int) -> None:
    found = adapter(name).parse(printed(data, data, code=code), request(name))
    assert found.status is not Status.OK


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("total_cost_usd", True),
        ("total_cost_usd", -1),
        ("total_cost_usd", "1.50"),
        ("total_cost_usd", None),
        ("total_cost_usd", float("nan")),
    ],
)
def test_dollars_that_are_none_are_computed_from_the_tokens(key: str, value: object) -> None:
    _, usage = claude({**result_of("claude-write-json"), key: value})
    assert usage[:2] == (8400, 300)
    assert usage.cost_usd == pytest.approx(0.0138)
    assert usage.source is CostSource.COMPUTED


def test_tokens_that_are_no_counts_leave_all_of_it_unknown() -> None:
    record = result_of("claude-write-json")
    record["modelUsage"]["claude-sonnet-4-5"]["inputTokens"] = "2000"
    assert claude(record) == (Status.OK, UNKNOWN_USAGE)


def test_an_older_claudes_dollars_for_an_unknown_model_are_a_guess() -> None:
    record = result_of("claude-unknownmodel")
    del record["modelUsage"]["my-gateway-model"]["costBasis"]
    _, usage = claude(record)
    assert usage == Usage(8400, 300, None, CostSource.UNKNOWN)


def test_two_models_of_one_run_are_added_up() -> None:
    record = result_of("claude-write-json")
    models = record["modelUsage"]
    models["claude-haiku-4-5"] = {**models["claude-sonnet-4-5"], "costUSD": 0.001}
    record["total_cost_usd"] = 0.0148
    assert claude(record)[1] == Usage(16800, 600, 0.0148, CostSource.REPORTED)


def test_geminis_stop_of_a_loop_is_no_success() -> None:
    said = json.loads(captured("gemini-write").stdout)
    said["warnings"] = ["Loop detected, stopping execution"]
    stdout = json.dumps(said, indent=2).encode()
    found = adapter("gemini").parse(printed(stdout), request("gemini"))
    assert (found.status, found.usage.tokens_in) == (Status.TURN_LIMIT, 8400)


def test_geminis_failed_tools_are_named_for_a_run_without_changes() -> None:
    said = json.loads(captured("gemini-write").stdout)
    said["stats"]["tools"]["totalFail"], said["stats"]["tools"]["totalSuccess"] = 2, 0
    found = adapter("gemini").parse(printed(json.dumps(said).encode()), request("gemini"))
    assert found.denied == "none of its 2 tool calls succeeded"
    said["stats"]["tools"]["byName"]["write_file"]["decisions"]["reject"] = 1
    found = adapter("gemini").parse(printed(json.dumps(said).encode()), request("gemini"))
    assert found.denied == "it was refused write_file"


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        ("API Error: 401 no", None, Status.AUTH),
        ("Your credit balance is too low", None, Status.AUTH),
        ("scripted", 403, Status.AUTH),
        ("exceeded retry limit, last status: 429 Too Many Requests", None, Status.RATE_LIMITED),
        ("Quota exceeded for quota metric", None, Status.RATE_LIMITED),
        ("scripted", 529, Status.UNAVAILABLE),
        ("We're currently experiencing high demand", None, Status.UNAVAILABLE),
        ("exception TypeError: fetch failed", None, Status.UNAVAILABLE),
        ("it broke, url: http://127.0.0.1:429/v1/responses", None, None),
        ("it read 4290 files", None, None),
        ("no such model", 404, None),
        ("", None, None),
    ],
)
def test_an_errors_words_tell_whose_trouble_it_is(
    words: str, code: int | None, status: Status | None
) -> None:
    assert trouble(words, code) is status


def test_objects_between_other_lines_are_found_and_their_insides_are_not() -> None:
    text = b'Warning: x\n{\n  "a": {\n"b": 1}\n}\n[ERROR] {"c": 2}\n{broken\n{"d": 3}'
    assert json_objects(text) == [{"a": {"b": 1}}, {"c": 2}, {"d": 3}]


def test_session_files_are_read_without_following_or_waiting(tmp_path: Path) -> None:
    folder = tmp_path / ".x" / "sessions"
    (folder / "deep").mkdir(parents=True)
    (folder / "s-2.jsonl").write_text("two")
    (folder / "deep" / "s-1.jsonl").write_text("one")
    (folder / "other.txt").write_text("no")
    os.mkfifo(folder / "s-3.jsonl")
    (folder / "s-4.jsonl").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(folder)
    assert session_files(tmp_path, ".x/sessions", "s-*.jsonl") == [b"one", b"two"]


def test_a_session_folder_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "s-1.jsonl").write_text("one")
    (tmp_path / ".x").symlink_to(elsewhere)
    assert session_files(tmp_path, ".x", "s-*.jsonl") == []
    assert session_files(tmp_path, ".absent", "s-*.jsonl") == []


def test_codex_is_paid_call_by_call_where_its_session_tells(tmp_path: Path) -> None:
    """A price that rises with a prompt's length must not see the whole run as one prompt."""
    sessions = tmp_path / ".codex" / "sessions"
    sessions.mkdir(parents=True)
    lines: list[dict[str, Any]] = [{"type": "turn_context", "payload": {"model": "gpt-5.4"}}]
    for total in (200_000, 400_000, 400_000):
        usage = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": total // 1000}
        payload = {"type": "token_count", "info": {"total_token_usage": usage}}
        lines.append({"type": "event_msg", "payload": payload})
    (sessions / "rollout-1.jsonl").write_text("\n".join(map(json.dumps, lines)))
    final = {"type": "turn.completed", "usage": {"input_tokens": 400_000, "output_tokens": 400}}
    found = adapter("codex").parse(
        printed(json.dumps(final).encode(), home=tmp_path), request("codex", model=None)
    )
    assert found.usage[:2] == (400_000, 400)
    assert found.usage.cost_usd == pytest.approx(2 * 0.503)


@pytest.mark.parametrize(
    ("codes", "denied"),
    [((1,), True), ((1, 2), True), ((1, 0), False), ((0,), False), ((), False)],
)
def test_codex_commands_that_all_failed_are_said_also_when_only_its_session_tells(
    codes: tuple[int, ...], *, denied: bool, tmp_path: Path
) -> None:
    sessions = tmp_path / ".codex" / "sessions"
    sessions.mkdir(parents=True)
    lines = [
        {
            "type": "response_item",
            "payload": {
                "type": "function_call_output",
                "output": f"Chunk ID: 8f52e1\nProcess exited with code {code}\nOutput:\n",
            },
        }
        for code in codes
    ]
    (sessions / "rollout-1.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = captured("codex-readonly").stdout
    found = adapter("codex").parse(printed(done, home=tmp_path), request("codex"))
    words = "none of its commands and changes succeeded"
    assert (found.status, found.denied) == (Status.OK, words if denied else None)
