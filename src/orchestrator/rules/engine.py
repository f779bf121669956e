"""The evaluation: the table, asked in order, until a rule holds. Pure.

There is no second path: `tick` executes the verdict that `explain` prints.
"""

from orchestrator.model.problem import Problem
from orchestrator.rules.facts import RoleFacts
from orchestrator.rules.table import (
    AFTER_S0,
    S0,
    Known,
    Rule,
    check_disabled,
    registered_or_problem,
)
from orchestrator.rules.verdict import Action, Check, Code, RuleId, Verdict


def evaluate(facts: RoleFacts) -> Verdict:
    """Decide about one role. Total: every combination of facts has a verdict with a reason."""
    entry = facts.entry
    if isinstance(entry, Problem):
        return _refused(facts.role, entry, ())
    disabled = check_disabled(facts, entry)
    if disabled.holds:
        return _decided(facts.role, S0, (disabled,))
    registered = registered_or_problem(facts, entry)
    if isinstance(registered, Problem):
        return _refused(facts.role, registered, (disabled,))
    known = Known(facts, entry, registered)
    checks: tuple[Check, ...] = (disabled,)
    for rule, check in AFTER_S0:
        outcome = check(known)
        checks = (*checks, outcome)
        if outcome.problem is not None:
            return _refused(facts.role, outcome.problem, checks, rule.id)
        if outcome.holds:
            break
    return _decided(facts.role, rule, checks)


def _decided(role: str, rule: Rule, checks: tuple[Check, ...]) -> Verdict:
    last = checks[-1]
    action, code = rule.action, rule.code
    if last.waits:
        action, code = Action.REST, Code.AGENT_UNAVAILABLE
    return Verdict(
        role=role,
        rule=rule.id,
        action=action,
        code=code,
        reason=last.reason,
        due_at=last.due_at,
        unblock=last.unblock,
        state=last.state,
        checks=checks,
        warnings=tuple(c.warning for c in checks if c.warning is not None),
    )


def _refused(
    role: str, problem: Problem, checks: tuple[Check, ...], rule: RuleId | None = None
) -> Verdict:
    return Verdict(
        role=role,
        rule=rule,
        action=Action.ERROR,
        code=Code(problem.code.value),
        reason=problem.message,
        unblock=problem.hint,
        checks=checks,
        error=problem,
    )
