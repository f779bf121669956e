"""What tests of the agent CLIs share: a request, an operator, and what the real ones printed."""

import json
from datetime import UTC, date, datetime
from pathlib import Path

from orchestrator.adapters.base import Ending, Operator, ProcessResult, Request
from orchestrator.model.config import Registration
from orchestrator.model.names import Oid, SweepName

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"
AT = datetime(2026, 11, 30, 2, tzinfo=UTC)
MODELS = {
    "claude-code": "claude-sonnet-4-5",
    "codex": "gpt-5-codex",
    "gemini": "gemini-2.5-flash",
}


def registration(adapter: str, model: str | None = None) -> Registration:
    return Registration("scout", adapter, True, model, 1.0, None, 60.0, (), (), "test")


def request(
    adapter: str,
    *,
    model: str | None = "",
    budget: float | None = 1.5,
    environ: dict[str, str] | None = None,
    home: Path | None = None,
) -> Request:
    return Request(
        registration=registration(adapter, MODELS[adapter] if model == "" else model),
        sweep=SweepName("scout", date(2026, 11, 30)),
        git_dir=Path("/repo/.git"),
        base=Oid("1" * 40),
        since=None,
        covering_since=None,
        at=AT,
        workdir=Path("/private/tree"),
        prompt="Look around.\n",
        budget_usd=budget,
        timeout_s=60.0,
        operator=Operator((), {}, environ or {}),
        home=home,
    )


def captured(case: str, ending: Ending = Ending.EXITED) -> ProcessResult:
    """One recorded run of a real CLI: what it printed, its exit code, its HOME if it was kept."""
    folder = CAPTURES / case
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    return ProcessResult(
        ending=ending,
        exit_code=meta["rc"],
        stdout=(folder / "stdout.txt").read_bytes(),
        stderr=(folder / "stderr.txt").read_bytes(),
        seconds=1.0,
        home=folder / "home",
    )


def printed(
    stdout: bytes = b"", stderr: bytes = b"", code: int | None = 0, home: Path = Path("/nowhere")
) -> ProcessResult:
    """A run that came to its own end with that output."""
    return ProcessResult(Ending.EXITED, code, stdout, stderr, 1.0, home)
