"""Where no agent CLI is installed there is nothing to try; `tests/conftest.py` says so."""

from tests.support.live import installed

collect_ignore_glob = [] if installed() else ["test_*.py"]
