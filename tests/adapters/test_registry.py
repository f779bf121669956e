"""Who runs a role: the packaged registry and the project's, put together."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.adapters.registry import (
    ADAPTERS,
    PACKAGED,
    UnknownAdapterError,
    adapter,
    known_adapters,
    resolve,
)
from orchestrator.model.config import Registration, RoleEntry, ScheduleEntry
from orchestrator.model.names import Oid
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.model.timing import Every

COMMIT = Oid("1" * 40)
WEEK = Every("7d", 7 * 86_400_000)


def resolved(role: str, **roles: RoleEntry | Problem) -> Registration | Problem:
    entry = ScheduleEntry(role, WEEK, line=4)
    return resolve(entry, roles, path="orchestrator.yaml", commit=COMMIT)


def registration(role: str, **roles: RoleEntry | Problem) -> Registration:
    found = resolved(role, **roles)
    assert isinstance(found, Registration), found
    return found


def problem(role: str, **roles: RoleEntry | Problem) -> Problem:
    found = resolved(role, **roles)
    assert isinstance(found, Problem), found
    return found


def test_the_packaged_historian_runs_without_a_roles_entry() -> None:
    found = registration("historian")
    assert (found.adapter, found.priced, found.estimate_usd) == ("builtin", False, 0.0)
    assert (found.timeout_s, found.source) == (3600.0, "packaged")
    assert found.writes == ("docs/**", "**/*.md")


def test_a_roles_entry_changes_only_what_it_writes() -> None:
    own = RoleEntry("historian", timeout=Every("45m", 2_700_000), line=9)
    found = registration("historian", historian=own)
    expected = PACKAGED["historian"]._replace(timeout_s=2700.0, source="orchestrator.yaml:9")
    assert found == expected


def test_a_role_says_how_much_its_sweep_may_change() -> None:
    own = RoleEntry("historian", max_files=7, max_bytes=900)
    found = registration("historian", historian=own)
    assert (found.max_files, found.max_bytes) == (7, 900)
    assert registration("historian", historian=own._replace(max_bytes=None)).max_bytes is None


def test_another_adapter_does_not_inherit_that_the_packaged_one_costs_nothing() -> None:
    own = RoleEntry("historian", adapter="command", command=("x",), model="m")
    found = registration("historian", historian=own)
    assert (found.priced, found.estimate_usd, found.writes) == (True, None, ())
    assert (found.command, found.model) == (("x",), "m")


def test_a_role_of_the_projects_own_is_run_as_written() -> None:
    own = RoleEntry(
        "scout", "command", None, 0.0, "docs/scout.md", None, ("notes/**",), ("a", "b"), 7
    )
    found = registration("scout", scout=own)
    assert found == Registration(
        role="scout",
        adapter="command",
        priced=True,
        model=None,
        estimate_usd=0.0,
        instructions="docs/scout.md",
        timeout_s=3600.0,
        writes=("notes/**",),
        command=("a", "b"),
        source="orchestrator.yaml:7",
    )


def test_the_builtin_adapter_under_another_name_still_costs_nothing() -> None:
    assert registration("scribe", scribe=RoleEntry("scribe", "builtin")).estimate_usd == 0.0


def test_an_unknown_role_shows_the_lines_to_add_and_what_was_probably_meant() -> None:
    found = problem("historain")
    assert (found.code, found.line, found.key) == (
        ErrorCode.UNKNOWN_ROLE,
        4,
        "schedules.historain",
    )
    assert found.hint is not None
    assert "did you mean historian?" in found.hint
    assert "roles:\n  historain:\n    adapter: command" in found.hint
    assert "did you mean" not in (problem("zebra").hint or "")


def test_a_roles_entry_that_could_not_be_read_is_the_roles_own_problem() -> None:
    broken = Problem(ErrorCode.CONFIG_ERROR, "expected a string")
    assert resolved("historian", historian=broken) is broken


def test_an_unknown_adapter_is_a_config_error_with_the_list_of_known_ones() -> None:
    own = RoleEntry("scout", adapter="comand", line=6, lines={"adapter": 8})
    found = problem("scout", scout=own)
    assert (found.code, found.line, found.commit) == (ErrorCode.CONFIG_ERROR, 8, COMMIT)
    assert found.hint is not None
    assert "did you mean command?" in found.hint
    assert all(name in found.hint for name in known_adapters())


def test_a_role_without_an_adapter_is_a_config_error() -> None:
    found = problem("scout", scout=RoleEntry("scout", model="m", line=6))
    assert (found.code, found.line) == (ErrorCode.CONFIG_ERROR, 6)


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_table_says_what_the_adapter_itself_says(name: str) -> None:
    made = adapter(name)
    assert (made.name, made.priced) == (name, ADAPTERS[name].priced)


def test_an_adapter_nobody_knows_cannot_be_had() -> None:
    with pytest.raises(UnknownAdapterError, match="no adapter is called 'nothing'"):
        adapter("nothing")


PLUGIN = """
class Good:
    name, priced = "plugged", True
    def probe(self, registration, operator): ...
    def plan(self, request, probe): ...
    def parse(self, result, request): ...
class Half:
    priced = False
def broken():
    raise RuntimeError("out of order")
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugged_adapters.py").write_text(PLUGIN)
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[orchestrator.adapters]\n"
        "plugged = plugged_adapters:Good\nhalf = plugged_adapters:Half\n"
        "broken = plugged_adapters:broken\ngone = plugged_absent:Gone\n"
        "command = plugged_adapters:Good\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("plugins")
def test_an_installed_plug_in_is_found_by_its_name() -> None:
    assert registration("scout", scout=RoleEntry("scout", "plugged")).priced is True
    assert adapter("plugged").name == "plugged"


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "words"), [("half", "lacks"), ("broken", "out of order"), ("gone", "plugged_absent")]
)
def test_a_plug_in_that_cannot_be_used_is_a_config_error_and_says_why(
    name: str, words: str
) -> None:
    found = problem("scout", scout=RoleEntry("scout", name))
    assert found.code is ErrorCode.CONFIG_ERROR
    assert words in found.message


@pytest.mark.usefixtures("plugins")
def test_a_plug_in_cannot_take_a_built_in_adapters_name() -> None:
    assert type(adapter("command")).__module__ == "orchestrator.adapters.command"


def test_resolving_a_packaged_role_imports_no_adapter() -> None:
    script = (
        "import sys; from orchestrator.adapters import registry as r;"
        "from orchestrator.model.config import ScheduleEntry as S;"
        "from orchestrator.model.timing import Every;"
        "r.resolve(S('historian', Every('1d', 1)), {}, path=None, commit=None);"
        "bad = [m for m in sys.modules if m.startswith('orchestrator.adapters.')];"
        "print(sorted(bad), 'importlib.metadata' in sys.modules, 'difflib' in sys.modules)"
    )
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {source!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = ["orchestrator.adapters.registry"]
    assert done.stdout.strip() == f"{expected} False False"
