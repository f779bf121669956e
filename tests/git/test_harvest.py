"""What an agent left in its folder, as changes of a tree: all that may come back, nothing else."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pygit2
import pytest

from orchestrator.git.comparison import LISTED
from orchestrator.git.harvest import Harvest, HarvestError, harvest
from orchestrator.git.objects import Mode
from orchestrator.git.reader import Reader
from orchestrator.git.workcopy import workcopy
from orchestrator.git.writer import TreeChange, Writer
from orchestrator.model.names import Oid, SweepName
from tests.support.repos import (
    Content,
    commit_files,
    git,
    make_repo,
    objects,
    opened,
    store_commit,
    tip,
)

AGENTS = Path(__file__).parents[2] / "fixtures" / "agents"
SWEEP = SweepName("historian", date(2026, 11, 30))
WRITES = ("docs/**", "**/*.md")
FILES: dict[str, Content] = {
    "README.md": "hello\n",
    "orchestrator.yaml": "schedules:\n",
    "docs/guide.md": "guide\n",
    "docs/old.md": "old\n",
    "docs/sub/deep.md": "deep\n",
    "docs/tool.sh": "#!/bin/sh\n",
    "docs/link.md": "guide.md",
    "src/main.c": "int main;\n",
    "src/other.c": "int other;\n",
    SWEEP.marker_path: "sweep: historian-2026-11-30\n",
    "runs/historian-2026-11-23/sweep.yaml": "sweep: historian-2026-11-23\n",
}
MODES = {"docs/tool.sh": Mode.EXECUTABLE, "docs/link.md": Mode.SYMLINK}


class Site:
    """A repository, and an agent's folder made from its tip."""

    def __init__(self, path: Path, folder: Path, base: Oid, *, checkout: bool) -> None:
        self.path, self.folder, self.base, self.checkout = path, folder, base, checkout
        self.reader = Reader.open(str(path), os.environ)
        self.writer = Writer(self.reader)

    @contextmanager
    def at_work(self) -> Iterator[Path]:
        reader = self.reader
        with workcopy(
            reader.git, reader, self.folder, self.base, SWEEP.branch, checkout=self.checkout
        ) as tree:
            yield tree

    def harvest(self, tree: Path, **given: int | tuple[str, ...]) -> Harvest:
        return harvest(
            self.writer,
            self.reader,
            tree,
            self.base,
            **{"writes": WRITES, "sweep": SWEEP, "checkout": self.checkout, **given},  # type: ignore[arg-type]
        )

    def contents(self, found: Harvest) -> dict[str, bytes | None]:
        read = opened(self.path).odb.read
        return {p: None if c is None else read(c.oid)[1] for p, c in found.changes.items()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    path = make_repo(tmp_path / "repo", bare=True)
    return Site(path, tmp_path / "tree", commit_files(path, FILES, modes=MODES), checkout=True)


@pytest.fixture
def empty(tmp_path: Path) -> Site:
    """An agent that starts without the files."""
    path = make_repo(tmp_path / "repo", bare=True)
    return Site(path, tmp_path / "tree", commit_files(path, FILES, modes=MODES), checkout=False)


def write(path: Path, text: str = "new\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(agent: str, tree: Path) -> None:
    request = f'{{"slug": "{SWEEP.slug}"}}'
    subprocess.run([AGENTS / agent], input=request.encode(), cwd=tree, check=True, timeout=20)


# -- what comes back ---------------------------------------------------------------------------


def test_an_untouched_copy_is_no_change_at_all(site: Site) -> None:
    with site.at_work() as tree:
        assert site.harvest(tree) == Harvest({}, (), 0)


def test_edits_new_files_and_deletions_come_back(site: Site) -> None:
    with site.at_work() as tree:
        write(tree / "docs/guide.md", "guide\nmore\n")
        write(tree / "docs/new/page.md")
        write(tree / SWEEP.folder / "docs-delta.md", "delta\n")
        (tree / "docs/old.md").unlink()
        found = site.harvest(tree)
    assert site.contents(found) == {
        "docs/guide.md": b"guide\nmore\n",
        "docs/new/page.md": b"new\n",
        "docs/old.md": None,
        f"{SWEEP.folder}/docs-delta.md": b"delta\n",
    }
    assert found.left_out == ()
    assert found.bytes == len("guide\nmore\nnew\ndelta\n")
    tree_oid = site.writer.tree(site.base, found.changes)
    assert "docs/old.md" not in git(site.path, "ls-tree", "-r", "--name-only", tree_oid)


def test_the_executable_bit_comes_back_without_new_contents(site: Site) -> None:
    with site.at_work() as tree:
        (tree / "docs/guide.md").chmod(0o755)
        (tree / "docs/tool.sh").chmod(0o600)
        found = site.harvest(tree)
    blob = site.reader.entry(site.base, "docs/guide.md")
    assert blob is not None
    assert found.changes["docs/guide.md"] == TreeChange(blob.oid, Mode.EXECUTABLE)
    tool = found.changes["docs/tool.sh"]
    assert tool is not None
    assert tool.mode == Mode.FILE
    assert found.bytes == 0


def test_a_file_may_become_a_folder_and_a_folder_a_file(site: Site) -> None:
    with site.at_work() as tree:
        (tree / "docs/old.md").unlink()
        write(tree / "docs/old.md/inner.md")
        (tree / "docs/sub/deep.md").unlink()
        (tree / "docs/sub").rmdir()
        write(tree / "docs/sub")
        found = site.harvest(tree)
    assert site.contents(found) == {
        "docs/old.md": None,
        "docs/old.md/inner.md": b"new\n",
        "docs/sub": b"new\n",
        "docs/sub/deep.md": None,
    }
    listed = git(
        site.path,
        "ls-tree",
        "-r",
        "--name-only",
        site.writer.tree(site.base, found.changes),
        "docs/",
    )
    assert "docs/old.md/inner.md" in listed
    assert "docs/sub\n" in listed + "\n"


def test_links_inside_the_tree_come_back_as_links(site: Site) -> None:
    with site.at_work() as tree:
        (tree / "docs/link.md").unlink()
        (tree / "docs/link.md").symlink_to("old.md")
        (tree / "docs/readme.md").symlink_to("../README.md")
        found = site.harvest(tree)
    assert site.contents(found) == {"docs/link.md": b"old.md", "docs/readme.md": b"../README.md"}
    assert {c.mode for c in found.changes.values() if c is not None} == {Mode.SYMLINK}


def test_bytes_are_taken_as_they_are(site: Site) -> None:
    data = b"\xff\xfe\r\n$Id$\n\0"
    with site.at_work() as tree:
        (tree / "docs/raw.md").write_bytes(data)
        found = site.harvest(tree)
    assert site.contents(found) == {"docs/raw.md": data}


# -- without a checkout ------------------------------------------------------------------------


def test_without_a_checkout_what_is_absent_is_unchanged(empty: Site) -> None:
    with empty.at_work() as tree:
        write(tree / "docs/guide.md", "guide\nmore\n")
        write(tree / "README.md", "hello\n")
        write(tree / "docs/tool.sh", "#!/bin/sh\nset -e\n")
        found = empty.harvest(tree)
    assert empty.contents(found) == {
        "docs/guide.md": b"guide\nmore\n",
        "docs/tool.sh": b"#!/bin/sh\nset -e\n",
    }
    tool = found.changes["docs/tool.sh"]
    assert tool is not None
    assert tool.mode == Mode.EXECUTABLE


def test_without_a_checkout_nothing_is_replaced_by_something_else(empty: Site) -> None:
    with empty.at_work() as tree:
        write(tree / "docs/link.md")
        write(tree / "docs/sub")
        write(tree / "README.md/inner.md")
        (tree / "docs/guide.md").symlink_to("old.md")
        found = empty.harvest(tree)
    assert found.changes == {}
    assert dict(found.left_out) == {
        "README.md/inner.md": "something else stands where its folder would be",
        "docs/guide.md": "a file stands there",
        "docs/link.md": "a link stands there",
        "docs/sub": "a folder stands there",
    }


# -- what stays out ----------------------------------------------------------------------------


def test_what_an_agent_writes_where_it_may_not_is_named_and_stays_out(site: Site) -> None:
    with site.at_work() as tree:
        run("writes-outside", tree)
        found = site.harvest(tree)
        escaped = [n for n in ("escaped-by-hook", "escaped-by-config") if (tree / n).exists()]
    (site.folder.parent / "escape").unlink()
    assert site.contents(found) == {"docs/allowed.md": b"the one thing that is allowed\n"}
    assert escaped == []
    steers = "steers other programs, and `writes` does not name it"
    assert dict(found.left_out) == {
        ".claude/settings.json": f"`.claude` {steers}",
        ".gitattributes": "`.gitattributes` steers git",
        ".github/workflows/evil.yml": f"`.github` {steers}",
        "CLAUDE.md": f"`CLAUDE.md` {steers}",
        "docs/.GIT": "git's own",
        "docs/passwd.md": "a link that may lead out of the tree",
        "docs/up.md": "a link that may lead out of the tree",
        "main.c": "outside `writes`",
        "orchestrator.yaml": "the policy is not the agent's to change",
        "runs/historian-2026-11-30/sweep.yaml": "the marker is not the agent's to change",
        "runs/other-2026-01-01/sweep.yaml": "another run's folder",
    }


def test_deleting_what_is_not_its_own_is_left_out_folder_by_folder(site: Site) -> None:
    with site.at_work() as tree:
        run("deletes-files", tree)
        found = site.harvest(tree)
    assert found.changes == {"docs/old.md": None}
    assert dict(found.left_out) == {
        "orchestrator.yaml": "deleted: the policy is not the agent's to change",
        "runs/historian-2026-11-23/sweep.yaml": "deleted: another run's folder",
        "runs/historian-2026-11-30/sweep.yaml": "deleted: the marker is not the agent's to change",
        "src/": "deleted: outside `writes`",
    }


def test_a_nested_repository_stays_out_whole(site: Site) -> None:
    with site.at_work() as tree:
        run("nested-repo", tree)
        found = site.harvest(tree)
    assert found.changes == {}
    assert found.left_out == (("docs/nested", "a repository of its own"),)


def test_a_repository_made_in_a_folder_of_the_branch_does_not_hide_the_folder(site: Site) -> None:
    with site.at_work() as tree:
        write(tree / "docs/.git/HEAD", "ref: refs/heads/main\n")
        write(tree / "docs/sub/.git", "gitdir: /elsewhere\n")
        write(tree / "docs/sub/deep.md", "deeper\n")
        found = site.harvest(tree)
    assert site.contents(found) == {"docs/sub/deep.md": b"deeper\n"}
    assert found.left_out == (("docs/.git", "git's own"), ("docs/sub/.git", "git's own"))


def test_a_pipe_is_not_waited_on(site: Site) -> None:
    with site.at_work() as tree:
        run("fifo", tree)
        found = site.harvest(tree)
    assert found.changes == {}
    assert found.left_out == (("docs/pipe.md", "neither a file nor a link"),)


def test_a_folder_turned_into_a_link_is_not_followed(site: Site, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside / "deep.md", "stolen\n")
    with site.at_work() as tree:
        (tree / "docs/sub/deep.md").unlink()
        (tree / "docs/sub").rmdir()
        (tree / "docs/sub").symlink_to(outside)
        found = site.harvest(tree)
    assert found.changes == {}
    assert found.left_out == (("docs/sub", "a link that may lead out of the tree"),)


def test_a_file_in_place_of_a_folder_that_may_not_go_stays_out(site: Site) -> None:
    with site.at_work() as tree:
        for name in ("main.c", "other.c"):
            (tree / "src" / name).unlink()
        (tree / "src").rmdir()
        write(tree / "src")
        found = site.harvest(tree, writes=("src", "docs/**"))
    assert found.changes == {}
    assert dict(found.left_out) == {
        "src": "a folder stands there",
        "src/": "deleted: outside `writes`",
    }


def test_a_folder_in_place_of_a_file_that_may_not_go_stays_out(site: Site) -> None:
    with site.at_work() as tree:
        (tree / "src/main.c").unlink()
        write(tree / "src/main.c/README.md")
        found = site.harvest(tree)
    assert found.changes == {}
    assert [path for path, _ in found.left_out] == ["src/main.c", "src/main.c/README.md"]
    site.writer.tree(site.base, found.changes)


def test_a_submodule_is_left_alone(site: Site, tmp_path: Path) -> None:
    handle = opened(site.path)
    index = pygit2.Index()
    index.read_tree(handle[site.base].peel(pygit2.Commit).tree)
    link = pygit2.IndexEntry("docs/lib", pygit2.Oid(hex="1" * 40), pygit2.enums.FileMode.COMMIT)
    index.add(link)
    commit = store_commit(handle, index.write_tree(handle), [site.base], "Add a submodule")
    other = Site(site.path, tmp_path / "tree2", commit, checkout=True)
    with other.at_work() as tree:
        write(tree / "docs/lib/README.md")
        assert other.harvest(tree).changes == {}
        (tree / "docs/lib/README.md").unlink()
        (tree / "docs/lib").rmdir()
        assert other.harvest(tree) == Harvest({}, (), 0)
        write(tree / "docs/lib")
        assert other.harvest(tree).left_out == (("docs/lib", "a submodule stands there"),)


def test_a_name_that_is_not_utf8_stays_out(site: Site) -> None:
    with site.at_work() as tree:
        name = os.fsdecode(b"docs/caf\xe9.md")
        write(tree / name)
        found = site.harvest(tree)
    assert found.left_out == ((name, "a name with characters that cannot be shown"),)


def test_folders_without_end_stay_out(site: Site) -> None:
    with site.at_work() as tree:
        write(tree / "docs" / ("d/" * 150) / "x.md")
        found = site.harvest(tree)
    assert found.changes == {}
    assert len(found.left_out) == 1


def test_only_the_first_paths_left_out_are_named_and_the_rest_counted(site: Site) -> None:
    with site.at_work() as tree:
        for n in range(LISTED + 50):
            write(tree / f"build/{n}.o")
        found = site.harvest(tree)
    assert (len(found.left_out), found.more) == (LISTED, 50)


def test_what_the_agent_did_to_its_own_git_folder_changes_nothing(site: Site) -> None:
    with site.at_work() as tree:
        write(tree / "docs/guide.md", "more\n")
        write(tree / ".git/info/attributes", "* filter=evil\n")
        write(tree / ".git/info/exclude", "*\n")
        write(tree / ".gitignore", "*\n")
        write(tree / ".git/config", f"[core]\nfsmonitor = touch {tree}/evil\n")
        (tree / ".git/index").unlink()
        found = site.harvest(tree)
        assert not (tree / "evil").exists()
    assert site.contents(found) == {"docs/guide.md": b"more\n"}


# -- limits ------------------------------------------------------------------------------------


def test_a_file_of_a_terabyte_is_refused_at_once(site: Site) -> None:
    with site.at_work() as tree:
        run("huge-files", tree)
        before = objects(site.path)
        with pytest.raises(HarvestError, match=r"more than 4,000,000 bytes .docs/huge.md"):
            site.harvest(tree)
    assert objects(site.path) == before


def test_a_huge_file_outside_writes_is_no_reason_to_lose_the_rest(site: Site) -> None:
    with site.at_work() as tree:
        os.truncate(tree / "src/main.c", 1 << 40)
        write(tree / "docs/guide.md", "more\n")
        found = site.harvest(tree)
    assert list(found.changes) == ["docs/guide.md"]
    assert found.left_out == (("src/main.c", "outside `writes`"),)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda docs: [(docs / f"{n}.md").write_text("new") for n in range(4)],
        lambda docs: [p.unlink() for p in docs.iterdir() if not p.is_dir()],
    ],
    ids=["new", "deleted"],
)
def test_more_files_than_anybody_reviews_are_refused_whole(
    site: Site, spoil: Callable[[Path], None]
) -> None:
    with site.at_work() as tree:
        spoil(tree / "docs")
        before = objects(site.path)
        with pytest.raises(HarvestError, match=r"more than 3 files.*`max_files`"):
            site.harvest(tree, max_files=3)
    assert objects(site.path) == before


