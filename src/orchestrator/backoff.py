"""What this clone remembers of agents whose service could not be used: when to try again.

It waits 15 minutes at first and twice as long each time, up to a day. The memory is one small file
a role below `.git/orchestrator`; it goes with the first run that gets through, and whoever mended
the trouble may delete it.
"""

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.folders import private_folder, write_private
from orchestrator.locks import state_folder
from orchestrator.model.config import Registration
from orchestrator.rules.facts import BACKOFF_FOLDER, Backoff

FIRST = timedelta(minutes=15)
LONGEST = timedelta(hours=24)

_MAX_BYTES = 4096
_MAX_FAILURES = 1000


def path_of(common_dir: str, role: str) -> str:
    """Where a role's backoff is remembered."""
    return os.path.join(state_folder(common_dir), BACKOFF_FOLDER, role)


def remembered(common_dir: str, registration: Registration, now: datetime) -> Backoff | None:
    """What is remembered of the role, while it still says to wait; None otherwise.

    Another adapter or model is another service, so it does not wait. A time further away than any
    wait was written under a wrong clock and is passed over, as is a file that cannot be read.
    """
    found = _read(path_of(common_dir, registration.role))
    if found is None or found.agent != _agent(registration):
        return None
    return found if now < found.until <= now + LONGEST else None


def remember(common_dir: str, registration: Registration, reason: str, now: datetime) -> Backoff:
    """Wait twice as long as before, and say why; where the memory cannot be kept, only say."""
    path = path_of(common_dir, registration.role)
    before = _read(path)
    failures = 1
    if before is not None and before.agent == _agent(registration):
        failures = min(before.failures + 1, _MAX_FAILURES)
    wait = min(FIRST * 2 ** min(failures - 1, 10), LONGEST)
    backoff = Backoff(now + wait, failures, _agent(registration), reason)
    with suppress(OSError):  # a full disk: then it is tried again at the next tick
        _write(path, backoff)
    return backoff


def forget(common_dir: str, role: str) -> None:
    """The agent was of use again."""
    with suppress(OSError):
        os.unlink(path_of(common_dir, role))


def _agent(registration: Registration) -> str:
    return f"{registration.adapter} {registration.model or ''}".strip()


def _read(path: str) -> Backoff | None:
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    lines = text.split("\n")
    if len(lines) < 3:  # noqa: PLR2004 - when and how often, which agent, why
        return None
    try:
        until, failures = (int(word) for word in lines[0].split())
        return Backoff(
            datetime.fromtimestamp(until, UTC),
            max(1, min(failures, _MAX_FAILURES)),
            lines[1],
            lines[2],
        )
    except (ValueError, OverflowError, OSError):
        return None


def _write(path: str, backoff: Backoff) -> None:
    """Whole or not at all: it is renamed into its place."""
    private_folder(Path(path).parent)
    text = (
        f"{int(backoff.until.timestamp())} {backoff.failures}\n{backoff.agent}\n{backoff.reason}\n"
    )
    new = Path(f"{path}.new~")  # no role's name ends so
    write_private(new, text.encode())
    new.replace(path)
