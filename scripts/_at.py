"""Run `orchestrator` as if it were another time: `_at.py 2026-11-16T09:00:00Z tick --quiet`.

The clock is a parameter of `orchestrator.cli.main`; cron never needs this, demonstrations do.
"""

import sys
from datetime import datetime

from orchestrator.cli import main

if __name__ == "__main__":
    when = datetime.fromisoformat(sys.argv[1])
    sys.exit(main(sys.argv[2:], clock=lambda: when))
