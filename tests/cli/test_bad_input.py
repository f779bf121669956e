"""Everything people can write wrongly: policies, markers, names, options. Each gets one sentence
with its place and a way out, the exit code that is promised, and changes nothing.
"""

from pathlib import Path

import pytest

from tests.cli.conftest import POLICY, Run
from tests.support import repos
from tests.support.refusals import Said, assert_error, assert_problem, state_of

MARKER = """\
sweep: historian-2026-11-29
role: historian
every: 7d
at: 2026-11-29T02:00:00Z
"""
MARKER_PATH = "runs/historian-2026-11-29/sweep.yaml"
TODAY = "runs/historian-2026-11-30"


def problem(
    run: Run, path: Path, *words: str, verbs: tuple[str, ...] = ("explain", "tick")
) -> None:
    """Each verb exits 1 with a problem that says `words`, and changes not one byte."""
    before = state_of(path)
    for verb in (*verbs, "status"):
        ran = run(verb, "-C", path)
        assert_problem(Said(ran.code, ran.out, ran.err), words if verb in verbs else words[:1])
    assert state_of(path) == before


def error(run: Run, path: Path, *options: str, code: int, words: str, hint: str = "") -> None:
    """Both verbs exit with `code` and one error that says `words`, and change not one byte."""
    before = state_of(path)
    for verb in ("explain", "tick"):
        ran = run(verb, "-C", path, *options)
        assert_error(Said(ran.code, ran.out, ran.err), code, words, hint)
    assert state_of(path) == before


# -- the policy --------------------------------------------------------------------------------

