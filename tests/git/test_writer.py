"""Writing objects: into the right places, all of it or none, and never silently lost."""

import multiprocessing
import os
import resource
import signal
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from orchestrator.errors import WriteFailedError
from orchestrator.git.reader import Identity, Reader
from orchestrator.git.writer import TreeChange, Writer
from orchestrator.model.names import Oid, Ref
from tests.support import repos

ANN = Identity("Ann Author", "ann@example.org", fallback=False)
NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
FILES = {"README.md": "hello\n", "runs/a/sweep.yaml": "a\n", "runs/b/sweep.yaml": "b\n"}


def opened(path: Path) -> tuple[Reader, Writer]:
    reader = Reader.open(str(path), dict(os.environ))
    return reader, Writer(reader)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return repos.make_repo(tmp_path / "r", FILES)


def written(path: Path, changes: Mapping[str, str | None], base: Oid | None = None) -> Oid:
    """Apply changes of text by path and commit the tree; the commit."""
    _, writer = opened(path)
    base = base or repos.tip(path)
    blobs = {
        name: None if text is None else TreeChange(writer.blob(text.encode()))
        for name, text in changes.items()
    }
    return writer.commit(writer.tree(base, blobs), [base], "Change\n", ANN, NOW)


def listing(path: Path, commit: Oid) -> list[str]:
    return repos.git(path, "ls-tree", "-r", "--name-only", commit).splitlines()


def test_a_commit_is_what_git_would_have_made(path: Path) -> None:
    later = NOW.astimezone(timezone(timedelta(hours=5)))
    reader, writer = opened(path)
    tip = repos.tip(path)
    blob = writer.blob("caf\u00e9\n".encode())
    change = {"runs/c/sweep.yaml": TreeChange(blob), "run.sh": TreeChange(blob, 0o100755)}
    oid = writer.commit(writer.tree(tip, change), [tip], "Subject\n\nSweep: c\n", ANN, later)
    repos.git(path, "fsck", "--strict", "--full")
    shown = repos.git(path, "log", "-1", "--format=%an|%ae|%cI|%P|%B", oid)
    assert (
        shown == f"Ann Author|ann@example.org|2026-11-30T02:00:00+00:00|{tip}|Subject\n\nSweep: c"
    )
    assert listing(path, oid) == [
        "README.md",
        "run.sh",
        *sorted([*list(FILES)[1:], "runs/c/sweep.yaml"]),
    ]
    assert reader.commit(oid).parents == (tip,)


def test_writing_a_commit_touches_nothing_of_the_users(path: Path) -> None:
    (path / "README.md").write_text("dirty\n")
    before = repos.snapshot_user_state(path)
    oid = written(path, {"README.md": "other\n"})
    _, writer = opened(path)
    assert writer.create_ref(Ref("refs/heads/run/x-2026-11-30"), oid, "begin")
    assert repos.snapshot_user_state(path) == before


def test_the_same_change_is_no_change(path: Path) -> None:
    reader, writer = opened(path)
    tip = repos.tip(path)
    blob = writer.blob(b"hello\n")
    assert writer.tree(tip, {"README.md": TreeChange(blob)}) == reader.commit(tip).tree
    assert writer.tree(tip, {}) == reader.commit(tip).tree
    assert writer.tree(tip, {"none": None, "runs/none/x": None}) == reader.commit(tip).tree


def test_a_folder_that_becomes_empty_disappears(path: Path) -> None:
    assert listing(path, written(path, {"runs/a/sweep.yaml": None})) == [
        "README.md",
        "runs/b/sweep.yaml",
    ]
    gone = written(path, dict.fromkeys(FILES))
    assert listing(path, gone) == []
    repos.git(path, "fsck", "--strict")


@pytest.mark.parametrize(
    "changes",
    [
        {"README.md/x": "x"},
        {"runs": "x"},
        {"runs/a": "x"},
        {"runs/a/sweep.yaml/x/y": "x"},
        {"runs/a": "x", "runs/a/other": "y"},
        {"new": "x", "new/below": "y"},
    ],
)
def test_a_file_in_the_place_of_a_folder_is_an_error_that_names_it(
    path: Path, changes: dict[str, str]
) -> None:
    with pytest.raises(WriteFailedError, match=r"README\.md|runs|new"):
        written(path, changes)


def test_a_link_in_the_place_of_a_folder_is_not_followed(path: Path) -> None:
    repos.commit_files(path, {"docs": "../../outside"}, modes={"docs": 0o120000})
    with pytest.raises(WriteFailedError, match="docs is a file or link"):
        written(path, {"docs/x": "x"})


