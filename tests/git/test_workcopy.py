"""A private working copy: the branch's files, exactly, and nothing of ours an agent could bend."""

import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pygit2
import pytest

from orchestrator.folders import remove_tree
from orchestrator.git.objects import Mode
from orchestrator.git.reader import Reader
from orchestrator.git.wire import Remote
from orchestrator.git.workcopy import WorkingCopyError, workcopy
from orchestrator.model.names import Oid
from tests.support.repos import (
    CloneKind,
    bare_remote,
    clone,
    commit_files,
    git,
    make_repo,
    opened,
    snapshot_user_state,
    store_commit,
    tip,
    tree_with,
)

BRANCH = "run/scout-2026-11-30"
FILES: dict[str, str | bytes | None] = {
    "README.md": "hello\n",
    "docs/guide.md": b"one\r\ntwo\n\x00\xff",
    "bin/tool": "#!/bin/sh\n",
    "docs/link.md": "guide.md",
    "naïve name.md": "x\n",
}
MODES = {"bin/tool": Mode.EXECUTABLE, "docs/link.md": Mode.SYMLINK}

Make = Callable[..., AbstractContextManager[Path]]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = make_repo(tmp_path / "repo", {"first": "x"})
    commit_files(path, FILES, modes=MODES)
    return path


def copy_of(path: Path, folder: Path, commit: Oid | None = None, **given: bool) -> Make:
    reader = Reader.open(str(path), os.environ)
    wanted = commit or tip(path)
    checkout = given.get("checkout", True)
    return lambda: workcopy(reader.git, reader, folder, wanted, BRANCH, checkout=checkout)


def test_the_copy_has_the_trees_files_byte_for_byte(repo: Path, tmp_path: Path) -> None:
    with copy_of(repo, tmp_path / "w/tree")() as tree:
        assert (tree / "docs/guide.md").read_bytes() == FILES["docs/guide.md"]
        assert (tree / "docs/link.md").readlink() == Path("guide.md")
        assert (tree / "naïve name.md").read_text() == "x\n"
        assert os.access(tree / "bin/tool", os.X_OK)
        assert not os.access(tree / "README.md", os.X_OK) or os.geteuid() == 0
        assert not stat.S_IMODE((tree / "README.md").stat().st_mode) & 0o111
        assert stat.S_IMODE(tree.stat().st_mode) == 0o700
    assert not tree.exists()


def test_git_works_in_the_copy_without_any_configuration(repo: Path, tmp_path: Path) -> None:
    with copy_of(repo, tmp_path / "tree")() as tree:
        assert git(tree, "status", "--porcelain") == ""
        assert git(tree, "symbolic-ref", "--short", "HEAD") == BRANCH
        assert git(tree, "log", "--format=%s").splitlines() == ["Change files", "Begin"]
        assert git(tree, "remote") == ""
        (tree / "README.md").write_text("changed\n")
        assert git(tree, "status", "--porcelain") == "M README.md"
        git(tree, "commit", "-qam", "mine")
        assert git(tree, "fsck") == ""


def test_whatever_the_agent_does_to_the_copy_ours_does_not_notice(
    repo: Path, tmp_path: Path
) -> None:
    before = snapshot_user_state(repo)
    with copy_of(repo, tmp_path / "tree")() as tree:
        git(tree, "branch", "-f", "main", "HEAD~1")
        git(tree, "branch", "evil")
        git(tree, "config", "core.fsmonitor", "touch evil")
        git(tree, "tag", "v1")
        git(tree, "update-ref", "-d", f"refs/heads/{BRANCH}")
        git(tree, "gc", "--prune=now", "--quiet")
    assert snapshot_user_state(repo) == before
    assert git(repo, "fsck") == ""


def test_without_a_checkout_the_folder_is_empty(repo: Path, tmp_path: Path) -> None:
    with copy_of(repo, tmp_path / "tree", checkout=False)() as tree:
        assert list(tree.iterdir()) == []
        assert stat.S_IMODE(tree.stat().st_mode) == 0o700
    assert not tree.exists()


