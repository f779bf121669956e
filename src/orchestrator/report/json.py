"""Values into JSON documents; the models are in `documents`, which loads pydantic."""

import json
from collections.abc import Sequence

from orchestrator.errors import (
    CannotLookError,
    MissingObjectError,
    OrchestratorError,
    RemoteUnreachableError,
    UsageError,
    WriteFailedError,
)
from orchestrator.model.config import Config
from orchestrator.model.problem import Problem, Severity
from orchestrator.model.timing import iso
from orchestrator.outcome import Evaluation, RepositoryInfo, RoleOutcome, SweepResult
from orchestrator.report.documents import (
    VERSION,
    CheckDocument,
    CheckReportDocument,
    ComingDocument,
    ConfigDocument,
    ErrorDocument,
    EvaluationDocument,
    EvidenceValue,
    FatalCode,
    FatalDocument,
    LastSweepDocument,
    NextDocument,
    NextRoleDocument,
    OpenSweepDocument,
    ProblemDocument,
    RepositoryDocument,
    RoleDocument,
    RoleStatusDocument,
    StatusDocument,
    SweepDocument,
)
from orchestrator.report.status import role_status
from orchestrator.report.timingwords import words_of
from orchestrator.rules.coming import coming, schedule_state
from orchestrator.rules.facts import MergedSweep, SweepBranch
from orchestrator.rules.verdict import Check

# Most special first: the first kind that fits names the error.
_KINDS: tuple[tuple[type[OrchestratorError], FatalCode], ...] = (
    (UsageError, "usage"),
    (RemoteUnreachableError, "remote_unreachable"),
    (MissingObjectError, "missing_object"),
    (CannotLookError, "cannot_look"),
    (WriteFailedError, "write_failed"),
)


def explain_json(evaluation: Evaluation) -> str:
    """The document of `explain` and `tick`."""
    return _dump(
        EvaluationDocument(
            version=VERSION,
            now=evaluation.now,
            repository=_repository(evaluation.repository),
            config=_config(evaluation.config),
            roles=[_role(o) for o in evaluation.outcomes],
            notes=[_text(n) for n in evaluation.notes],
            mended=[_text(m) for m in evaluation.mended],
            error=None if evaluation.failure is None else _fatal(evaluation.failure),
        )
    )


def status_json(evaluation: Evaluation) -> str:
    """The document of `status`."""
    return _dump(
        StatusDocument(
            version=VERSION,
            now=evaluation.now,
            repository=_repository(evaluation.repository),
            config=_config(evaluation.config),
            roles=[_role_status(o) for o in evaluation.outcomes],
            notes=[_text(n) for n in evaluation.notes],
        )
    )


def next_json(evaluation: Evaluation, count: int) -> str:
    """The document of `next`."""
    return _dump(
        NextDocument(version=VERSION, roles=[_next_role(o, count) for o in evaluation.outcomes])
    )


def _next_role(outcome: RoleOutcome, count: int) -> NextRoleDocument:
    from orchestrator.model.occurrence import exact

    facts, verdict = outcome.facts, outcome.verdict
    calendar = None if isinstance(facts.entry, Problem) else facts.entry.calendar
    return NextRoleDocument(
        role=_text(verdict.role),
        timezone=calendar.zone.name if calendar is not None else None,
        state=schedule_state(facts, verdict).value,
        next=[
            ComingDocument(occurrence=exact(c.occurrence), due_at=exact(c.due_at))
            for c in coming(facts, verdict, count)
        ],
    )


def check_json(config: Config, problems: Sequence[Problem], notes: Sequence[str] = ()) -> str:
    """The document of `check`."""
    return _dump(
        CheckReportDocument(
            version=VERSION,
            path=_text(config.path),
            commit=config.commit,
            present=config.present,
            ok=not any(p.severity is Severity.ERROR for p in problems),
            schedules=[_text(r) for r in config.schedules],
            problems=[_problem(p) for p in problems],
            notes=[_text(n) for n in notes],
        )
    )


def error_json(error: OrchestratorError) -> str:
    """The document printed when nothing could be evaluated."""
    return _dump(ErrorDocument(version=VERSION, error=_fatal(error)))


def bug_json(message: str, hint: str) -> str:
    """The same for an exception nobody foresaw."""
    fatal = FatalDocument(code="bug", message=_text(message), hint=_text(hint))
    return _dump(ErrorDocument(version=VERSION, error=fatal))


def _dump(
    document: EvaluationDocument
    | StatusDocument
    | NextDocument
    | CheckReportDocument
    | ErrorDocument,
) -> str:
    # ASCII only: what others wrote cannot reach a terminal as an escape, and every reader copes.
    return json.dumps(document.model_dump(mode="json"), indent=2) + "\n"