FILES: dict[str, tuple[str | bytes, str, str]] = {
    "two megabytes": (POLICY + "#" * 2_000_000, "2,000,038 bytes long", "a few lines a role"),
    "alias bomb": ("a: &a [x, x]\nb: &b [*a, *a]\n" + POLICY, "anchors (&a)", "write each value"),
    "merge keys": (
        "schedules:\n  historian:\n    <<: {every: 7d}\n",
        "merge keys (<<)",
        "write the keys out",
    ),
    "deeply nested": ("schedules: " + "[" * 200, "more than 16 levels", "close the brackets"),
    "deeply nested maps": (
        "schedules: " + "{a: " * 99,
        "more than 16 levels",
        "close the brackets",
    ),
    "UTF-16": (POLICY.encode("utf-16"), "not UTF-8", "save it as UTF-8"),
    "tabs": ("schedules:\n\thistorian:\n\t\tevery: 7d\n", "not valid YAML", "use spaces"),
    "a key twice": (POLICY + POLICY, '"schedules" stands twice', "keep one of the two"),
    "two documents": (f"{POLICY}---\n{POLICY}", "a second document", "keep one document"),
    "a list": ("schedules: [historian]\n", "a map of roles, found a list", "write each role"),
    "a conflict": (f"<<<<<<< a\n{POLICY}=======\n{POLICY}>>>>>>> b\n", "merge conflict", "resolve"),
    "a NUL": (POLICY + "\0", "U+0000", "remove it"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_policy_that_cannot_be_read_dispatches_nothing(
    run: Run, tmp_path: Path, case: str
) -> None:
    content, words, hint = FILES[case]
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml": content})
    problem(run, path, "the whole file is refused", words, hint, "orchestrator.yaml")
    assert run("check", "-C", path).code == 1


def test_a_policy_that_is_a_symbolic_link_is_not_followed(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"real.yaml": POLICY})
    link = {"orchestrator.yaml": 0o120000}
    repos.commit_files(path, {"orchestrator.yaml": "real.yaml"}, modes=link)
    problem(run, path, "orchestrator.yaml is a symbolic link", "commit the file itself")


def test_a_policy_that_is_a_folder_is_refused(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml/inside": POLICY})
    problem(run, path, "orchestrator.yaml is a folder", "commit the file itself")


def test_a_policy_that_is_a_submodule_is_refused(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"a": "a"})
    entry = f"160000,{repos.tip(path)},orchestrator.yaml"
    repos.git(path, "update-index", "--add", "--cacheinfo", entry)
    repos.git(path, "commit", "-qm", "Add a submodule")
    problem(run, path, "orchestrator.yaml is a submodule", "commit the file itself")


NAMES = {
    "../x": "has only letters",
    "-x": "starts and ends with a letter",
    "a.lock": "may not end in '.lock'",
    "Ünïcode": "has only letters",
    "a" * 101: "this one has 101",
    "a..b": "may not contain '..'",
    "": "may not be empty",
    "a/b": "has only letters",
    "\\e[31mred": "has only letters",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_no_branch_could_carry_is_refused_and_the_other_role_is_not(
    run: Run, tmp_path: Path, name: str
) -> None:
    policy = f'schedules:\n  "{name}": {{every: 7d}}\n  scout: {{every: 7d, enabled: false}}\n'
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml": policy})
    words = (NAMES[name], "orchestrator.yaml:2:3", "rename the role")
    problem(run, path, *words)
    ticked = run("tick", "-C", path)
    assert "scout" in ticked.out
    assert all(not line.startswith(" ") for line in ticked.out.splitlines())  # each role is named


def test_two_roles_that_differ_only_in_case_are_both_refused(run: Run, tmp_path: Path) -> None:
    policy = "schedules:\n  A: {every: 7d}\n  a: {every: 7d}\n"
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml": policy})
    problem(run, path, "differ only in case", "rename or remove one of them")


# -- markers -----------------------------------------------------------------------------------

MARKERS: dict[str, tuple[str | bytes, str]] = {
    "a list": ("- a\n", "found a list"),
    "a date": ("2026-11-29\n", "found the date 2026-11-29"),
    "a scalar": ("hello\n", 'found the text "hello"'),
    "empty": ("", "found an empty file"),
    "a conflict": (f"<<<<<<< a\n{MARKER}=======\n{MARKER}>>>>>>> b\n", "a merge conflict"),
    "too large": (MARKER + "#" * 70_000, "70,079 bytes long, more than"),
    "not UTF-8": (b"at: \xff\n", "not UTF-8"),
    "another role": (MARKER.replace("role: historian", "role: scout"), 'found the text "scout"'),
    "another sweep": (
        MARKER.replace("11-29\n", "11-28\n"),
        'found the text "historian-2026-11-28"',
    ),
    "no at": (MARKER.replace("at: 2026", "att: 2026"), "the key `at`"),
}


@pytest.mark.parametrize("case", MARKERS)
def test_a_marker_that_cannot_be_used_holds_its_role_back(
    run: Run, tmp_path: Path, case: str
) -> None:
    content, words = MARKERS[case]
    files = {"orchestrator.yaml": POLICY, MARKER_PATH: content}
    path = repos.make_repo(tmp_path / "r", files)
    problem(run, path, MARKER_PATH, words, "the role waits until then")
    assert run("check", "-C", path).code == 1


@pytest.mark.parametrize(("kind", "words"), [(0o120000, "a symbolic link"), (0, "a folder")])
def test_a_marker_that_is_no_file_holds_its_role_back(
    run: Run, tmp_path: Path, kind: int, words: str
) -> None:
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml": POLICY})
    where = MARKER_PATH if kind else MARKER_PATH + "/inside"
    repos.commit_files(path, {where: "x"}, modes={where: kind} if kind else {})
    problem(run, path, f"{MARKER_PATH} on main is {words}", "the role waits until then")


def test_runs_that_is_no_folder_holds_every_role_back(run: Run, tmp_path: Path) -> None:
    for number, (mode, words) in enumerate([(0o100644, "a file"), (0o120000, "a symbolic link")]):
        path = repos.make_repo(tmp_path / str(number), {"orchestrator.yaml": POLICY})
        repos.commit_files(path, {"runs": "elsewhere"}, modes={"runs": mode})
        problem(run, path, f"runs on main is {words}", "make runs a folder")


def test_a_file_where_todays_folder_goes_holds_the_role_back(run: Run, tmp_path: Path) -> None:
    path = repos.make_repo(tmp_path / "r", {"orchestrator.yaml": POLICY, TODAY: "x"})
    problem(run, path, f"{TODAY} on main is not a folder", f"remove {TODAY}")


# -- the command line --------------------------------------------------------------------------

STRANGE = ["", "-x", "--upload-pack=touch PWNED", "a\x1b[31mb", "\udcff", "x\0y", "../origin"]


@pytest.mark.parametrize("name", ["nowhere", *STRANGE])
def test_a_remote_that_does_not_exist_is_named_with_those_that_do(
    run: Run, clone: Path, name: str
) -> None:
    words, hint = "which is not a remote", "the remotes are: origin"
    error(run, clone, f"--remote={name}", code=3, words=words, hint=hint)
    assert not list(clone.rglob("PWNED"))


@pytest.mark.parametrize(
    "name", [*STRANGE, "a..b", "a b", "x*", "HEAD", "refs/heads/", "a:b", "a.lock", "a//b", "@{u}"]
)
def test_a_default_branch_that_no_branch_can_be_called_is_refused(
    run: Run, clone: Path, name: str
) -> None:
    if name in ("\udcff", "../origin"):
        words = "has not fetched" if name == "\udcff" else "cannot be called"
        ran = run("explain", "-C", clone, f"--default-branch={name}")
        assert_error(Said(ran.code, ran.out, ran.err), 3, words, "--default-branch")
        return
    words = "the default branch cannot be called"
    error(run, clone, f"--default-branch={name}", code=3, words=words, hint="--default-branch")
    assert not list(clone.rglob("PWNED"))


def test_a_default_branch_that_does_not_exist_is_said_by_both(run: Run, clone: Path) -> None:
    error(run, clone, "--default-branch=nope", code=3, words="nope", hint="--default-branch")


@pytest.mark.parametrize("role", ["nobody", "histrian", "", "a\x1b[31mb", "\udcff", "../x"])
def test_an_unknown_role_is_wrong_usage(run: Run, clone: Path, role: str) -> None:
    error(run, clone, "--", role, code=2, words="is scheduled in", hint="historian")


@pytest.mark.parametrize("options", [["--frob"], ["--format", "xml"], ["--remote"], ["-C"]])
def test_an_unknown_option_is_wrong_usage(run: Run, clone: Path, options: list[str]) -> None:
    error(run, clone, *options, code=2, words="", hint="--help")


@pytest.mark.parametrize(
    "at", ["nonsense", "", "2026-13-01", "0001-01-01T00:00:00+14:00", "\udcff"]
)
def test_a_time_that_is_none_is_wrong_usage(run: Run, clone: Path, at: str) -> None:
    ran = run("explain", "-C", clone, "--at", at)
    assert_error(Said(ran.code, ran.out, ran.err), 2, "--at expects a time", "2026-12-01T02:00:00Z")


@pytest.mark.parametrize("at", ["0001-01-01", "9999-12-31T23:59:59Z"])
def test_the_ends_of_the_calendar_are_times(run: Run, clone: Path, at: str) -> None:
    assert run("explain", "-C", clone, "--at", at).code == 0


@pytest.mark.parametrize(
    "rev",
    ["nope", *STRANGE, "HEAD^{tree}", "HEAD:orchestrator.yaml", "a..b", ":/x", "0" * 40, "@{-1}"],
)
def test_a_revision_that_is_no_commit_is_named(run: Run, clone: Path, rev: str) -> None:
    before = state_of(clone)
    for command in (["explain", f"--config-ref={rev}"], ["check", f"--ref={rev}"]):
        ran = run(*command, "-C", clone)
        assert_error(Said(ran.code, ran.out, ran.err), 3, "is no commit in", "name a branch, a tag")
    assert state_of(clone) == before
