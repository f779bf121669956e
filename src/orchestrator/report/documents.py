"""The JSON documents, as models: what programs may rely on, and where their schemas come from.

Imported only where JSON or a schema is asked for, because importing pydantic takes longer than a
resting tick. Keys come in the order of the fields and are never left out; unknown is null. New
keys may be added within a version, so readers should ignore what they do not know.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

VERSION: Literal[1] = 1

Instant = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$",
        description="UTC, ISO-8601, to the second",
    ),
]
ExactInstant = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?Z$",
        description="UTC, ISO-8601, to the millisecond where it has any",
    ),
]
ScheduleStateName = Literal["active", "paused", "ended", "error"]
ObjectId = Annotated[str, Field(pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")]
RuleName = Literal["S0", "S1", "S2", "S3", "SB", "S4"]
ActionName = Literal["rest", "skip", "dispatch", "error"]
StateName = Literal["in_flight", "awaiting_review", "failed", "unpublished"]
CodeName = Literal[
    "disabled",
    "sweep_open",
    "not_due",
    "already_today",
    "over_cap",
    "due",
    "config_error",
    "marker_error",
    "unknown_role",
    "no_estimate",
    "lost_race",
    "busy",
    "refused",
    "agent_unavailable",
]
ProblemCode = Literal[
    "config_error",
    "marker_error",
    "unknown_role",
    "no_estimate",
    "lost_race",
    "busy",
    "refused",
    "agent_unavailable",
]
FatalCode = Literal[
    "usage", "cannot_look", "remote_unreachable", "missing_object", "write_failed", "failed", "bug"
]
SweepStatus = Literal[
    "ok",
    "no_change",
    "failed",
    "timeout",
    "interrupted",
    "budget",
    "turn_limit",
    "auth",
    "rate_limited",
    "unavailable",
    "denied",
    "bad_output",
]
EvidenceValue = str | bool | int | float | list[str] | None


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProblemDocument(_Document):
    """One problem at one place of a committed file."""

    code: ProblemCode
    message: str
    hint: str | None
    line: int | None = Field(description="from 1; null when it is about the whole file")
    column: int | None
    key: str | None = Field(description="the key's path, such as schedules.historian.every")
    path: str | None
    severity: Literal["error", "warning"]


class FatalDocument(_Document):
    """What kept everything, or the rest of a tick, from being evaluated."""

    code: FatalCode
    message: str
    hint: str | None


class ErrorDocument(_Document):
    """Printed in place of any other document when nothing could be evaluated."""

    version: Literal[1]
    error: FatalDocument


class RepositoryDocument(_Document):
    """Which repository was looked at."""

    path: str
    remote: str | None = Field(description="null when everything happens in this repository")
    default_branch: str
    tip: ObjectId


class ConfigDocument(_Document):
    """The policy that was read, and every problem in it."""

    path: str
    commit: ObjectId | None = Field(description="null when it was read from a plain file")
    present: bool
    problems: list[ProblemDocument]


class CheckDocument(_Document):
    """The outcome of one rule."""

    rule: RuleName
    holds: bool
    reason: str
    evidence: dict[str, EvidenceValue]


class SweepDocument(_Document):
    """One sweep that this tick dispatched."""

    slug: str
    branch: str
    intent: ObjectId
    closing: ObjectId | None
    status: SweepStatus
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    failed: str | None


class RoleDocument(_Document):
    """The verdict about one role."""

    role: str
    rule: RuleName | None = Field(description="null when the entry could not be read")
    action: ActionName
    code: CodeName
    reason: str
    due_at: Instant | None = Field(description="when time alone could make it due")
    state: StateName | None = Field(description="null unless S1 decided")
    checks: list[CheckDocument] = Field(description="every rule up to the deciding one")
    error: ProblemDocument | None
    sweep: SweepDocument | None
    unblock: str | None = Field(description="what a person can do to change the answer")
    warnings: list[str]


class EvaluationDocument(_Document):
    """What `explain` and `tick` print."""

    version: Literal[1]
    now: Instant
    repository: RepositoryDocument
    config: ConfigDocument
    roles: list[RoleDocument]
    notes: list[str]
    mended: list[str] = Field(description="what an earlier crash left and this tick put right")
    error: FatalDocument | None = Field(description="what ended a tick half way")


class OpenSweepDocument(_Document):
    """A sweep whose branch is not merged."""

    slug: str
    branch: str
    state: StateName | None
    since: Instant | None
    instance: str | None
    alive: bool | None = Field(description="null when its agent runs elsewhere, or is done")
    failed: str | None
    release: str | None = Field(description="the command that gives the sweep up")


class LastSweepDocument(_Document):
    """The newest merged sweep."""

    slug: str
    at: Instant
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    failed: str | None


class RoleStatusDocument(_Document):
    """Where one role stands."""

    role: str
    state: Literal[
        "disabled",
        "resting",
        "in_flight",
        "awaiting_review",
        "failed",
        "unpublished",
        "over_cap",
        "due",
        "error",
    ]
    rule: RuleName | None
    code: CodeName
    reason: str
    due_at: Instant | None
    timing: str | None = Field(description="the timing in words; null when it cannot be read")
    schedule_state: ScheduleStateName
    description: str | None
    open: list[OpenSweepDocument] = Field(description="newest first")
    last: LastSweepDocument | None
    error: ProblemDocument | None


class ComingDocument(_Document):
    """One occurrence to come."""

    occurrence: ExactInstant = Field(description="its nominal time")
    due_at: ExactInstant = Field(description="with its jitter")


class NextRoleDocument(_Document):
    """What is to come of one role."""

    role: str
    timezone: str | None = Field(description="null for `every`, which has no time of day")
    state: ScheduleStateName
    next: list[ComingDocument]


class NextDocument(_Document):
    """What `next` prints."""

    version: Literal[1]
    roles: list[NextRoleDocument]


class StatusDocument(_Document):
    """What `status` prints."""

    version: Literal[1]
    now: Instant
    repository: RepositoryDocument
    config: ConfigDocument
    roles: list[RoleStatusDocument]
    notes: list[str]


class CheckReportDocument(_Document):
    """What `check` prints."""

    version: Literal[1]
    path: str
    commit: ObjectId | None
    present: bool
    ok: bool
    schedules: list[str] = Field(description="the roles that are scheduled, in file order")
    problems: list[ProblemDocument]
    notes: list[str]
