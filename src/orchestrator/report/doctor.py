"""`doctor` for people and programs: one line a finding."""

import json
from collections.abc import Sequence

from orchestrator.report.layout import Look, pad
from orchestrator.report.words import clean

WIDTH = 7
_VERSION = 1


def doctor_text(findings: Sequence[tuple[str, str, str, str | None]], look: Look) -> str:
    """A line for each (check, level, sentence, hint); the hint follows on the same line."""
    lines = []
    for check, level, said, hint in findings:
        word = pad(level, WIDTH)
        shown = look.error(level) + word[len(level) :] if level == "error" else word
        after = f"; {clean(hint)}" if hint else ""
        lines.append(f"{shown}  {clean(check)}: {clean(said)}{after}\n")
    return "".join(lines)


def doctor_json(findings: Sequence[tuple[str, str, str, str | None]], exit_code: int) -> str:
    """The same as one document."""
    found = [
        {"check": clean(c), "level": level, "message": clean(s), "hint": clean(h) if h else None}
        for c, level, s, h in findings
    ]
    document = {"version": _VERSION, "exit_code": exit_code, "findings": found}
    return json.dumps(document, indent=2) + "\n"
