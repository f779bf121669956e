"""The seal: no test sees this machine's git configuration, and none leaves a trace in it.

It is autouse and costs well under a millisecond. A test that needs a HOME with something in it sets
its own with `monkeypatch`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ConfigLevel

_XDG = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_VOLATILE = "PYTEST_CURRENT_TEST"
_LEVELS = (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL)


@pytest.fixture(scope="session")
def sealed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The empty folder that every test has as its HOME."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def seal(sealed_home: Path) -> Iterator[None]:
    # Its own MonkeyPatch: the test's must be undone before this one compares.
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith(("GIT_", "ORCHESTRATOR_", "LC_"))]:
            patch.delenv(name)
        for name in ("SSH_ASKPASS", "SSH_AUTH_SOCK", "DISPLAY", "LANGUAGE", "EMAIL"):
            patch.delenv(name, raising=False)
        for name in _XDG:
            patch.setenv(name, str(sealed_home / name.lower()))
        patch.setenv("HOME", str(sealed_home))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("TZ", "UTC")
        for level in _LEVELS:
            pygit2.settings.search_path[level] = str(sealed_home)
        # Writers turn it on for the process; repositories of tests need not survive a power cut.
        pygit2.settings.enable_fsync_gitdir(False)
        before, folder = _environment(), Path.cwd()
        yield
        assert _environment() == before, "the test changed os.environ"
        assert Path.cwd() == folder, "the test changed the current folder"
        assert not any(sealed_home.iterdir()), "the test wrote into the sealed HOME"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which real agents were not here to be tried."""
    from tests.support.live import notice

    if said := notice():
        terminalreporter.write_line(said)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != _VOLATILE}
