"""One whole run of the embedded historian, as the process it is."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from orchestrator.adapters.base import Ending, Operator, Plan, ProcessResult, Request
from orchestrator.adapters.builtin import BuiltinAdapter, page_plan
from orchestrator.adapters.builtin.request import Ask, read
from orchestrator.adapters.registry import PACKAGED
from orchestrator.errors import UsageError
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import FREE
from tests.support.repos import WHEN, commit_files, make_repo, opened

DAY = 86_400
GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden"
SWEEP = SweepName("historian", date(2026, 11, 30))
PAGE = "runs/historian-2026-11-30/docs-delta.md"
CORE = "".join(f"def step_{n}(): return {n}\n" for n in range(30))

START = {
    "README.md": (
        "# Project\n\nSee [the core](src/app/core.py#L3), [guide](docs/guide.md#first-steps),\n"
        "[gone](docs/gone.md) and [never](docs/never.md). Code is in `src/app/core.py`.\n"
    ),
    "docs/guide.md": (
        "# Guide\n\n## First steps\n\nRun `scripts/run.sh`.\n\n```sh\ncat src/app/core.py\n```\n"
    ),
    "docs/deploy.md": "# Deploy\n\n`scripts/run.sh` and [settings](../config/app.toml).\n",
    "docs/gone.md": "# Gone\n",
    "docs/moved.md": "# Moved\n\n[guide](guide.md) ![logo](img/logo.svg)\n",
    "docs/img/logo.svg": "<svg/>",
    "config/app.toml": "a = 1\n",
    "src/app/core.py": CORE,
    "scripts/run.sh": "echo 1\n",
    "outside.rst": ".. include:: docs/gone.md\n",
    "runs/fix-the-door/report.md": "# An old run\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> tuple[Path, Oid, Oid]:
    """A repository with a window in which things broke; (path, since, base)."""
    path = make_repo(tmp_path / "r", START)
    since = Oid(str(opened(path).revparse_single("main").id))
    commit_files(
        path,
        {"src/app/core.py": None, "src/engine/core.py": CORE + "# moved\n"},
        message="Move the core into the engine",
        when=WHEN + DAY,
    )
    commit_files(
        path,
        {
            "docs/gone.md": None,
            "docs/moved.md": None,
            "docs/how/moved.md": START["docs/moved.md"],
            "docs/guide.md": START["docs/guide.md"].replace("First steps", "Getting started"),
        },
        message="Tidy `docs` \x1b[31m[up](http://evil.example)",
        when=WHEN + 2 * DAY,
    )
    commit_files(
        path,
        {"scripts/run.sh": "echo 2\n", "config/app.toml": "a = 2\n"},
        message="Run louder",
        when=WHEN + 3 * DAY,
    )
    commit_files(path, {"scripts/run.sh": "echo 3\n"}, message="Louder", when=WHEN + 4 * DAY)
    base = commit_files(
        path,
        {
            "runs/paint-it/report.md": "# Report\n",
            "runs/paint-it/state.yaml": "done: true\n",
            "runs/historian-2026-11-23/sweep.yaml": "at: 2026-11-23T02:00:00Z\n",
        },
        message="Merge run paint-it",
        when=WHEN + 5 * DAY,
    )
    return path, since, base


def ask(path: Path, since: Oid | None, base: Oid, workdir: Path | None, **more: object) -> Ask:
    given = {
        "git_dir": opened(path).path,
        "base": base,
        "since": since,
        "covering_since": datetime.fromtimestamp(WHEN, UTC) if since else None,
        "slug": SWEEP.slug,
        "writes": ("docs/**", "**/*.md"),
        "workdir": str(workdir) if workdir else None,
        "mode": "sweep" if workdir else "page",
    }
    return Ask(**{**given, **more})  # type: ignore[arg-type]


def run(stdin: bytes, cwd: Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    adapter = BuiltinAdapter()
    plan = adapter.plan(request_for(cwd), adapter.probe(PACKAGED["historian"], Operator()))
    return subprocess.run(
        plan.argv,
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), **plan.environment, **environ},
        timeout=120,
        check=False,
    )


def swept(given: Ask, cwd: Path, **environ: str) -> Mapping[str, object]:
    done = run(given.to_json(), cwd, **environ)
    assert (done.returncode, done.stderr) == (0, b"")
    report: Mapping[str, object] = json.loads(done.stdout)
    return report


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def golden(name: str, page: bytes) -> None:
    path = GOLDEN / name
    if os.environ.get("REGEN_GOLDEN"):
        path.write_bytes(page)
    assert page.decode() == path.read_text("utf-8")


def test_a_sweep_edits_what_one_rename_explains_and_writes_its_page(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, since, base = repo
    work = tmp_path / "work"
    work.mkdir()
    report = swept(ask(path, since, base, work), tmp_path)
    written = files_below(work)
    assert report == {
        "version": 1, "status": "ok", "page": PAGE, "edits": 4, "broken": 4, "stale": 1,
        "old_breakage": 1, "files": ["README.md", "docs/how/moved.md"],
    }  # fmt: skip
    assert written["README.md"].decode() == START["README.md"].replace(
        "src/app/core.py", "src/engine/core.py"
    )
    assert written["docs/how/moved.md"].decode() == (
        "# Moved\n\n[guide](../guide.md) ![logo](../img/logo.svg)\n"
    )
    assert sorted(written) == ["README.md", "docs/how/moved.md", PAGE]
    golden("docs-delta.md", written[PAGE])


def test_a_first_sweep_edits_nothing_and_says_from_where_the_next_compares(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, _, base = repo
    work = tmp_path / "work"
    work.mkdir()
    report = swept(ask(path, None, base, work), tmp_path)
    written = files_below(work)
    assert (report["status"], report["files"], list(written)) == ("ok", [], [PAGE])
    golden("docs-delta-first.md", written[PAGE])


def test_the_page_alone_goes_to_stdout_and_nothing_is_written(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, since, base = repo
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run(ask(path, since, base, None).to_json(), empty)
    assert done.returncode == 0
    assert list(empty.iterdir()) == []
    golden("docs-delta-proposed.md", done.stdout)


def test_the_same_input_gives_the_same_bytes(repo: tuple[Path, Oid, Oid], tmp_path: Path) -> None:
    path, since, base = repo
    seen = []
    for seed, zone in (("0", "UTC"), ("1", "Asia/Tokyo"), ("42", "America/New_York")):
        work = tmp_path / f"work{seed}"
        work.mkdir()
        swept(ask(path, since, base, work), tmp_path, PYTHONHASHSEED=seed, TZ=zone)
        seen.append(files_below(work))
    assert seen[0] == seen[1] == seen[2]


def test_a_quiet_window_changes_nothing_but_the_page(tmp_path: Path) -> None:
    path = make_repo(tmp_path / "r", START)
    tip = Oid(str(opened(path).revparse_single("main").id))
    work = tmp_path / "work"
    work.mkdir()
    report = swept(ask(path, tip, tip, work), tmp_path)
    assert (report["status"], report["edits"], report["broken"]) == ("no_change", 0, 0)
    assert list(files_below(work)) == [PAGE]


def test_a_start_that_this_clone_lacks_is_said_on_the_page(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, _, base = repo
    opened(path)  # the clone below is as shallow as a CI's
    clone = tmp_path / "clone"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=3", f"file://{path}", str(clone)], check=True
    )
    done = run(ask(clone, Oid("1" * 40), base, None, covering_since=_at(0)).to_json(), tmp_path)
    assert done.returncode == 0, done.stderr
    page = done.stdout.decode()
    assert "- Note: the window's first commit (1111111111) is not in this clone" in page
    assert "- Note: the window starts at a shallow boundary" in page
    assert "2 commits on the default branch" in page


def _at(seconds: int) -> datetime:
    return datetime.fromtimestamp(WHEN + seconds, UTC)


def test_only_what_the_role_may_write_is_edited(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, since, base = repo
    work = tmp_path / "work"
    work.mkdir()
    report = swept(ask(path, since, base, work, writes=("docs/**",)), tmp_path)
    assert report["files"] == ["docs/how/moved.md"]
    assert b"`README.md:3`" in files_below(work)[PAGE]


def test_an_edited_file_keeps_its_executable_bit(tmp_path: Path) -> None:
    path = make_repo(tmp_path / "r")
    first = {"a.md": "[x](b.md)", "b.md": "1"}
    since = commit_files(path, first, modes={"a.md": 0o100755})
    base = commit_files(path, {"b.md": None, "c.md": "1"})
    work = tmp_path / "work"
    work.mkdir()
    swept(ask(path, since, base, work), tmp_path)
    assert (work / "a.md").stat().st_mode & 0o111


def test_no_symlink_in_the_working_copy_is_followed(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, since, base = repo
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    work.mkdir()
    elsewhere.mkdir()
    (work / "runs").symlink_to(elsewhere)
    done = run(ask(path, since, base, work).to_json(), tmp_path)
    assert done.returncode == 1
    assert b"cannot be written" in done.stderr
    assert list(elsewhere.iterdir()) == []


def test_nothing_in_the_working_folder_is_imported(
    repo: tuple[Path, Oid, Oid], tmp_path: Path
) -> None:
    path, since, base = repo
    evil = tmp_path / "evil"
    evil.mkdir()
    for name in ("json.py", "orchestrator.py", "markdown_it.py"):
        (evil / name).write_text("raise SystemExit('imported')")
    done = run(ask(path, since, base, None).to_json(), evil)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "stdin",
    [
        b"", b"null", b"[]", b"{}", b'{"version": 2}',
        b'{"version": 1, "mode": "sweep", "git_dir": 3}',
    ],
)  # fmt: skip
def test_a_request_that_is_none_is_refused_in_one_sentence(stdin: bytes) -> None:
    with pytest.raises(UsageError):
        read(stdin)


def test_a_request_is_read_as_it_was_written(tmp_path: Path) -> None:
    given = ask(make_repo(tmp_path / "r", {"a": "1"}), Oid("1" * 40), Oid("2" * 40), tmp_path)
    assert read(given.to_json()) == given


def test_a_base_that_is_not_here_fails_in_one_sentence(tmp_path: Path) -> None:
    path = make_repo(tmp_path / "r", {"a": "1"})
    done = run(ask(path, None, Oid("1" * 40), tmp_path).to_json(), tmp_path)
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert "is not in this clone" in done.stderr.decode()


# The adapter's three questions.


def request_for(folder: Path) -> Request:
    return Request(
        registration=PACKAGED["historian"],
        sweep=SWEEP,
        git_dir=folder,
        base=Oid("1" * 40),
        since=None,
        covering_since=None,
        at=datetime(2026, 11, 30, tzinfo=UTC),
        workdir=folder / "work",
        prompt="",
        budget_usd=None,
        timeout_s=60,
        operator=Operator(),
    )


def result_of(stdout: bytes, code: int | None = 0, ending: Ending = Ending.EXITED) -> ProcessResult:
    return ProcessResult(ending, code, stdout, b"first\nlast words\n", 1.0, Path("/nowhere"))


def test_the_adapter_is_always_there_and_never_priced() -> None:
    adapter = BuiltinAdapter()
    probe = adapter.probe(PACKAGED["historian"], Operator())
    assert (probe.ok, probe.program, adapter.priced, adapter.name) == (
        True, sys.executable, False, "builtin",
    )  # fmt: skip


def test_the_plan_starts_this_python_away_from_the_working_folder(tmp_path: Path) -> None:
    adapter = BuiltinAdapter()
    probe = adapter.probe(PACKAGED["historian"], Operator())
    request = request_for(tmp_path)
    plans: list[Plan] = [adapter.plan(request, probe), page_plan(request)]
    for plan in plans:
        assert plan.argv == (sys.executable, "-P", "-m", "orchestrator.adapters.builtin")
        assert not plan.checkout
        assert all(
            Path(folder).is_absolute() for folder in plan.environment["PYTHONPATH"].split(":")
        )
    assert [read(plan.stdin).mode for plan in plans] == ["sweep", "page"]
    assert read(plans[0].stdin).workdir == str(tmp_path / "work")


@pytest.mark.parametrize(
    ("result", "status", "error"),
    [
        (result_of(b'{"status": "ok"}\n'), Status.OK, None),
        (result_of(b'{"status": "no_change"}\n'), Status.NO_CHANGE, None),
        (result_of(b"", 1), Status.FAILED, "last words"),
        (result_of(b"what\n"), Status.BAD_OUTPUT, "what it printed is not its report"),
        (result_of(b'{"status": "?"}'), Status.BAD_OUTPUT, "what it printed is not its report"),
        (result_of(b"", -9, Ending.TIMEOUT), Status.TIMEOUT, "the time limit ended it"),
        (result_of(b"", -2, Ending.INTERRUPTED), Status.INTERRUPTED, "it was interrupted"),
        (result_of(b"", None, Ending.NOT_STARTED), Status.UNAVAILABLE, "it could not be started"),
    ],
)
def test_every_ending_has_its_status_and_costs_nothing(
    result: ProcessResult, status: Status, error: str | None, tmp_path: Path
) -> None:
    report = BuiltinAdapter().parse(result, request_for(tmp_path))
    assert (report.status, report.error, report.usage) == (status, error, FREE)
