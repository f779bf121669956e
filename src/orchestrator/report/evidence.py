"""What a rule looked at, as lines people can check: ref and commit, file and line, times."""

from orchestrator.model.problem import Problem
from orchestrator.model.timing import iso
from orchestrator.report.layout import GLUE
from orchestrator.report.words import at_commit, clean, relative
from orchestrator.rules.facts import BranchRef, RoleFacts, SweepBranch
from orchestrator.rules.verdict import Check, RuleId


def evidence_lines(check: Check, facts: RoleFacts) -> list[str]:
    """The evidence of one check; file places name the commit they were read from."""
    match check.rule:
        case RuleId.S0:
            lines = [_policy(facts, "enabled")]
        case RuleId.S1:
            lines = _branches(facts)
        case RuleId.S2:
            lines = [*_last(facts), *(_policy(facts, key) for key in ("every", "cron", "interval"))]
        case RuleId.S3:
            lines = _today(facts)
        case RuleId.SB:
            lines = [_policy(facts, "cost_limit_usd"), _estimate(facts)]
        case RuleId.S4:
            lines = [f"branch {facts.today.branch} from {_tip(facts)}"]
    return [line for line in lines if line]


def _tip(facts: RoleFacts) -> str:
    return at_commit(facts.tip_name, facts.tip)


def _policy(facts: RoleFacts, key: str) -> str:
    entry = facts.entry
    if isinstance(entry, Problem) or key not in entry.lines:
        return ""
    values = {
        "enabled": "true" if entry.enabled else "false",
        "every": entry.timing,
        "cron": entry.timing.removeprefix("cron "),
        "interval": entry.timing.removeprefix("interval "),
        "cost_limit_usd": "null" if entry.cost_limit_usd is None else f"{entry.cost_limit_usd:g}",
    }
    place = at_commit(f"{facts.config_place}:{entry.lines[key]}", facts.config_commit)
    return f"{place}, {key}:{GLUE}{values[key]}"


def _branches(facts: RoleFacts) -> list[str]:
    if not facts.open_branches:
        return [
            f"{at_commit(b.shown_ref, b.refs[0].tip)}, merged ({b.merged})" for b in facts.branches
        ]
    lines: list[str] = []
    for branch in facts.open_branches:
        lines += [_ref(r) for r in branch.refs]
        lines += _intent(branch, facts)
    return lines


def _ref(ref: BranchRef) -> str:
    name = ref.name.removeprefix("refs/heads/").removeprefix("refs/remotes/")
    return at_commit(name, ref.tip)


def _intent(branch: SweepBranch, facts: RoleFacts) -> list[str]:
    if branch.intent is None:
        return ["no intent commit: made by other hands"]
    said = at_commit("intent", branch.intent)
    if branch.since is not None:
        ago = relative(branch.since, facts.now).replace(" ", GLUE)
        said += f", {iso(branch.since)}, {ago}"
    if branch.instance:
        said += f", by {clean(branch.instance)}"
    return [said]


def _last(facts: RoleFacts) -> list[str]:
    last = facts.last
    if last is None or last.sweep is None:
        return []
    return [at_commit(last.sweep.marker_path, facts.tip)]


def _today(facts: RoleFacts) -> list[str]:
    today = facts.today
    lines = [_ref(r) for b in facts.branches if b.sweep == today for r in b.refs]
    if facts.today_merged:
        lines.append(at_commit(today.marker_path, facts.tip))
    return lines


def _estimate(facts: RoleFacts) -> str:
    if facts.estimate_usd is None or not facts.estimate_source:
        return ""
    return f"{clean(facts.estimate_source)}, estimate_usd:{GLUE}{facts.estimate_usd:g}"
