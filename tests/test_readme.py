"""The documentation cannot drift: what is generated is compared with what the program says now."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.readme import PARTS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
_MARK = re.compile(r"<!-- generated: ([a-z-]+) -->\n(.*?)<!-- /generated -->", re.DOTALL)


@pytest.mark.parametrize("name", sorted(PARTS))
def test_a_generated_part_of_the_readme_is_up_to_date(name: str) -> None:
    """When this fails on purpose: scripts/regen, then read the difference."""
    parts = dict(_MARK.findall(README.read_text("utf-8")))
    assert parts[name] == PARTS[name]()


def test_every_marked_part_is_one_that_can_be_generated() -> None:
    assert {name for name, _ in _MARK.findall(README.read_text("utf-8"))} == set(PARTS)


def test_regen_check_finds_everything_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "regen"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
