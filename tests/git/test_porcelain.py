"""Parsers against what git really printed (fixtures/git-output) and against nonsense."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.git import porcelain
from orchestrator.model.names import Ref

RECORDED = Path(__file__).parents[2] / "fixtures" / "git-output"
REF = Ref("refs/heads/run/historian-2026-11-30")
PUSH_FAILED = "failed to push some refs to 'file:///srv/up.git'"
BLOCKED_BY_RUN = f"'refs/heads/run' exists; cannot create '{REF}'"
FIRST = "457857a9809f448eccc983c1d691ad66113285b1"


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def said(name: str) -> str:
    return recorded(f"{name}.stderr").decode()


@pytest.mark.parametrize(
    ("case", "flag", "summary", "reason"),
    [
        ("push-new", "*", "[new branch]", ""),
        ("push-same", "=", "[up to date]", ""),
        ("push-moved", " ", "457857a..0150634", ""),
        ("push-deleted", "-", "[deleted]", ""),
        ("push-stale", "!", "[rejected]", "stale info"),
        ("push-declined", "!", "[remote rejected]", "pre-receive hook declined"),
        ("push-blocked-by-run", "!", "[remote rejected]", "failed to update ref"),
        ("push-blocked-by-lock", "!", "[remote rejected]", "failed to update ref"),
    ],
)
def test_the_outcome_of_a_push_is_its_refs_line(
    case: str, flag: str, summary: str, reason: str
) -> None:
    (line,) = porcelain.parse_push(recorded(f"{case}.stdout"))
    assert line == porcelain.PushLine(flag, REF, summary, reason)
    assert line.answered


@pytest.mark.parametrize("case", ["push-dropped-http", "push-dropped-ssh"])
def test_a_dropped_connection_leaves_no_line_about_the_ref(case: str) -> None:
    assert porcelain.parse_push(recorded(f"{case}.stdout")) == ()
    assert "hung up unexpectedly" in porcelain.complaint(said(case))


def test_a_report_that_never_came_is_not_an_answer() -> None:
    line = f"!\t{FIRST}:{REF}\t[remote failure] (remote failed to report status)\n"
    (parsed,) = porcelain.parse_push(line.encode())
    assert not parsed.answered


def test_a_listing_keeps_symbolic_refs_apart() -> None:
    found = porcelain.parse_ls_remote(recorded("ls-remote.stdout"))
    assert found.symrefs == {"HEAD": "refs/heads/main"}
    assert found.refs[Ref("HEAD")] == found.refs[Ref("refs/heads/main")] == FIRST
    assert REF in found.refs


def test_a_listing_leaves_out_what_tags_lead_to() -> None:
    text = f"{FIRST}\trefs/tags/v1\n{FIRST}\trefs/tags/v1^{{}}\n"
    assert list(porcelain.parse_ls_remote(text.encode()).refs) == ["refs/tags/v1"]


def test_a_listing_of_nothing_is_empty() -> None:
    assert porcelain.parse_ls_remote(recorded("ls-remote-nothing.stdout")).refs == {}


def test_refs_carry_their_target_and_what_they_point_through() -> None:
    by_name = {line.name: line for line in porcelain.parse_refs(recorded("refs.stdout"))}
    assert by_name[Ref("refs/remotes/origin/HEAD")].symref == "refs/remotes/origin/main"
    assert by_name[Ref("refs/heads/main")].symref is None


def test_a_ref_whose_name_is_not_utf8_survives() -> None:
    (line,) = porcelain.parse_refs(FIRST.encode() + b"\0refs/heads/run/caf\xe9\0\n")
    assert line.name.encode("utf-8", "surrogateescape") == b"refs/heads/run/caf\xe9"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("push-declined", ("no sweeps on Sundays",)),
        (
            "push-blocked-by-run",
            (f"error: cannot lock ref '{REF}': 'refs/heads/run' exists; cannot create '{REF}'",),
        ),
        ("push-new", ()),
    ],
)
def test_the_servers_own_words_are_told_from_gits(case: str, words: tuple[str, ...]) -> None:
    assert porcelain.server_lines(said(case)) == words


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-such-repository", "'/srv/none.git' does not appear to be a git repository"),
        ("ssh-denied", "root@127.0.0.1: Permission denied (publickey)."),
        (
            "password-wanted",
            "could not read Username for 'http://127.0.0.1:8080': terminal prompts disabled",
        ),
        ("password-wrong", "Authentication failed for 'http://127.0.0.1:8080/up.git/'"),
        (
            "push-dropped-http",
            "RPC failed; curl 52 Empty reply from server; the remote end hung up unexpectedly",
        ),
        (
            "push-blocked-by-run",
            f"cannot lock ref '{REF}': {BLOCKED_BY_RUN}; {PUSH_FAILED}",
        ),
        ("no-such-branch", "couldn't find remote ref refs/heads/none"),
    ],
)
def test_a_complaint_is_the_sentence_that_helps(case: str, words: str) -> None:
    assert porcelain.complaint(said(case)) == words


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:pa55@host/x.git", "https://host/x.git"),
        ("https://ghp_token@host/x", "https://host/x"),
        ("fatal: 'ssh://ann@host:22/x'", "fatal: 'ssh://host:22/x'"),
        ("https://ann:p@ss@host/x", "https://host/x"),
        ("https://host/x@y", "https://host/x@y"),
        ("git@host:x.git", "git@host:x.git"),
    ],
)
def test_credentials_are_taken_out_of_urls(url: str, shown: str) -> None:
    assert porcelain.without_credentials(url) == shown


def test_credentials_are_taken_out_of_the_servers_words() -> None:
    text = "remote: see https://ann:pa55@host/x\nfatal: no https://ann:pa55@host/y\n"
    assert porcelain.server_lines(text) == ("see https://host/x",)
    assert "pa55" not in porcelain.complaint(text)


def test_trailers_are_the_last_paragraph() -> None:
    message = (
        "Begin the sweep\n\nSweep: not this one\n\nbody\n\n"
        "Sweep: historian-2026-11-30\nSweep-Phase: intent\nLong: one\n two\n"
    )
    assert porcelain.trailers(message) == {
        "Sweep": "historian-2026-11-30",
        "Sweep-Phase": "intent",
        "Long": "one two",
    }


@pytest.mark.parametrize(
    "message",
    ["", "Sweep-Phase: closing", "Subject\n\nSweep-Phase: closing\nand a sentence\n", "\n\n\n"],
)
def test_a_subject_or_a_paragraph_of_prose_is_no_trailer(message: str) -> None:
    assert porcelain.trailers(message) == {}


def test_trailers_read_other_line_ends_and_keep_the_last_of_a_key() -> None:
    assert porcelain.trailers("S\r\n\r\nA: 1\r\nA: 2\r\n") == {"A": "2"}


@pytest.mark.parametrize(
    ("parse", "data"),
    [
        (porcelain.parse_refs, b"nonsense\n"),
        (porcelain.parse_refs, b"zz\0refs/heads/x\0\n"),
        (porcelain.parse_ls_remote, b"nonsense\n"),
        (porcelain.parse_ls_remote, b"abc\trefs/heads/x\n"),
        (porcelain.parse_push, b"!\tno-colon\t[rejected]\n"),
        (porcelain.parse_push, b"?\ta:b\t[rejected]\n"),
        (porcelain.parse_push, b"!\ta:b\n"),
    ],
)
def test_a_malformed_line_is_a_declared_error(
    parse: Callable[[bytes], object], data: bytes
) -> None:
    with pytest.raises(porcelain.PorcelainError):
        parse(data)


_FRAGMENTS = st.sampled_from(
    [b"\t", b"\n", b"\0", b"!", b"*", b":", b"ref: ", b"^{}", FIRST.encode(), REF.encode(), b" ("]
)
_NONSENSE = st.lists(st.one_of(_FRAGMENTS, st.binary(max_size=6)), max_size=12).map(b"".join)


@given(_NONSENSE)
def test_parsers_raise_nothing_but_their_own_error(data: bytes) -> None:
    for parse in (porcelain.parse_refs, porcelain.parse_ls_remote, porcelain.parse_push):
        with contextlib.suppress(porcelain.PorcelainError):
            parse(data)


@given(st.text())
def test_readers_of_free_text_never_raise(text: str) -> None:
    porcelain.trailers(text)
    porcelain.server_lines(text)
    porcelain.complaint(text)
    porcelain.broken_refs(text)
