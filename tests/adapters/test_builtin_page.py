"""The page: complete, deterministic, and unbreakable by what it quotes."""

import pytest
from markdown_it import MarkdownIt

from orchestrator.adapters.builtin.delta import CommitLine, Counts, Delta, MergedRun, Stale
from orchestrator.adapters.builtin.mend import Mending
from orchestrator.adapters.builtin.page import code, render
from tests.support.windows import Texts, mended

COMMIT = CommitLine("0123456789", "2026-11-28", "Move the core")
NASTY = "`](http://evil.example) <script>x</script>\x1b[31m\n# no\u202e @all #12 ``` ``"


def delta(
    mending: Mending | None = None,
    *,
    start: CommitLine | None = COMMIT,
    editing: bool = True,
    runs: tuple[MergedRun, ...] = (),
    stale: tuple[Stale, ...] = (),
    unmentioned: tuple[str, ...] = (),
    unread: dict[str, str] | None = None,
    cause: CommitLine = COMMIT,
) -> Delta:
    mending = mending or Mending((), (), {})
    findings = [e.finding for e in mending.edits] + [k.finding for k in mending.kept]
    return Delta(
        slug="historian-2026-11-30",
        base=COMMIT,
        start=start,
        covering_since=None,
        editing=editing,
        counts=Counts(),
        runs=runs,
        sweeps=0,
        mending=mending,
        causes=dict.fromkeys(findings, cause),
        stale=stale,
        unmentioned=unmentioned,
        old_breakage=0,
        documents=1,
        unread=unread or {},
    )


def test_an_empty_window_still_has_every_section() -> None:
    page = render(delta())
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Merged in this window",
        "## Edits made",
        "## Broken in this window",
        "## Documents to look at",
        "## Runs no document mentions",
        "## Old breakage",
    ]
    assert "\n\n\n" not in page
    assert page.endswith(".\n")


@pytest.mark.parametrize(
    "text", ["plain", "a`b", "`a`", "``", NASTY, "", "\x1b[2J", "a\nb", "\udce9", "x" * 999]
)
def test_a_code_span_shows_one_line_and_nothing_else(text: str) -> None:
    shown = code(text)
    assert "\n" not in shown
    assert "\x1b" not in shown
    (inline,) = [t for t in MarkdownIt("commonmark").parse(f"x {shown} y") if t.type == "inline"]
    kinds = [child.type for child in inline.children or []]
    assert kinds == ["text", "code_inline", "text"]


def test_nothing_from_the_repository_can_break_the_page_or_the_terminal() -> None:
    start: Texts = {"d.md": "[a](old.md)", "old.md": "1"}
    end: Texts = {"d.md": "[a](old.md)", "new.md": "1"}
    nasty = CommitLine(NASTY, "2026-11-28", NASTY)
    page = render(
        delta(
            mended(start, end),
            start=nasty,
            runs=(MergedRun(NASTY, (NASTY,), nasty),),
            stale=(Stale(NASTY, ((NASTY, 2),)),),
            unmentioned=(NASTY,),
            unread={NASTY: "why"},
            cause=nasty,
        )
    )
    tokens = MarkdownIt("commonmark").parse(page)
    children = [c for t in tokens for c in t.children or []]
    assert not [c for c in children if c.type in ("link_open", "html_inline", "image")]
    assert not [t for t in tokens if t.type == "html_block"]
    assert len([t for t in tokens if t.type == "heading_open"]) == 7
    assert all(c.isprintable() or c == "\n" for c in page)


def test_what_is_named_several_times_is_one_entry_with_its_lines() -> None:
    start: Texts = {"d.md": "x `a/b.py`\n\n`a/b.py`\n\n`a/b.py`\n", "a/b.py": "1"}
    page = render(delta(mended(start, {"d.md": start["d.md"]})))
    assert "- `d.md:1` (also lines 3, 5): the text names `a/b.py`: `a/b.py` was removed in " in page


def test_long_lists_are_cut_with_a_count() -> None:
    stale = tuple(Stale(f"d{n}.md", (("a.py", 1),)) for n in range(40))
    runs = tuple(MergedRun(f"r{n}", ("a",) * 10, None) for n in range(205))
    page = render(delta(stale=stale, runs=runs))
    assert "- and 10 more documents" in page
    assert "- and 5 more runs" in page
    assert "and 4 more" in page


def test_findings_for_an_agent_propose_instead_of_reporting_edits() -> None:
    assert "## Edits that can be made" in render(delta(editing=False))
