"""The short soak: the promise under kills, drops and skewed clocks, and its negative controls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_LIMIT_S = 300
"""It takes 40 s on two idle cores."""


@pytest.mark.long
def test_a_short_soak_finds_no_violation_and_its_controls_do(tmp_path: Path) -> None:
    """In a process of its own: it forks ticks, and a test runner has threads."""
    argv = [sys.executable, str(ROOT / "scripts" / "_soak.py"), "--short", "--seed", "20261130"]
    process = subprocess.Popen(
        [*argv, "--dir", str(tmp_path)],
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, complaints = process.communicate(timeout=_LIMIT_S)
    finally:
        process.terminate()  # it ends its servers on the way out
        process.wait(30)
    assert process.returncode == 0, said + complaints
    assert "VIOLATION" not in complaints
    assert said.count("double winners, as it must") == 2
    assert list(tmp_path.glob("soak-*")) == []
