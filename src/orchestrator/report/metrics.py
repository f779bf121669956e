"""What a tick found, in Prometheus' text format, for node_exporter's textfile collector.

Everything is a gauge, because a tick knows the present and keeps no count of its own: what adds up
over time is for the server that scrapes it. A role without a value has no line, never a zero.
"""

from collections.abc import Iterator
from datetime import datetime

from orchestrator.outcome import Evaluation, RoleOutcome
from orchestrator.rules.facts import MergedSweep
from orchestrator.rules.verdict import Action

_HELP = {
    "tick_timestamp_seconds": "When this tick looked, seconds since 1970.",
    "role_state": "1 for the rule and code that decided about the role in this tick.",
    "swept": "1 for the outcome of a sweep this tick dispatched.",
    "skipped": "1 for the reason a role did not sweep in this tick.",
    "last_sweep_cost_usd": "What the role's newest known sweep cost, US dollars.",
    "last_sweep_tokens": "Tokens of the role's newest known sweep.",
    "last_merged_age_seconds": "Seconds since the dispatch of the role's last merged sweep.",
    "open_sweep_age_seconds": "Seconds since the intent of the role's newest open sweep.",
    "open_sweeps": "Sweep branches of the role that are not merged.",
    "needs_person": "1 when the role needs somebody to look.",
}


def metrics_text(evaluation: Evaluation, now: datetime) -> str:
    """The whole file; metric by metric, as the format wants it."""
    rows: dict[str, list[str]] = {name: [] for name in _HELP}
    rows["tick_timestamp_seconds"].append(f" {int(now.timestamp())}")
    for outcome in evaluation.outcomes:
        for name, labels, value in _of_role(outcome, now):
            said = {"role": outcome.verdict.role, **labels}
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in said.items())
            rows[name].append(
                f"{{{inside}}} {value:g}" if value % 1 else f"{{{inside}}} {value:.0f}"
            )
    lines = []
    for name, found in rows.items():
        if found:
            full = f"orchestrator_{name}"
            lines += [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} gauge"]
            lines += [full + row for row in found]
    return "".join(line + "\n" for line in lines)


def _of_role(outcome: RoleOutcome, now: datetime) -> Iterator[tuple[str, dict[str, str], float]]:
    verdict, facts, sweep = outcome.verdict, outcome.facts, outcome.sweep
    rule = verdict.rule.value if verdict.rule is not None else ""
    yield "role_state", {"rule": rule, "code": verdict.code.value}, 1
    yield "needs_person", {}, outcome.needs_person
    if sweep is not None:
        yield "swept", {"outcome": sweep.status.value}, 1
    elif verdict.action is not Action.DISPATCH:
        yield "skipped", {"reason": verdict.code.value}, 1
    last = facts.last if isinstance(facts.last, MergedSweep) else None
    usage = sweep.usage if sweep is not None else last.marker if last is not None else None
    if usage is not None:
        if usage.cost_usd is not None:
            yield "last_sweep_cost_usd", {}, usage.cost_usd
        for direction, count in (("in", usage.tokens_in), ("out", usage.tokens_out)):
            if count is not None:
                yield "last_sweep_tokens", {"direction": direction}, count
    if last is not None:
        yield "last_merged_age_seconds", {}, (now - last.at).total_seconds()
    yield "open_sweeps", {}, len(facts.open_branches) + (sweep is not None)
    begun = facts.open_branches[0].since if facts.open_branches else None
    if begun is not None:
        state = facts.open_branches[0].state
        labels = {"state": state.value if state is not None else ""}
        yield "open_sweep_age_seconds", labels, (now - begun).total_seconds()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
