"""Talking to remotes, over file, http and ssh: outcomes are read, never guessed."""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pygit2
import pytest

from orchestrator.errors import CannotLookError, RemoteUnreachableError
from orchestrator.git import wire
from orchestrator.git.reader import Reader
from orchestrator.git.wire import Remote, RemoteHead
from orchestrator.model.names import Oid, Ref
from tests.support import repos, servers

REF = Ref("refs/heads/run/historian-2026-11-30")
TRACKING = Ref("refs/remotes/origin/run/historian-2026-11-30")


@dataclass(frozen=True)
class Place:
    """A remote and a clone of it, over one transport."""

    up: Path
    clone: Path
    server: servers.HttpServer | None
    environ: dict[str, str]

    @property
    def remote(self) -> Remote:
        reader = Reader.open(str(self.clone), self.environ)
        return Remote(reader.git, reader, "origin")

    @property
    def base(self) -> Oid:
        return repos.tip(self.up)

    def commit(self, name: str, base: Oid | None = None) -> Oid:
        """A commit in the clone that the remote has not seen."""
        repo = repos.opened(self.clone)
        parent = base or self.base
        tree = repos.tree_with(repo, repo[parent].peel(pygit2.Tree), {name: name}, {})
        return repos.store_commit(repo, tree, [parent], name)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.SshServer]:
    with servers.ssh_server(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def placed(tmp_path: Path, url: str, server: servers.HttpServer | None, **environ: str) -> Place:
    clone = repos.make_repo(tmp_path / "clone")
    repo = repos.opened(clone)
    repo.remotes.create("origin", url)
    place = Place(tmp_path / "up.git", clone, server, {**os.environ, **environ})
    repos.git(clone, "fetch", "-q", str(place.up), "main:refs/remotes/origin/main")
    return place


@pytest.fixture(params=["file", "http", "ssh"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    up = repos.bare_remote(tmp_path / "up.git", {"a.txt": "a\n"})
    if request.param == "file":
        yield placed(tmp_path, f"file://{up}", None)
    elif request.param == "http":
        with servers.http_server(tmp_path) as server:
            yield placed(tmp_path, server.url("up.git"), server)
    else:
        ssh: servers.SshServer = request.getfixturevalue("sshd")
        yield placed(tmp_path, ssh.url(up), None, GIT_SSH_COMMAND=ssh.command)


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Place]:
    repos.bare_remote(tmp_path / "up.git", {"a.txt": "a\n"})
    with servers.http_server(tmp_path) as server:
        yield placed(tmp_path, server.url("up.git"), server)


@pytest.fixture
def local(tmp_path: Path) -> Place:
    up = repos.bare_remote(tmp_path / "up.git", {"a.txt": "a\n"})
    return placed(tmp_path, f"file://{up}", None)


# -- over every transport --------------------------------------------------------------------


def test_a_branch_lives_from_create_to_delete(place: Place) -> None:
    remote = place.remote
    assert remote.head() == RemoteHead("main", has_run_branch=False)
    first, second = place.commit("1"), place.commit("2")
    won = remote.create(first, REF)
    assert (won.flag, won.answered) == ("*", True)
    assert remote.create(first, REF).flag == "="
    lost = remote.create(second, REF)
    assert (lost.flag, lost.reason, lost.answered) == ("!", "stale info", True)
    assert remote.ls("refs/heads/run/*") == {REF: first}
    remote.fetch("main")
    assert repos.refs(place.clone)[TRACKING] == first
    third = place.commit("3", first)
    assert remote.update(third, REF, first).flag == " "
    assert remote.update(place.commit("4", first), REF, first).flag == "!"
    assert remote.delete(REF, first).flag == "!"
    assert remote.delete(REF, third).flag == "-"
    assert remote.ls("refs/heads/run/*") == {}
    remote.fetch("main")
    assert TRACKING not in repos.refs(place.clone)


def test_a_hook_that_declines_is_heard(place: Place) -> None:
    servers.decline_pushes(place.up, "no sweeps on Sundays")
    outcome = place.remote.create(place.commit("1"), REF)
    assert (outcome.flag, outcome.answered) == ("!", True)
    assert outcome.reason == "pre-receive hook declined"
    assert outcome.server == ("no sweeps on Sundays",)
    assert place.remote.ls(REF) == {}


def test_a_lost_acknowledgement_is_no_answer(place: Place) -> None:
    servers.die_after_push(place.up)
    ours = place.commit("1")
    outcome = place.remote.create(ours, REF)
    assert not outcome.answered
    assert place.remote.ls(REF) == {REF: ours}


def test_a_branch_called_run_is_seen_and_refuses_others(place: Place) -> None:
    repos.git(place.up, "update-ref", "refs/heads/run", place.base)
    assert place.remote.head().has_run_branch
    outcome = place.remote.create(place.commit("1"), REF)
    assert (outcome.flag, outcome.answered) == ("!", True)
    assert "refs/heads/run" in outcome.server[0]


def test_one_branch_is_brought_here(place: Place) -> None:
    tip = repos.commit_files(place.up, {"s": "s"}, branch=REF.removeprefix("refs/heads/"))
    assert place.remote.fetch_ref(REF) == tip
    assert repos.refs(place.clone)[TRACKING] == tip
    assert place.remote.fetch_ref(Ref(REF + "x")) is None


# -- pushes ----------------------------------------------------------------------------------


def test_a_connection_dropped_after_the_push_is_no_answer(http: Place) -> None:
    assert http.server is not None
    http.server.after_push = "drop"
    ours = http.commit("1")
    outcome = http.remote.create(ours, REF)
    assert (outcome.flag, outcome.answered) == (None, False)
    assert "hung up" in outcome.reason
    assert http.remote.ls(REF) == {REF: ours}


def test_a_server_that_never_answers_is_left_at_the_limit(
    http: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http.server is not None
    monkeypatch.setattr(wire, "ASK_TIMEOUT_S", 0.5)
    http.server.after_push = "hang"
    started = time.monotonic()
    outcome = http.remote.create(http.commit("1"), REF)
    assert time.monotonic() - started < 4
    assert (outcome.flag, outcome.answered) == (None, False)
    assert outcome.reason == "no answer within 0.5 s"
    http.server.hang = True
    with pytest.raises(RemoteUnreachableError, match=r"no answer within 0\.5 s"):
        http.remote.ls(REF)
    assert _speakers(http.server.port) == []


def _speakers(port: int) -> list[str]:
    """Command lines of git and ssh processes that speak to a port of ours."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        program = line.partition(" ")[0].rpartition("/")[2]
        if str(port) in line and program in ("git", "git-remote-http", "ssh"):
            found.append(line)
    return found


@pytest.mark.parametrize("scheme", ["http", "ssh", "git"])
def test_a_port_that_accepts_and_says_nothing_is_left_at_the_limit(
    local: Place, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(wire, "ASK_TIMEOUT_S", 0.5)
    with servers.silent_server() as port:
        repos.git(local.clone, "remote", "set-url", "origin", f"{scheme}://127.0.0.1:{port}/x")
        started = time.monotonic()
        with pytest.raises(RemoteUnreachableError, match="no answer within"):
            local.remote.head()
        assert time.monotonic() - started < 4
        assert _speakers(port) == []


def test_an_update_that_would_drop_commits_is_refused_here(local: Place) -> None:
    theirs = local.commit("theirs")
    local.remote.create(theirs, REF)
    with pytest.raises(ValueError, match="drop commits"):
        local.remote.update(local.commit("ours"), REF, theirs)
    assert local.remote.ls(REF) == {REF: theirs}


def test_a_branch_somebody_deleted_is_not_made_again_by_an_update(local: Place) -> None:
    first = local.commit("1")
    local.remote.create(first, REF)
    repos.git(local.up, "update-ref", "-d", REF)
    assert local.remote.update(local.commit("2", first), REF, first).flag == "!"
    assert local.remote.delete(REF, first).flag != "-"
    assert local.remote.ls(REF) == {}


def test_a_background_fetch_does_not_defeat_the_lease(local: Place) -> None:
    first = local.commit("1")
    local.remote.create(first, REF)
    repos.commit_files(local.up, {"t": "t"}, branch=REF.removeprefix("refs/heads/"))
    local.remote.fetch("main")
    assert local.remote.update(local.commit("2", first), REF, first).flag == "!"


def test_the_users_push_configuration_changes_nothing(local: Place, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    hook = local.clone / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trace}\nexit 1\n")
    hook.chmod(0o755)
    for key, value in {
        "push.gpgSign": "true",
        "push.followTags": "true",
        "push.default": "matching",
        "push.pushOption": "ci.skip",
        "push.recurseSubmodules": "only",
        "push.autoSetupRemote": "true",
        "remote.origin.mirror": "true",
        "remote.origin.push": "refs/heads/*:refs/heads/stolen/*",
    }.items():
        repos.git(local.clone, "config", key, value)
    ours = local.commit("1")
    repos.git(local.clone, "tag", "-a", "v1", "-m", "v1", ours)
    repos.git(local.clone, "update-ref", "refs/heads/mine", ours)
    config = (local.clone / ".git/config").read_bytes()
    assert local.remote.create(ours, REF).flag == "*"
    assert set(repos.refs(local.up)) == {"refs/heads/main", REF}
    assert not trace.exists()
    assert (local.clone / ".git/config").read_bytes() == config


def test_four_clones_that_claim_at_once_have_one_winner(place: Place, tmp_path: Path) -> None:
    remotes, commits = [], []
    for n in range(4):
        clone = tmp_path / f"c{n}"
        repos.git(tmp_path, "clone", "-q", str(place.up), str(clone))
        repos.git(clone, "remote", "set-url", "origin", _url(place))
        other = Place(place.up, clone, place.server, place.environ)
        remotes.append(other.remote)
        commits.append(other.commit(str(n)))
    flags: dict[int, str | None] = {}

    def claim(n: int) -> None:
        flags[n] = remotes[n].create(commits[n], REF).flag

    threads = [threading.Thread(target=claim, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(str(f) for f in flags.values()) == ["!", "!", "!", "*"]
    (winner,) = [n for n, flag in flags.items() if flag == "*"]
    assert place.remote.ls(REF) == {REF: commits[winner]}


def _url(place: Place) -> str:
    return repos.git(place.clone, "config", "remote.origin.url")


# -- asking and fetching ---------------------------------------------------------------------


def test_a_remote_that_wants_a_password_is_an_error_not_a_prompt(http: Place) -> None:
    assert http.server is not None
    http.server.password = "hunter2"
    with pytest.raises(RemoteUnreachableError) as caught:
        http.remote.head()
    assert "terminal prompts disabled" in caught.value.message
    repos.git(http.clone, "remote", "set-url", "origin", http.server.url("up.git", "ann:wrong"))
    with pytest.raises(RemoteUnreachableError, match="Authentication failed") as caught:
        http.remote.head()
    assert "wrong" not in caught.value.message
    assert not http.remote.create(http.commit("1"), REF).answered
    repos.git(http.clone, "remote", "set-url", "origin", http.server.url("up.git", "ann:hunter2"))
    assert http.remote.head().default_branch == "main"


def test_a_credential_helper_may_read_the_environment(http: Place) -> None:
    assert http.server is not None
    http.server.password = "hunter2"
    helper = '!f() { echo username=ann; echo "password=$MY_TOKEN"; }; f'
    repos.git(http.clone, "config", "credential.helper", helper)
    environ = {**http.environ, "MY_TOKEN": "hunter2"}
    assert Place(http.up, http.clone, http.server, environ).remote.head().default_branch == "main"


def test_a_remote_that_is_not_there_says_so(local: Place) -> None:
    repos.git(local.clone, "remote", "set-url", "origin", str(local.up) + "-gone")
    for ask in (
        local.remote.head,
        lambda: local.remote.fetch("main"),
        lambda: local.remote.ls("x"),
    ):
        with pytest.raises(RemoteUnreachableError, match="does not appear to be a git repository"):
            ask()


def test_an_empty_remote_has_no_default_branch(tmp_path: Path) -> None:
    repos.bare_remote(tmp_path / "up.git")
    clone = repos.make_repo(tmp_path / "clone", {"a": "a"})
    repos.git(clone, "remote", "add", "origin", str(tmp_path / "up.git"))
    reader = Reader.open(str(clone), dict(os.environ))
    assert Remote(reader.git, reader, "origin").head() == RemoteHead(None, has_run_branch=False)


def test_a_default_branch_the_remote_lacks_is_named(local: Place) -> None:
    with pytest.raises(CannotLookError) as caught:
        local.remote.fetch("trunk")
    assert "refs/heads/trunk" in caught.value.message
    assert caught.value.hint is not None
    assert "--default-branch" in caught.value.hint


@pytest.mark.parametrize("name", ["none", "--upload-pack=evil", ""])
def test_only_a_configured_remote_is_talked_to(local: Place, name: str) -> None:
    reader = Reader.open(str(local.clone), local.environ)
    with pytest.raises(CannotLookError, match="has no remote called"):
        Remote(reader.git, reader, name)


def test_a_remote_with_a_slash_in_its_name_works(local: Place) -> None:
    repos.git(local.clone, "remote", "rename", "origin", "team/fork")
    reader = Reader.open(str(local.clone), local.environ)
    remote = Remote(reader.git, reader, "team/fork")
    ours = local.commit("1")
    assert remote.create(ours, REF).flag == "*"
    remote.fetch("main")
    (found,) = reader.sweep_refs(reader.remotes())
    assert (found.remote, found.oid) == ("team/fork", ours)


@pytest.mark.parametrize("kind", list(repos._CLONE_OPTIONS))
def test_every_kind_of_clone_sees_open_sweeps_and_keeps_its_own_refs(
    tmp_path: Path, kind: repos.CloneKind
) -> None:
    up = repos.bare_remote(tmp_path / "up.git", {"a.txt": "a\n"})
    repos.commit_files(up, {"b.txt": "b\n"})
    clone = repos.clone(up, tmp_path / "c", kind)
    repos.git(clone, "update-ref", "refs/heads/run/mine-2026-11-30", repos.tip(up))
    repos.git(clone, "update-ref", "refs/heads/mine", repos.tip(up))
    repos.git(clone, "tag", "kept")
    sweep = repos.commit_files(up, {"s": "s"}, branch=REF.removeprefix("refs/heads/"), start="main")
    main = repos.commit_files(up, {"c.txt": "c\n"})
    repos.commit_files(up, {"x": "x"}, branch="unasked", start="main")
    repos.git(up, "tag", "unasked")
    before, untouched = repos.snapshot_user_state(clone), repos.refs(clone)
    reader = Reader.open(str(clone), dict(os.environ))
    Remote(reader.git, reader, "origin").fetch("main")
    after = repos.refs(clone)
    assert after[TRACKING] == sweep
    assert after[Ref("refs/remotes/origin/main")] == main
    assert set(after) - set(untouched) <= {TRACKING, "refs/remotes/origin/main"}
    assert set(untouched) <= set(after)
    assert repos.snapshot_user_state(clone) == before
    assert not list(Path(reader.common_dir).rglob("FETCH_HEAD"))
    repos.git(up, "update-ref", "-d", REF)
    Remote(reader.git, reader, "origin").fetch("main")
    assert TRACKING not in repos.refs(clone)
    assert set(untouched) <= set(repos.refs(clone))


def test_a_branch_run_that_became_a_folder_of_branches_does_not_block_the_fetch(
    local: Place,
) -> None:
    repos.git(local.up, "update-ref", "refs/heads/run", local.base)
    repos.git(local.clone, "fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*")
    repos.git(local.clone, "pack-refs", "--all")
    assert Ref("refs/remotes/origin/run") in repos.refs(local.clone)
    local.remote.fetch("main")  # it is still there: nothing to do
    assert Ref("refs/remotes/origin/run") in repos.refs(local.clone)
    repos.git(local.up, "update-ref", "-d", "refs/heads/run")
    repos.git(local.up, "update-ref", REF, local.base)
    local.remote.fetch("main")
    assert repos.refs(local.clone)[TRACKING] == local.base


@pytest.mark.parametrize(
    "name", ["refs/remotes/origin/main.lock", f"{TRACKING}.lock", "packed-refs.lock"]
)
def test_a_lock_that_a_killed_fetch_left_is_removed_when_it_is_old(local: Place, name: str) -> None:
    repos.git(local.up, "update-ref", "refs/heads/run/gone-2026-11-30", local.base)
    local.remote.fetch("main")
    repos.git(local.clone, "pack-refs", "--all")
    repos.git(local.up, "update-ref", "-d", "refs/heads/run/gone-2026-11-30")
    repos.git(local.up, "update-ref", REF, repos.commit_files(local.up, {"b": "b"}))
    lock = local.clone / ".git" / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(RemoteUnreachableError, match=r"\.lock': File exists"):
        local.remote.fetch("main")
    os.utime(lock, (time.time() - 700,) * 2)
    remote = local.remote
    remote.fetch("main")
    assert remote.broken_locks == (str(lock),)
    assert repos.refs(local.clone)[TRACKING] == local.base


@pytest.mark.parametrize("name", ["main:refs/heads/x", "*", "ma*", "a b", "", "a..b", "@{-1}"])
def test_a_default_branch_that_is_no_name_widens_nothing(local: Place, name: str) -> None:
    before = repos.refs(local.clone)
    with pytest.raises(CannotLookError, match="is not a branch's name"):
        local.remote.fetch(name)
    assert repos.refs(local.clone) == before


def test_the_users_fetch_configuration_changes_nothing(local: Place) -> None:
    for key, value in {
        "fetch.pruneTags": "true",
        "fetch.prune": "false",
        "remote.origin.pruneTags": "true",
        "remote.origin.tagOpt": "--tags",
        "remote.origin.fetch": "+refs/heads/*:refs/heads/*",
        "fetch.recurseSubmodules": "true",
        "fetch.writeCommitGraph": "true",
    }.items():
        repos.git(local.clone, "config", key, value)
    repos.git(local.clone, "tag", "mine", local.base)
    repos.git(local.up, "tag", "theirs", local.base)
    local.remote.fetch("main")
    assert set(repos.refs(local.clone)) == {"refs/remotes/origin/main", "refs/tags/mine"}


def test_where_pushes_go_elsewhere_both_urls_are_told_without_passwords(local: Place) -> None:
    repos.git(local.clone, "config", "remote.origin.pushurl", "https://ann:hunter2@host/x.git")
    fetch, push = local.remote.urls()
    assert fetch == f"file://{local.up}"
    assert push == ("https://host/x.git",)


def test_patterns_match_whole_names(local: Place) -> None:
    other = Ref("refs/heads/other/refs/heads/run/x-2026-11-30")
    repos.git(local.up, "update-ref", other, local.base)
    repos.git(local.up, "update-ref", REF, local.base)
    assert set(local.remote.ls("refs/heads/run/*")) == {REF}
    assert local.remote.ls("refs/heads/run/historian-*") == {REF: local.base}
    assert local.remote.ls("refs/heads/run/hist*-2026-11-29") == {}


def test_every_missing_file_of_a_commit_comes_in_one_fetch(tmp_path: Path) -> None:
    up = repos.bare_remote(tmp_path / "up.git", {f"d{n}/f": str(n) for n in range(20)})
    with servers.http_server(tmp_path) as server:
        clone = repos.clone(server.url("up.git"), tmp_path / "c", "partial")
        reader = Reader.open(str(clone), dict(os.environ))
        tip = repos.tip(up)
        entries = [reader.entry(tip, f"d{n}/f") for n in range(20)]
        assert not any(reader.has(e.oid) for e in entries if e is not None)
        server.requests.clear()
        remote = Remote(reader.git, reader, "origin")
        remote.prefetch([tip])
        posts = [r for r in server.requests if r.startswith("POST")]
        assert all(reader.has(e.oid) for e in entries if e is not None)
        assert len(posts) <= 2  # the refs, and the pack
        server.requests.clear()
        remote.prefetch([tip])
        assert server.requests == []


def test_a_whole_clone_prefetches_nothing(http: Place) -> None:
    assert http.server is not None
    http.remote.prefetch([http.base])
    assert http.server.requests == []


def test_fetching_notices_a_branch_name_that_is_none(local: Place) -> None:
    with pytest.raises(ValueError, match="not a branch's full name"):
        local.remote.fetch_ref(Ref("--upload-pack=evil"))
