"""JSON Schemas, draft 2020-12: of the two files people write or read, and of every document.

The files' schemas are data beside this module, because editors use them and people read them; the
documents' come from the models that print them, so they cannot drift.
"""

import json
from importlib import resources
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FILES = {"config": "orchestrator.schema.json", "marker": "sweep.schema.json"}
_TITLES = {
    "explain": "What `orchestrator explain --format json` prints",
    "tick": "What `orchestrator tick --format json` prints",
    "status": "What `orchestrator status --format json` prints",
    "next": "What `orchestrator next --format json` prints",
    "check": "What `orchestrator check --format json` prints",
}


def schema_text(kind: str) -> str:
    """The schema of a file (`config`, `marker`) or of a command's document, as JSON text."""
    if kind in _FILES:
        folder = resources.files("orchestrator.report")
        return folder.joinpath("schema_files", _FILES[kind]).read_text("utf-8")
    return json.dumps(document_schema(kind), indent=2) + "\n"


def document_schema(kind: str) -> dict[str, Any]:
    """The schema of a command's output: its document, or the one that says why there is none."""
    # pydantic takes longer to import than a resting tick takes to run.
    from pydantic import TypeAdapter

    from orchestrator.report import documents

    either: TypeAdapter[Any]
    match kind:
        case "status":
            either = TypeAdapter(documents.StatusDocument | documents.ErrorDocument)
        case "next":
            either = TypeAdapter(documents.NextDocument | documents.ErrorDocument)
        case "check":
            either = TypeAdapter(documents.CheckReportDocument | documents.ErrorDocument)
        case _:
            either = TypeAdapter(documents.EvaluationDocument | documents.ErrorDocument)
    found = either.json_schema(mode="serialization")
    return {
        "$schema": DIALECT,
        "title": _TITLES[kind],
        "anyOf": found["anyOf"],
        "$defs": found["$defs"],
    }