def _text(text: str) -> str:
    """Text as JSON can hold it: bytes that were not UTF-8 become replacement characters."""
    return (
        text
        if text.isascii()
        else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    )


def _maybe(text: str | None) -> str | None:
    return None if text is None else _text(text)


def _fatal(error: OrchestratorError) -> FatalDocument:
    code: FatalCode = next((c for kind, c in _KINDS if isinstance(error, kind)), "failed")
    return FatalDocument(code=code, message=_text(error.message), hint=_maybe(error.hint))


def _repository(info: RepositoryInfo) -> RepositoryDocument:
    return RepositoryDocument(
        path=_text(info.path),
        remote=_maybe(info.remote),
        default_branch=_text(info.default_branch),
        tip=info.tip,
    )


def _config(config: Config) -> ConfigDocument:
    return ConfigDocument(
        path=_text(config.path),
        commit=config.commit,
        present=config.present,
        problems=[_problem(p) for p in config.problems],
    )


def _problem(problem: Problem) -> ProblemDocument:
    return ProblemDocument(
        code=problem.code.value,
        message=_text(problem.message),
        hint=_maybe(problem.hint),
        line=problem.line,
        column=problem.column,
        key=_maybe(problem.key),
        path=_maybe(problem.path),
        severity=problem.severity.value,
    )


def _role(outcome: RoleOutcome) -> RoleDocument:
    verdict = outcome.verdict
    return RoleDocument(
        role=_text(verdict.role),
        rule=verdict.rule.value if verdict.rule is not None else None,
        action=verdict.action.value,
        code=verdict.code.value,
        reason=_text(verdict.reason),
        due_at=iso(verdict.due_at) if verdict.due_at is not None else None,
        state=verdict.state.value if verdict.state is not None else None,
        checks=[_check(c) for c in verdict.checks],
        error=_problem(verdict.error) if verdict.error is not None else None,
        sweep=_sweep(outcome.sweep) if outcome.sweep is not None else None,
        unblock=_maybe(verdict.unblock),
        warnings=[_text(w) for w in verdict.warnings],
    )


def _check(check: Check) -> CheckDocument:
    return CheckDocument(
        rule=check.rule.value,
        holds=check.holds,
        reason=_text(check.reason),
        evidence={key: _evidence(value) for key, value in check.evidence.items()},
    )


def _evidence(value: EvidenceValue) -> EvidenceValue:
    if isinstance(value, str):
        return _text(str(value))
    return [_text(v) for v in value] if isinstance(value, list) else value


def _sweep(sweep: SweepResult) -> SweepDocument:
    return SweepDocument(
        slug=sweep.sweep.slug,
        branch=sweep.sweep.branch,
        intent=sweep.intent,
        closing=sweep.closing,
        status=sweep.status.value,
        tokens_in=sweep.usage.tokens_in,
        tokens_out=sweep.usage.tokens_out,
        cost_usd=sweep.usage.cost_usd,
        failed=_maybe(sweep.failed),
    )


def _role_status(outcome: RoleOutcome) -> RoleStatusDocument:
    row, verdict = role_status(outcome), outcome.verdict
    entry = None if isinstance(outcome.facts.entry, Problem) else outcome.facts.entry
    return RoleStatusDocument(
        role=_text(verdict.role),
        state=row.state.value,
        rule=verdict.rule.value if verdict.rule is not None else None,
        code=verdict.code.value,
        reason=_text(verdict.reason),
        due_at=iso(row.due_at) if row.due_at is not None else None,
        timing=words_of(outcome) if entry is not None else None,
        schedule_state=schedule_state(outcome.facts, verdict).value,
        description=_maybe(entry.description) if entry is not None else None,
        open=[_open(b) for b in outcome.facts.open_branches],
        last=_last(row.last) if row.last is not None else None,
        error=_problem(verdict.error) if verdict.error is not None else None,
    )


def _open(branch: SweepBranch) -> OpenSweepDocument:
    return OpenSweepDocument(
        slug=branch.sweep.slug,
        branch=branch.sweep.branch,
        state=branch.state.value if branch.state is not None else None,
        since=iso(branch.since) if branch.since is not None else None,
        instance=_maybe(branch.instance),
        alive=branch.alive,
        failed=_maybe(branch.failed),
        release=_maybe(branch.release),
    )


def _last(last: MergedSweep) -> LastSweepDocument:
    read = last.marker
    return LastSweepDocument(
        slug=last.sweep.slug,
        at=iso(last.at),
        tokens_in=read.tokens_in if read is not None else None,
        tokens_out=read.tokens_out if read is not None else None,
        cost_usd=read.cost_usd if read is not None else None,
        failed=_maybe(last.failed),
    )
