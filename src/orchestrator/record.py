"""The three commits of a sweep, as messages and trees: intent, work, closing.

The commits are the ledger. Their trailers are what every later reading of the branch rests on, so
they are written here and nowhere else (and read in `orchestrator.sweeps`).
"""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.git.reader import Identity
from orchestrator.git.writer import TreeChange, Writer
from orchestrator.markerfile import render_marker
from orchestrator.model.marker import Marker
from orchestrator.model.names import Oid, SweepName
from orchestrator.model.status import Status
from orchestrator.model.usage import Usage
from orchestrator.sweeps import (
    CLOSING,
    COST_SOURCE,
    DISPATCH_ID,
    INSTANCE,
    INTENT,
    PHASE,
    STATUS,
    SWEEP,
    WORK,
)

FILE_MODE = 0o100644
_MAX_LEFT_OUT = 20


def message(subject: str, body: Sequence[str], trailers: Sequence[tuple[str, str]]) -> str:
    """A commit message: subject, paragraphs, trailers; every trailer on a line of its own."""
    paragraphs = [subject, *body, "\n".join(f"{key}: {value}" for key, value in trailers)]
    return "\n\n".join(paragraphs) + "\n"


def intent_message(sweep: SweepName, dispatch_id: str, instance: str) -> str:
    """The intent's message. The fresh `Dispatch-Id` keeps two instances from making one commit:
    with equal bytes both pushes would be told "up to date", and both would think they won.
    """
    trailers = [
        (SWEEP, sweep.slug),
        (PHASE, INTENT),
        (DISPATCH_ID, dispatch_id),
        (INSTANCE, instance),
    ]
    body = "The agent has not finished yet; a closing commit will say what it did and cost."
    return message(f"Begin sweep {sweep.slug}", [body], trailers)


def work_message(sweep: SweepName, dispatch_id: str, instance: str, count: int) -> str:
    """The message of the commit that holds what the agent changed."""
    trailers = [
        (SWEEP, sweep.slug),
        (PHASE, WORK),
        (DISPATCH_ID, dispatch_id),
        (INSTANCE, instance),
    ]
    files = "1 file" if count == 1 else f"{count} files"
    return message(f"Sweep {sweep.slug}: {files} changed by {sweep.role}", [], trailers)


def closing_message(
    sweep: SweepName,
    *,
    dispatch_id: str | None,
    instance: str,
    status: Status,
    usage: Usage,
    failed: str | None,
    left_out: Sequence[tuple[str, str]] = (),
    kept_theirs: Sequence[str] = (),
) -> str:
    """The closing's message; `left_out` and `kept_theirs` are named, so that nothing is silent."""
    body = [cost_sentence(usage)]
    if failed is not None:
        body.insert(0, failed)
    if left_out:
        lines = [f"- {path}: {why}" for path, why in left_out[:_MAX_LEFT_OUT]]
        if len(left_out) > _MAX_LEFT_OUT:
            lines.append(f"- and {len(left_out) - _MAX_LEFT_OUT} more")
        body.append("Left out of what the agent changed:\n" + "\n".join(lines))
    if kept_theirs:
        lines = [f"- {path}" for path in kept_theirs[:_MAX_LEFT_OUT]]
        body.append(
            "Changed on the branch while the agent ran, and kept as they are there (the agent's "
            "version is in the work commit):\n" + "\n".join(lines)
        )
    trailers = [(SWEEP, sweep.slug), (PHASE, CLOSING)]
    if dispatch_id is not None:
        trailers.append((DISPATCH_ID, dispatch_id))
    trailers += [
        (INSTANCE, instance),
        (STATUS, status.value),
        (COST_SOURCE, usage.source.value),
    ]
    verb = "Close" if failed is None else "Close failed"
    return message(f"{verb} sweep {sweep.slug}", body, trailers)


def cost_sentence(usage: Usage) -> str:
    """Tokens and dollars in words; unknown is said, never shown as zero."""
    tokens = (
        "unknown tokens"
        if usage.tokens_in is None or usage.tokens_out is None
        else f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out"
    )
    cost = "unknown cost" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    return f"{tokens}, {cost}."


def marker_change(writer: Writer, marker: Marker) -> dict[str, TreeChange]:
    """The tree change that writes `marker` to its place."""
    blob = writer.blob(render_marker(marker))
    return {marker.sweep.marker_path: TreeChange(blob, FILE_MODE)}


def write_intent(
    writer: Writer,
    marker: Marker,
    base: Oid,
    *,
    dispatch_id: str,
    instance: str,
    identity: Identity,
    now: datetime,
) -> Oid:
    """Write the intent commit into the object database; no ref points at it yet.

    Its cost does not depend on the size of the tree: three trees, one blob, one commit.

    Raises:
        WriteFailedError: the object database did not take it.
    """
    tree = writer.tree(base, marker_change(writer, marker))
    text = intent_message(marker.sweep, dispatch_id, instance)
    return writer.commit(tree, [base], text, identity, now)
