"""What is printed, whole: `scripts/regen` writes these files, a test compares them."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from orchestrator.report.checks import check_text
from orchestrator.report.json import check_json, explain_json, status_json
from orchestrator.report.layout import Look
from orchestrator.report.lines import tick_text
from orchestrator.report.status import status_text
from orchestrator.report.text import explain_text, headlines_text
from tests.report import samples

FOLDER = Path(__file__).parents[2] / "fixtures" / "golden" / "report"
AT_80 = Look(80)
COLORED = Look(80, color=True)


def explained_briefly() -> str:
    """A terminal of 100 columns, colours, two roles."""
    found = samples.evaluation(
        samples.facts("historian", last=samples.merged(ago=timedelta(hours=1))),
        samples.facts("scribe", entry=samples.config_problem()),
    )
    return explain_text(found, Look(100, color=True))


def checked() -> str:
    found = samples.evaluation()
    problems = (samples.warned(), *found.config.problems)
    return check_text(found.config, problems, "orchestrator.yaml on origin/main @ 3f2c1a9d0", AT_80)


GOLDEN: Mapping[str, Callable[[], str]] = {
    "explain.txt": lambda: explain_text(samples.evaluation(), AT_80),
    "explain-verbose.txt": lambda: explain_text(samples.evaluation(), AT_80, verbose=True),
    "explain-quiet.txt": lambda: headlines_text(samples.evaluation(), AT_80),
    "explain-color-100.txt": explained_briefly,
    "explain-absent.txt": lambda: explain_text(samples.absent(), AT_80),
    "explain-uncommitted.txt": lambda: explain_text(samples.absent(), AT_80, uncommitted=True),
    "explain-refused.txt": lambda: explain_text(samples.whole_file_refused(), AT_80),
    "tick.txt": lambda: tick_text(samples.ticked(), AT_80),
    "tick-quiet.txt": lambda: tick_text(samples.ticked(), AT_80, quiet=True),
    "tick-verbose.txt": lambda: tick_text(samples.ticked(), AT_80, verbose=True),
    "status.txt": lambda: status_text(samples.evaluation(), AT_80),
    "status-quiet.txt": lambda: status_text(samples.evaluation(), AT_80, quiet=True),
    "check.txt": checked,
    "explain.json": lambda: explain_json(samples.evaluation()),
    "tick.json": lambda: explain_json(samples.ticked()),
    "status.json": lambda: status_json(samples.evaluation()),
    "check.json": lambda: check_json(
        samples.evaluation().config, samples.evaluation().config.problems, ("a note",)
    ),
}
