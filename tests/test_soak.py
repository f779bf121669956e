"""The short soak: the promise under kills, drops and skewed clocks, and its negative controls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_a_short_soak_finds_no_violation_and_its_controls_do(tmp_path: Path) -> None:
    """In a process of its own: it forks ticks, and a test runner has threads."""
    argv = [sys.executable, str(ROOT / "scripts" / "_soak.py"), "--short", "--seed", "20261130"]
    done = subprocess.run(
        [*argv, "--dir", str(tmp_path)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VIOLATION" not in done.stderr
    assert done.stdout.count("double winners, as it must") == 2
    assert list(tmp_path.glob("soak-*")) == []