def test_the_bytes_of_all_files_together_are_limited(site: Site) -> None:
    with site.at_work() as tree:
        write(tree / "docs/a.md", "x" * 60)
        write(tree / "docs/b.md", "x" * 40)
        assert site.harvest(tree, max_bytes=100).bytes == 100
        with pytest.raises(HarvestError, match=r"more than 99 bytes.*`max_bytes`"):
            site.harvest(tree, max_bytes=99)


def test_what_the_commit_ignores_is_named_folder_by_folder_and_uses_up_no_limit(site: Site) -> None:
    base = commit_files(
        site.path,
        {".gitignore": "node_modules/\n*.pyc\n/runs\n!keep.pyc\n", "docs/old.pyc": "old\n"},
    )
    site = Site(site.path, site.folder, base, checkout=True)
    with site.at_work() as tree:
        for count in range(300):
            write(tree / f"docs/node_modules/m{count}/README.md", "x" * 100)
        write(tree / "docs/a.pyc", "x")
        write(tree / "docs/keep.pyc", "kept\n")
        write(tree / "docs/old.pyc", "new\n")
        write(tree / f"runs/{SWEEP.slug}/docs-delta.md", "delta\n")
        write(tree / "runs/other-2026-01-01/x.md", "x")
        found = site.harvest(tree, max_files=3, max_bytes=200)
    assert site.contents(found) == {
        "docs/keep.pyc": b"kept\n",
        "docs/old.pyc": b"new\n",
        f"runs/{SWEEP.slug}/docs-delta.md": b"delta\n",
    }
    assert dict(found.left_out) == {
        "docs/node_modules/": "git ignores it",
        "docs/a.pyc": "git ignores it",
        "runs/other-2026-01-01/": "git ignores it",
    }


