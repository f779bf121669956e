"""Which paths may come back from an agent."""

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.names import SweepName
from orchestrator.model.paths import matches, refusal

SWEEP = SweepName("historian", date(2026, 11, 30))
FILE, EXECUTABLE, LINK, GITLINK = 0o100644, 0o100755, 0o120000, 0o160000
EVERYTHING = ("**", "*", "**/*", ".*", "**/.*")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("docs/**", "docs/a.md"),
        ("docs/**", "docs/a/b/c.md"),
        ("docs/", "docs/a/b.md"),
        ("./docs/**", "docs/a.md"),
        ("docs//**", "docs/a.md"),
        ("**/*.md", "README.md"),
        ("**/*.md", "a/b/c.md"),
        ("**", "a/b"),
        ("*", "a"),
        ("*.md", "a.md"),
        ("docs/*.md", "docs/a.md"),
        ("docs/**/x.md", "docs/x.md"),
        ("docs/**/x.md", "docs/a/b/x.md"),
        ("**/docs/**", "a/docs/b"),
        ("a/**/b/**/c", "a/x/b/b/y/c"),
        ("?.md", "a.md"),
        ("docs/[id].md", "docs/[id].md"),
        ("a**b", "axxb"),
        ("README", "README"),
    ],
)
def test_a_pattern_covers(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("docs/**", "docs"),
        ("docs/**", "docsx/a"),
        ("docs/**", "a/docs/b"),
        ("docs", "docs/a"),
        ("*", "a/b"),
        ("*.md", "a/b.md"),
        ("docs/*", "docs/a/b"),
        ("?.md", ".md"),
        ("?", "/"),
        ("a?b", "a/b"),
        ("[ab].md", "a.md"),
        ("Docs/**", "docs/a"),
        ("/docs/**", "docs/a"),
        ("../**", "a"),
        ("docs/../**", "a"),
        ("docs/../**", "docs/a"),
        ("", "a"),
        (".", "a"),
        ("/", "a"),
        ("!docs/**", "docs/a"),
    ],
)
def test_a_pattern_does_not_cover(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


@given(st.text("ab*?/.", max_size=12), st.text("ab/.", max_size=12))
def test_matching_agrees_with_the_obvious_definition(pattern: str, path: str) -> None:
    assert matches(pattern, path) == obvious(pattern, path)


def obvious(pattern: str, path: str) -> bool:
    parts = [p for p in pattern.split("/") if p not in ("", ".")]
    if pattern.startswith("/") or ".." in parts or not parts:
        return False
    if pattern.endswith("/"):
        parts.append("**")
    return folders([*parts, "*"] if parts[-1] == "**" else parts, path.split("/"))


def folders(want: list[str], path: list[str]) -> bool:
    if not want:
        return not path
    if want[0] == "**":
        return any(folders(want[1:], path[n:]) for n in range(len(path) + 1))
    return bool(path) and names(want[0], path[0]) and folders(want[1:], path[1:])


def names(want: str, name: str) -> bool:
    if not want:
        return not name
    if want[0] == "*":
        return any(names(want[1:], name[n:]) for n in range(len(name) + 1))
    return bool(name) and want[0] in ("?", name[0]) and names(want[1:], name[1:])


def test_a_pattern_made_to_be_slow_is_not() -> None:
    started = time.monotonic()
    assert not matches("**/a/" * 40 + "*a" * 60 + "b", "a/" * 300 + "a" * 255)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("docs/a.md", FILE),
        ("docs/tool.sh", EXECUTABLE),
        ("docs/gone.md", None),
        ("a/b/README.md", FILE),
        ("runs/historian-2026-11-30/docs-delta.md", FILE),
        ("runs/historian-2026-11-30/data/x.json", FILE),
        ("docs/naïve été.md", FILE),
        ("docs/digit~1.md", FILE),
        ("docs/git.md", FILE),
        ("docs/orchestrator.yaml.md", FILE),
        ("runs/README.md", FILE),
    ],
)
def test_what_writes_covers_and_the_sweeps_own_folder_may_come_back(
    path: str, mode: int | None
) -> None:
    assert refusal(path, mode, ("docs/**", "**/*.md"), SWEEP) is None


@pytest.mark.parametrize("path", ["src/main.c", "docs", "README.rst", "runs", "package.json"])
def test_what_writes_does_not_cover_stays_out(path: str) -> None:
    assert refusal(path, FILE, ("docs/**", "**/*.md"), SWEEP) is not None


