"""What others wrote is shown without escapes, without secrets and without surprises in length."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.text import MASK, one_line, printable, redact, safe_line

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9Plf"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\nAAAA\n-----END RSA PRIVATE KEY-----"


def test_colours_titles_links_and_the_clipboard_are_stripped() -> None:
    hostile = "\x1b[31mred\x1b[0m \x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]52;c;ZXZpbA==\x07c\x9b2Jd\x1bMe"
    assert printable(hostile) == "red abcde"


def test_an_escape_without_an_end_hides_nothing_that_follows() -> None:
    assert "visible" in printable("\x1b]0;visible for ever")


def test_bidirectional_marks_and_zero_width_characters_are_dropped() -> None:
    assert printable("a\u202eb\u200bc\u2066d\ufeff") == "abcd"


def test_bytes_that_were_not_utf8_show_as_replacement_characters() -> None:
    assert printable(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\ufffd"


def test_line_ends_of_every_kind_are_newlines_or_spaces() -> None:
    text = "a\r\nb\rc\u2028d\x85e\tf"
    assert printable(text) == "a\nb\nc\nd\ne f"
    assert printable(text, one_line=True) == "a b c d e f"


@given(st.text())
def test_whatever_the_text_nothing_of_category_c_is_left(text: str) -> None:
    shown = printable(text, one_line=True)
    assert not [c for c in shown if unicodedata.category(c).startswith("C")]
    assert printable(text).replace("\n", " ") == shown


@given(st.text(), st.integers(0, 40))
def test_one_line_never_exceeds_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_a_cut_line_says_so() -> None:
    assert one_line("one two three", 8) == "one two…"
    assert one_line("  one \n two ", 20) == "one two"


@pytest.mark.parametrize(
    "token",
    [
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-AbCdEfGh",
        "sk-ant-api03",
        "sk-proj-AbCdEfGhIjKlMnOpQrSt",
        "sk-AbCdEfGhIjKlMnOpQrSt0123",
        "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
        "gho_AbCdEfGhIjKlMnOp",
        "ghs_AbCdEfGhIjKlMnOp",
        "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
        "glpat-AbCdEfGhIjKlMnOpQrSt",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA-AbCdEfGhIjKlMnOpQrStUvWxYz012345",
        "xoxb-123456789012-abcdefghijkl",
        JWT,
        JWT[:60],
        PEM,
        PEM[:60],
    ],
)
def test_a_token_of_a_known_shape_is_masked_whole(token: str) -> None:
    for text in (token, f"error: {token}", f'{{"a": "{token}"}}', f"({token}) and more"):
        assert token not in redact(text, {})
        assert token[:14] not in redact(text, {})
        assert MASK in redact(text, {})


def test_what_only_resembles_a_token_stays_readable() -> None:
    text = "risk-assessment of task-management-systems, ssh://git@host/x, 12 tokens_in: 1234567890"
    assert redact(text, {}) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("https://user:hunter2@example.com/x.git", "hunter2"),
        ("https://x-access-token:v1.abc@example.com/x", "v1.abc"),
        ("https://onlytoken123@example.com/x", "onlytoken123"),
        ("postgres://u:p@ss@db/x", "p@ss"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("authorization: bearer abcdef123456", "abcdef123456"),
        ("x-api-key: 0123456789abcdef", "0123456789abcdef"),
        ("GET /?access_token=0123456789abcdef&x=1", "0123456789abcdef"),
        ("MY_API_KEY=0123456789abcdef", "0123456789abcdef"),
        ('{"client_secret": "0123456789abcdef"}', "0123456789abcdef"),
    ],
)
def test_credentials_in_urls_headers_and_assignments_are_masked(text: str, secret: str) -> None:
    assert secret not in redact(text, {})
    assert redact(redact(text, {}), {}) == redact(text, {})


def test_values_of_credential_looking_variables_are_masked_wherever_they_stand() -> None:
    environ = {"MY_SERVICE_KEY": 'a"b/c d-longish-value', "DB_PASSWD": "correct horse battery"}
    for text in (
        'plain a"b/c d-longish-value.',
        r"json a\"b/c d-longish-value.",
        "url a%22b%2Fc%20d-longish-value.",
        "xcorrect horse batteryx",
    ):
        masked = redact(text, environ)
        assert MASK in masked
        assert "longish" not in masked
        assert "horse" not in masked


def test_the_first_half_of_a_secret_alone_is_masked_too() -> None:
    environ = {"SERVICE_TOKEN": "0123456789abcdefghijklmnop"}
    assert redact("cut: 0123456789abcdef", environ) == f"cut: {MASK}"


def test_short_values_and_ordinary_variables_are_left_alone() -> None:
    environ = {
        "API_KEY": "short",
        "GIT_AUTHOR_NAME": "Jane Developer",
        "XAUTHORITY": "/home/jane/.Xauthority",
        "PWD": "/home/jane/repository",
        "EDITOR": "a-very-long-editor",
    }
    text = "short Jane Developer /home/jane/.Xauthority /home/jane/repository a-very-long-editor"
    assert redact(text, environ) == text


def test_a_secret_is_masked_before_the_line_is_cut() -> None:
    token = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    assert "ghp_" not in safe_line("x" * 20 + " " + token, {}, 30)
    assert "ghp_" not in safe_line("ghp_AbCd\x1b[0mEfGhIjKlMnOp", {}, 100)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "eyJ",
        "a://",
        "a://b:",
        "-----BEGIN PRIVATE KEY-----",
        "Bearer ",
        "token=",
        "\x1b]",
        "sk-",
    ],
)
def test_a_hostile_megabyte_takes_no_more_than_a_moment(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.monotonic()
    redact(printable(text), {"A_TOKEN": "aaaaaaab"})
    assert time.monotonic() - started < 5
