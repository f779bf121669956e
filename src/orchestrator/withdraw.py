"""A claim given back: the branch is deleted, as long as it is exactly what was claimed."""

from contextlib import suppress

from orchestrator.errors import RemoteUnreachableError, WriteFailedError
from orchestrator.git.wire import Remote
from orchestrator.git.writer import Writer
from orchestrator.model.names import Oid, SweepName


def withdraw(remote: Remote, writer: Writer, sweep: SweepName, ours: Oid) -> bool:
    """Delete our own, unlaunched claim, everywhere, as long as it is exactly what we made.

    Returns:
        Whether the remote surely has it no more. A person may have built on it: then it stays.
    """
    gone = False
    for _ in range(2):  # a dropped connection is worth a second try: it would rest until it is seen
        gone = remote.delete(sweep.local_ref, ours).flag == "-" or _is_gone(remote, sweep)
        if gone:
            break
    with suppress(WriteFailedError):
        writer.delete_ref(sweep.local_ref, ours)
    if gone:
        with suppress(WriteFailedError):
            writer.set_tracking(sweep.tracking_ref(remote.name), None)
    return gone


def _is_gone(remote: Remote, sweep: SweepName) -> bool:
    try:
        return sweep.local_ref not in remote.ls(sweep.local_ref)
    except RemoteUnreachableError:
        return False