def test_no_filter_runs_and_no_line_end_changes(
    tmp_path: Path, sealed_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[filter "evil"]\n\tsmudge = touch {tmp_path}/evil; cat\n\trequired = true\n'
        "[core]\n\tautocrlf = true\n\teol = crlf\n"
        f"\tattributesFile = {home}/attributes\n\thooksPath = {home}/hooks\n"
    )
    (home / "attributes").write_text("* filter=evil\n")
    (home / "hooks").mkdir()
    for name in ("post-checkout", "post-index-change"):
        (home / "hooks" / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/evil\n")
        (home / "hooks" / name).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    path = make_repo(tmp_path / "repo", bare=True)
    files = {
        ".gitattributes": "* filter=evil text eol=crlf ident\n*.u working-tree-encoding=UTF-16\n",
        "a.txt": "one\n$Id$\ntwo\n",
        "b.u": "x\n",
    }
    commit_files(path, files)
    with copy_of(path, tmp_path / "tree")() as tree:
        assert {n: (tree / n).read_text() for n in files} == files
        assert git(tree, "status", "--porcelain") == ""
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", ["normal", "bare", "mirror", "single-branch", "shallow"])
def test_every_kind_of_clone_lends_its_objects(repo: Path, tmp_path: Path, kind: CloneKind) -> None:
    remote = bare_remote(tmp_path / "remote.git", {"a": "1"})
    commit_files(remote, {"b": "2"})
    path = clone(remote, tmp_path / "clone", kind)
    with copy_of(path, tmp_path / "tree", tip(path))() as tree:
        assert (tree / "b").read_text() == "2"
        assert git(tree, "status", "--porcelain") == ""
        assert git(tree, "log", "--format=%s").splitlines()[0] == "Change files"


def test_a_partial_clone_lends_what_was_fetched_before(tmp_path: Path) -> None:
    remote = bare_remote(tmp_path / "remote.git", {"a": "1"})
    path = clone(remote, tmp_path / "clone", "partial")
    reader = Reader.open(str(path), os.environ)
    commit = tip(path)
    make = copy_of(path, tmp_path / "tree", commit)
    with pytest.raises(WorkingCopyError), make():
        pass
    Remote(reader.git, reader, "origin").prefetch([commit])
    with copy_of(path, tmp_path / "tree2", commit)() as tree:
        assert (tree / "a").read_text() == "1"


def test_a_linked_worktree_lends_the_main_repositorys_objects(repo: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", "--detach", str(linked))
    with copy_of(linked, tmp_path / "tree", tip(repo))() as tree:
        assert (tree / "README.md").exists()


@pytest.mark.parametrize(
    "name", ['qu"ote', "new\nline", "# hash", "sp ace", "naïve", "back\\slash"]
)
def test_a_repository_with_an_odd_name_lends_its_objects(tmp_path: Path, name: str) -> None:
    path = make_repo(tmp_path / name, {"a": "1"})
    with copy_of(path, tmp_path / "tree")() as tree:
        assert git(tree, "log", "--format=%s") == "Begin"


def test_a_submodule_stays_an_empty_folder(repo: Path, tmp_path: Path) -> None:
    handle = opened(repo)
    index = pygit2.Index()
    index.read_tree(handle.head.peel(pygit2.Commit).tree)
    index.add(
        pygit2.IndexEntry("vendor/lib", pygit2.Oid(hex="1" * 40), pygit2.enums.FileMode.COMMIT)
    )
    commit = store_commit(handle, index.write_tree(handle), [tip(repo)], "Add a submodule")
    with copy_of(repo, tmp_path / "tree", commit)() as tree:
        assert list((tree / "vendor/lib").iterdir()) == []


def test_a_tree_with_a_name_git_refuses_is_an_error_and_leaves_nothing(
    repo: Path, tmp_path: Path
) -> None:
    handle = opened(repo)
    inner = tree_with(handle, None, {"config": "evil"}, {})
    row = b"40000 .git\0" + bytes.fromhex(str(inner))
    tree = handle.odb.write(pygit2.enums.ObjectType.TREE, row)
    commit = store_commit(handle, tree, [], "Evil")
    make = copy_of(repo, tmp_path / "tree", commit)
    with pytest.raises(WorkingCopyError, match="could not be written"), make():
        pass
    assert not (tmp_path / "tree").exists()


def test_a_folder_with_something_in_it_is_not_taken(repo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "mine").write_text("x")
    make = copy_of(repo, folder)
    with pytest.raises(WorkingCopyError, match="is not empty"), make():
        pass
    assert (folder / "mine").read_text() == "x"


def test_a_link_where_the_folder_should_be_is_not_followed(repo: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "tree").symlink_to(target)
    make = copy_of(repo, tmp_path / "tree")
    with pytest.raises(WorkingCopyError), make():
        pass
    assert list(target.iterdir()) == []


def test_a_tree_of_thousands_of_files_is_written_whole(tmp_path: Path) -> None:
    path = make_repo(tmp_path / "repo", bare=True)
    handle = opened(path)
    blob = handle.create_blob(b"the same everywhere\n")
    index = pygit2.Index()
    for n in range(3_000):
        name = f"d{n // 200:03d}/f{n % 200:03d}.txt"
        index.add(pygit2.IndexEntry(name, blob, pygit2.enums.FileMode.BLOB))
    commit = store_commit(handle, index.write_tree(handle), [], "Many")
    with copy_of(path, tmp_path / "tree", commit)() as tree:
        assert len(list(tree.glob("d*/f*.txt"))) == 3_000


# -- removing ----------------------------------------------------------------------------------


def test_what_an_agent_leaves_behind_is_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    top = tmp_path / "top"
    (top / "shut/inner").mkdir(parents=True)
    (top / "shut/inner/file").write_text("x")
    (top / "link").symlink_to(outside)
    (top / "shut/link").symlink_to(outside)
    (top / ".removing-0").mkdir()
    (top / ".removing-0/x").write_text("x")
    os.mkfifo(top / "fifo")
    Path(os.fsdecode(os.fsencode(top) + b"/caf\xe9")).write_text("x")
    (top / "shut/inner").chmod(0)
    (top / "shut").chmod(0o500)
    top.chmod(0)
    assert remove_tree(top)
    assert not top.exists()
    assert (outside / "precious").exists()


def test_a_path_deeper_than_the_system_can_name_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    handle = os.open(top, os.O_RDONLY)
    for _ in range(1000):
        os.mkdir("deep", dir_fd=handle)
        inner = os.open("deep", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    assert remove_tree(top)
    assert not top.exists()


def test_removing_a_link_removes_the_link(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert remove_tree(tmp_path / "link")
    assert (tmp_path / "target").exists()


def test_removing_what_is_not_there_is_done_already(tmp_path: Path) -> None:
    assert remove_tree(tmp_path / "absent")