def test_a_file_may_become_a_folder_and_back_when_that_is_said(path: Path) -> None:
    folder = written(path, {"README.md": None, "README.md/x": "x"})
    assert listing(path, folder)[0] == "README.md/x"
    back = written(path, {"README.md": "text", "README.md/x": None}, folder)
    assert listing(path, back)[0] == "README.md"


def test_removing_a_folder_removes_what_is_in_it(path: Path) -> None:
    assert listing(path, written(path, {"runs/a": None})) == ["README.md", "runs/b/sweep.yaml"]


@pytest.mark.parametrize(
    "name", ["", "/x", "a//b", "../x", "a/./b", ".git/config", "a/.git/x", "a\0"]
)
def test_a_path_that_leads_out_is_refused(path: Path, name: str) -> None:
    with pytest.raises(WriteFailedError, match="not a path inside"):
        written(path, {name: "x"})


def test_names_that_are_not_utf8_survive_beside_ours(path: Path) -> None:
    repos.git(path, "config", "core.quotePath", "false")
    name = os.fsdecode(b"caf\xe9")
    oid = written(path, {name: "x", "z": "z"})
    again = written(path, {"z": None}, oid)
    assert name in listing(path, again)


def test_an_object_that_is_not_here_cannot_be_pointed_at(path: Path) -> None:
    _, writer = opened(path)
    nowhere, tip = Oid("1" * 40), repos.tip(path)
    with pytest.raises(WriteFailedError, match="1111111111"):
        writer.commit(nowhere, [tip], "m", ANN, NOW)
    with pytest.raises(WriteFailedError, match="1111111111"):
        writer.commit(Oid(repos.git(path, "rev-parse", "main^{tree}")), [nowhere], "m", ANN, NOW)
    with pytest.raises(WriteFailedError, match="1111111111"):
        writer.tree(tip, {"x": TreeChange(nowhere)})
    with pytest.raises(WriteFailedError, match="1111111111"):
        writer.create_ref(Ref("refs/heads/run/x"), nowhere, "r")
    with pytest.raises(WriteFailedError, match="1111111111"):
        writer.move_ref(Ref("refs/heads/main"), nowhere, tip, "r")
    assert repos.tip(path) == tip


def test_a_tree_in_a_large_repository_costs_only_its_own_folders(tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", bare=True)
    tip = repos.big_tree(path, "runs", 5000)
    before = repos.objects(path)
    _, writer = opened(path)
    writer.tree(tip, {"runs/new-2026-11-30/sweep.yaml": TreeChange(writer.blob(b"n"))})
    assert len(repos.objects(path) - before) == 4  # a file, its folder, runs, the root


def _full_disk(path: str, outcome: "multiprocessing.SimpleQueue[str]") -> None:
    """Writes where no file may grow, as on a full disk; says what came of each."""
    reader = Reader.open(path, dict(os.environ))
    writer = Writer(reader)
    tip = reader.resolve(Ref("refs/heads/main"))
    assert tip is not None
    other = reader.resolve(Ref("refs/heads/other"))
    assert other is not None
    tree = reader.commit(tip).tree
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    acts = (
        lambda: writer.blob(b"new"),
        lambda: writer.commit(tree, [tip], "m", ANN, NOW),
        lambda: writer.create_ref(Ref("refs/heads/run/x-2026-11-30"), tip, "r"),
        lambda: writer.move_ref(Ref("refs/heads/main"), other, tip, "r"),
    )
    for act in acts:
        try:
            outcome.put(f"done: {act()}")
        except WriteFailedError as error:
            outcome.put(f"refused: {error.message}")


def test_a_full_disk_is_an_error_and_leaves_nothing_half_done(path: Path) -> None:
    repos.commit_files(path, {"o": "o"}, branch="other", start="main")
    before = repos.refs(path)
    outcome: multiprocessing.SimpleQueue[str] = multiprocessing.SimpleQueue()
    child = multiprocessing.get_context("fork").Process(
        target=_full_disk, args=(str(path), outcome)
    )
    child.start()
    said = [outcome.get() for _ in range(4)]
    child.join()
    assert [s.partition(":")[0] for s in said] == ["refused"] * 4, said
    assert repos.refs(path) == before
    repos.git(path, "fsck", "--full")
    assert not list((path / ".git").rglob("*.lock"))


def test_a_read_only_repository_is_an_error(path: Path) -> None:
    if os.geteuid() == 0:  # root writes everywhere: a file where a folder must be stops it too
        objects = path / ".git/objects"
        for fan in [*objects.glob("??")]:
            fan.rename(objects / f"was-{fan.name}")
        for n in range(256):
            (objects / f"{n:02x}").write_text("")
    else:
        (path / ".git/objects").chmod(0o555)
    _, writer = opened(path)
    with pytest.raises(WriteFailedError, match="a file could not be written"):
        writer.blob(b"new")
    (path / ".git/objects").chmod(0o755)
