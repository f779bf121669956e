"""What an agent is told: its role's instructions, this sweep's limits, and the findings page."""

from collections.abc import Sequence
from importlib import resources

from orchestrator.errors import OrchestratorError
from orchestrator.git.reader import Reader
from orchestrator.model.config import Registration
from orchestrator.model.marker import Marker
from orchestrator.model.names import Oid
from orchestrator.model.timing import iso

_MAX_INSTRUCTIONS_BYTES = 64 * 1024


def instructions(reader: Reader, registration: Registration, tip: Oid) -> str:
    """The role's instructions: its file on the default-branch tip, else the packaged ones.

    Raises:
        OrchestratorError: the file named under `roles` is absent, not a file, or not UTF-8.
    """
    path = registration.instructions
    if path is None:
        return _packaged(registration.role)
    entry = reader.entry(tip, path)
    place = f"{path}, which {registration.source} names as instructions,"
    if entry is None or entry.kind not in ("blob", "executable"):
        raise OrchestratorError(f"{place} is not a file on the default branch", f"commit {path}")
    try:
        return reader.read_blob(entry.oid, _MAX_INSTRUCTIONS_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise OrchestratorError(f"{place} is not UTF-8 text", f"save {path} as UTF-8") from None


def _packaged(role: str) -> str:
    folder = resources.files("orchestrator") / "prompts"
    own = folder / f"{role}.md"
    return (own if own.is_file() else folder / "role.md").read_text(encoding="utf-8")


def build(text: str, marker: Marker, writes: Sequence[str], findings: str) -> str:
    """The whole prompt, Markdown. Only `{role}` and `{slug}` are replaced in the instructions."""
    sweep = marker.sweep
    told = text.replace("{slug}", sweep.slug).replace("{role}", sweep.role)
    since = iso(marker.covering_since) if marker.covering_since else "the beginning (first sweep)"
    allowed = "\n".join(f"- `{pattern}`" for pattern in (*writes, f"{sweep.folder}/**"))
    begun = (
        f"Sweep `{sweep.slug}`, covering all that was merged since {since}; now {iso(marker.at)}."
    )
    never = (
        "Anything else is left out of the commit and named to the reviewer. Never change "
        f"`{sweep.marker_path}` or `orchestrator.yaml`; do not commit, push or switch branches."
    )
    may = f"You may change only files that match:\n\n{allowed}"
    found = findings.strip() or "None."
    limits = ["## This sweep", begun, may, never, "## Findings", found]
    return "\n\n".join([told.strip(), *limits]) + "\n"