@pytest.mark.parametrize("mode", [FILE, EXECUTABLE, LINK, None])
@pytest.mark.parametrize(
    "path",
    [
        "orchestrator.yaml",
        "Orchestrator.YAML",
        "orchestrator.yaml/x",
        "orchestrator.yaml.",
        "runs",
        "runs/historian-2026-11-30",
        "runs/historian-2026-11-30/sweep.yaml",
        "runs/historian-2026-11-30/Sweep.yaml",
        "runs/historian-2026-11-30/sweep.yaml/x",
        "runs/historian-2026-11-29/notes.md",
        "runs/historian-2026-11-29",
        "runs/Historian-2026-11-30/sweep.yaml",
        "runs/other/x.md",
        "Runs/x.md",
        ".git/config",
        "docs/.git",
        "docs/.GIT/hooks/x",
        "docs/.git./x",
        "docs/.git /x",
        "docs/.git::$INDEX_ALLOCATION/x",
        "docs/git~1/x",
        "docs/GIT~2",
        "docs/a\\.git\\config",
        ".gitmodules",
        "docs/.gitattributes",
        ".GitAttributes",
        "gi7eba~1",
        "../x",
        "docs/../../x",
        "docs//x",
        "/etc/passwd",
        "docs/./x",
        "",
        "docs/a\nb.md",
        "docs/\x1b[31m.md",
        "docs/.g\u200cit/config",
        "docs/a\u202eb.md",
        "docs/caf\udce9.md",
        "docs/" + "a" * 256,
        "docs/" + "ab/" * 400 + "x",
        "docs/" + "é" * 200,
    ],
)
def test_nothing_in_writes_opens_these(path: str, mode: int | None) -> None:
    writes = (*EVERYTHING, path, "runs/**", ".git/**", "**/.gitattributes")
    assert refusal(path, mode, writes, SWEEP, target="x") is not None


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        (".github/workflows/docs.yml", ".github/**"),
        (".github/workflows/docs.yml", ".github/workflows/docs.yml"),
        (".gitlab-ci.yml", ".gitlab-ci.yml"),
        (".claude/settings.json", ".claude/*"),
        (".codex/x", ".codex/x"),
        (".gemini/x", ".gemini/**"),
        (".mcp.json", ".mcp.json"),
        ("AGENTS.md", "AGENTS.md"),
        ("a/b/CLAUDE.md", "**/CLAUDE.md"),
        ("GEMINI.md", "GEMINI.md"),
        (".husky/pre-commit", ".husky/**"),
        (".githooks/pre-commit", ".githooks/"),
        ("docs/.gitignore", "docs/.gitignore"),
    ],
)
def test_settings_come_back_only_where_writes_spells_them_out(path: str, spelled: str) -> None:
    assert refusal(path, FILE, EVERYTHING, SWEEP) is not None
    assert refusal(path, None, EVERYTHING, SWEEP) is not None
    assert refusal(path, FILE, (spelled,), SWEEP) is None


def test_spelling_a_setting_in_a_pattern_that_covers_another_path_opens_nothing() -> None:
    writes = ("docs/CLAUDE.md", "**/*.md")
    assert refusal("CLAUDE.md", FILE, writes, SWEEP) is not None
    assert refusal("claude.md", FILE, ("**/*.md",), SWEEP) is not None


@pytest.mark.parametrize("target", ["b.md", "./b.md", "../README.md", "a/b/c", "../docs/x", "."])
def test_a_link_that_stays_inside_may_come_back(target: str) -> None:
    assert refusal("docs/link.md", LINK, ("docs/**",), SWEEP, target=target) is None


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd",
        "../../x",
        "../../../x",
        "a/../../../x",
        "a/..",
        "../a/../x",
        "../.git/config",
        ".GIT/x",
        "a\\..\\x",
        "",
        "a\nb",
        None,
    ],
)
def test_a_link_that_may_lead_outside_stays_out(target: str | None) -> None:
    assert refusal("docs/link.md", LINK, ("docs/**",), SWEEP, target=target) is not None


@pytest.mark.parametrize("mode", [GITLINK, 0o040000, 0, 0o100600])
def test_submodules_and_special_files_stay_out(mode: int) -> None:
    assert refusal("docs/x", mode, ("docs/**",), SWEEP) is not None


@given(st.text(), st.sampled_from([FILE, LINK, None]), st.lists(st.text(), max_size=3))
def test_whatever_the_path_an_answer_comes_back(
    path: str, mode: int | None, writes: list[str]
) -> None:
    why = refusal(path, mode, writes, SWEEP, target=path)
    assert why is None or ("\n" not in why and len(why) < 300)
