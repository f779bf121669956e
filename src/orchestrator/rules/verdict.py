"""What the rules say: one verdict a role, with the outcome of every rule up to the deciding one."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Self

from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.rules.facts import SweepState

Evidence = Mapping[str, str | int | float | bool | list[str] | None]
"""What a rule looked at: ref names, object ids, file:line, times (ISO-8601, UTC)."""


class RuleId(StrEnum):
    S0 = "S0"
    S1 = "S1"
    S2 = "S2"
    S3 = "S3"
    SB = "SB"
    S4 = "S4"


class Action(StrEnum):
    REST = "rest"
    SKIP = "skip"
    DISPATCH = "dispatch"
    ERROR = "error"


class Code(StrEnum):
    """The closed list of verdict codes: one a rule, then the errors."""

    DISABLED = "disabled"
    SWEEP_OPEN = "sweep_open"
    NOT_DUE = "not_due"
    ALREADY_TODAY = "already_today"
    OVER_CAP = "over_cap"
    DUE = "due"
    CONFIG_ERROR = "config_error"
    MARKER_ERROR = "marker_error"
    UNKNOWN_ROLE = "unknown_role"
    NO_ESTIMATE = "no_estimate"
    LOST_RACE = "lost_race"
    BUSY = "busy"
    REFUSED = "refused"
    AGENT_UNAVAILABLE = "agent_unavailable"


class Check(NamedTuple):
    """One rule's outcome: whether it holds, the sentence, and what it rests on.

    `problem` is set when the rule could not be answered; that ends the evaluation. `waits` is set
    when the sweep is due and yet this clone rests, because its agent could not be used lately.
    """

    rule: RuleId
    holds: bool
    reason: str
    evidence: Evidence
    due_at: datetime | None = None
    unblock: str | None = None
    state: SweepState | None = None
    warning: str | None = None
    problem: Problem | None = None
    waits: bool = False


class Verdict(NamedTuple):
    """The decision about one role.

    Attributes:
        rule: the rule that decided; None when the configuration could not be read that far.
        reason: one sentence.
        due_at: the earliest instant at which a sweep could be due, when time alone decides.
        unblock: what a person can do to change the answer.
        warnings: sentences worth a look that do not change the decision.
    """

    role: str
    rule: RuleId | None
    action: Action
    code: Code
    reason: str
    due_at: datetime | None = None
    unblock: str | None = None
    state: SweepState | None = None
    checks: tuple[Check, ...] = ()
    error: Problem | None = None
    warnings: tuple[str, ...] = ()

    def turned(
        self, action: Action, code: Code, reason: str, *, unblock: str | None, error: bool = True
    ) -> Self:
        """This verdict after something kept a due sweep from starting."""
        problem = Problem(ErrorCode(code.value), reason, unblock) if error else None
        return self._replace(
            action=action, code=code, reason=reason, unblock=unblock, error=problem
        )

    def resting(self, code: Code, reason: str, unblock: str | None) -> Self:
        """This verdict after the due sweep turned out to be in other hands."""
        return self.turned(Action.REST, code, reason, unblock=unblock, error=False)