def test_an_agent_cannot_have_its_files_ignored_nor_noticed(site: Site) -> None:
    with site.at_work() as tree:
        write(tree / ".gitignore", "*\n")
        write(tree / ".git/info/exclude", "*\n")
        write(tree / "docs/new.md", "new\n")
        write(tree / "main.c", "x")
        found = site.harvest(tree)
    assert site.contents(found) == {"docs/new.md": b"new\n"}
    assert dict(found.left_out) == {
        ".gitignore": "`.gitignore` steers other programs, and `writes` does not name it",
        "main.c": "outside `writes`",
    }


def test_one_change_among_thousands_of_files_is_found(tmp_path: Path) -> None:
    path = make_repo(tmp_path / "repo", bare=True)
    handle = opened(path)
    index = pygit2.Index()
    blob = handle.create_blob(b"the same everywhere\n")
    for n in range(3_000):
        name = f"d{n // 100:03d}/f{n % 100:03d}.md"
        index.add(pygit2.IndexEntry(name, blob, pygit2.enums.FileMode.BLOB))
    commit = store_commit(handle, index.write_tree(handle), [], "Many")
    many = Site(path, tmp_path / "tree", commit, checkout=True)
    with many.at_work() as tree:
        write(tree / "d020/f050.md", "changed\n")
        assert list(many.harvest(tree).changes) == ["d020/f050.md"]


def test_the_tip_is_where_it_was(site: Site) -> None:
    with site.at_work() as tree:
        run("ok", tree)
        site.harvest(tree)
    assert tip(site.path) == site.base
