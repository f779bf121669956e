"""The layout is a promise: who may import whom, what stays pure, how large a file may grow."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "orchestrator"
MODULES = {
    ".".join(("orchestrator", *p.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): p
    for p in sorted(ROOT.rglob("*.py"))
}

# package or module -> what of this project it may import (itself always)
MAY_IMPORT = {
    "errors": set(),
    "model": set(),
    "rules": {"model"},
    "text": set(),
    "yamlio": {"yamlnode"},
    "git": {"errors", "model", "text", "folders"},
    "stop": set(),
    "folders": set(),
    "adapters": {"errors", "model", "text", "git", "stop", "folders"},
    "report": {"errors", "model", "rules", "outcome", "text", "adapters"},
}
NOT_PURE = {
    "os", "io", "time", "subprocess", "pathlib", "socket", "sys", "random", "logging", "pygit2",
    "click", "ruamel", "pydantic", "shutil", "tempfile", "threading",
}  # fmt: skip
LINES = 300
FUNCTION_LINES = 40
REASONS = {
    # module: why it is longer than LINES
    "orchestrator.git.history": "one object cache behind every question the historian asks",
    "orchestrator.rules.table": "the rule set is read in one file, by auditors too",
}
FUNCTION_REASONS: dict[str, str] = {}


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    allowed = MAY_IMPORT.get(_part(module))
    if allowed is None:
        return
    own = _part(module)
    used = {_part(i) for i in _imports(MODULES[module]) if i.startswith("orchestrator.")}
    assert used <= allowed | {own}, f"{module} imports {used - allowed - {own}}"


@pytest.mark.parametrize("module", [m for m in MODULES if _part(m) in ("rules", "model")])
def test_rules_and_model_are_pure(module: str) -> None:
    used = {i.split(".")[0] for i in _imports(MODULES[module])}
    assert not used & NOT_PURE
    source = MODULES[module].read_text("utf-8")
    assert "datetime.now" not in source
    assert "utcnow" not in source


def test_only_git_says_pygit2_or_runs_git() -> None:
    users = {m for m, p in MODULES.items() if "pygit2" in {i.split(".")[0] for i in _imports(p)}}
    assert users
    assert {_part(m) for m in users} == {"git"}


def test_only_the_command_line_says_click() -> None:
    users = {m for m, p in MODULES.items() if "click" in {i.split(".")[0] for i in _imports(p)}}
    assert {_part(m) for m in users} == {"cli"}


def test_processes_are_started_in_two_places_only() -> None:
    """Both runners are security-sensitive, in different ways; a third would escape review."""
    users = {
        m
        for m, p in MODULES.items()
        if {"subprocess", "pty", "multiprocessing"} & {i.split(".")[0] for i in _imports(p)}
    }
    assert users <= {"orchestrator.git.process", "orchestrator.adapters.containment"}


def test_the_commands_that_look_cannot_write_or_push() -> None:
    """`explain`, `check` and `status` reach neither the writer nor the wire's pushes."""
    for start in ("observe", "sweeps"):
        reached = _reached(f"orchestrator.{start}", set())
        assert not {"orchestrator.git.writer", "orchestrator.git.refwriter"} & reached


def _reached(module: str, seen: set[str]) -> set[str]:
    if module in seen or module not in MODULES:
        return seen
    seen.add(module)
    for name in _imports(MODULES[module]):
        if name.startswith("orchestrator."):
            _reached(name, seen)
    return seen


@pytest.mark.parametrize("module", MODULES)
def test_a_module_stays_readable(module: str) -> None:
    lines = len(MODULES[module].read_text("utf-8").splitlines())
    assert lines <= LINES or module in REASONS, f"{lines} lines: split it, or say why"


@pytest.mark.parametrize("module", MODULES)
def test_a_function_fits_a_screen(module: str) -> None:
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0].lineno
            length = (node.end_lineno or start) - start + 1
            name = f"{module}.{node.name}"
            assert length <= FUNCTION_LINES or name in FUNCTION_REASONS, f"{name}: {length} lines"


def test_every_reason_is_still_needed() -> None:
    long = {m for m, p in MODULES.items() if len(p.read_text("utf-8").splitlines()) > LINES}
    assert set(REASONS) <= long
