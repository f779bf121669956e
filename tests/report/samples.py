"""Evaluations made by hand, one for every kind of answer; the verdicts are the real rules'."""

from datetime import UTC, date, datetime, timedelta

from orchestrator.model.config import Config, Registration, ScheduleEntry
from orchestrator.model.marker import MarkerReading
from orchestrator.model.names import Oid, Ref, SweepName
from orchestrator.model.problem import ErrorCode, Problem, Severity
from orchestrator.model.status import Status
from orchestrator.model.timing import Every, iso
from orchestrator.model.usage import CostSource, Usage
from orchestrator.outcome import Evaluation, RepositoryInfo, RoleOutcome, SweepResult
from orchestrator.rules.engine import evaluate
from orchestrator.rules.facts import (
    BranchRef,
    BrokenMarker,
    MergedSweep,
    RoleFacts,
    SweepBranch,
    SweepState,
)
from orchestrator.rules.verdict import Action, Code, Verdict

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
TIP = Oid("3f2c1a9d04b7e6f8a1c2d3e4f5061728394a5b6c")
BRANCH_TIP = Oid("c0ffee0123456789abcdef0123456789abcdef01")
INTENT = Oid("badc0de123456789abcdef0123456789abcdef01")
CLOSING = Oid("feedbee123456789abcdef0123456789abcdef01")
REPOSITORY = RepositoryInfo("/srv/acme/handbook", "origin", "main", TIP, "origin/main")


def every(text: str) -> Every:
    parsed = Every.parse(text)
    assert parsed is not None
    return parsed


def registration(role: str, adapter: str = "builtin", estimate: float | None = 0.0) -> Registration:
    return Registration(
        role=role,
        adapter=adapter,
        priced=adapter != "builtin",
        model=None if adapter == "builtin" else "claude-sonnet-5",
        estimate_usd=estimate,
        instructions=None,
        timeout_s=3600.0,
        writes=("**",),
        command=(),
        source="packaged" if adapter == "builtin" else "orchestrator.yaml:9",
    )


def entry(
    role: str = "historian", interval: str = "7d", *, cap: float | None = None
) -> ScheduleEntry:
    lines = {"every": 3}
    if cap is not None:
        lines["cost_limit_usd"] = 4
    return ScheduleEntry(role, every(interval), cost_limit_usd=cap, line=2, lines=lines)


def facts(role: str = "historian", **changes: object) -> RoleFacts:
    base = RoleFacts(
        role=role,
        now=NOW,
        entry=entry(role),
        registration=registration(role),
        tip=TIP,
        tip_name="origin/main",
        config_place="orchestrator.yaml",
        config_commit=TIP,
        estimate_usd=0.0,
        estimate_source="packaged",
        remote="origin",
    )
    return base._replace(**changes)  # type: ignore[arg-type]


def merged(
    role: str = "historian", ago: timedelta = timedelta(days=1), **numbers: object
) -> MergedSweep:
    at = NOW - ago
    sweep = SweepName.on(role, at)
    reading = MarkerReading(
        sweep=sweep,
        at=at,
        covering_since=None,
        adapter="builtin",
        model=None,
        tokens_in=1234,
        tokens_out=56,
        cost_usd=0.0123,
        failed=None,
    )
    reading = reading._replace(**numbers)  # type: ignore[arg-type]
    return MergedSweep(sweep, at, failed=reading.failed, marker=reading)


def branch(role: str, day: date, state: SweepState, **changes: object) -> SweepBranch:
    sweep = SweepName(role, day)
    ref = BranchRef(Ref(f"refs/remotes/origin/{sweep.branch}"), BRANCH_TIP, "origin")
    if state is SweepState.UNPUBLISHED:
        ref = BranchRef(sweep.local_ref, BRANCH_TIP, None)
    made = SweepBranch(
        sweep,
        (ref,),
        state=state,
        intent=INTENT,
        since=datetime(day.year, day.month, day.day, 2, 0, tzinfo=UTC),
        instance="builder-1:a1b2c3",
        release=f"git push origin --delete {sweep.branch}",
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def config_problem(role: str = "scribe") -> Problem:
    return Problem(
        ErrorCode.CONFIG_ERROR,
        "every must be a whole number followed by d, h or m, such as 7d; '1w' is not",
        "write 7d",
        path="orchestrator.yaml",
        commit=TIP,
        line=6,
        column=12,
        key=f"schedules.{role}.every",
    )


DAY = date(2026, 11, 23)


def rest_facts() -> tuple[RoleFacts, ...]:
    """One role for each way to rest or to be refused, and one that is due."""
    off = entry("auditor")._replace(enabled=False, lines={"every": 12, "enabled": 13})
    flying = branch("flyer", date(2026, 11, 29), SweepState.IN_FLIGHT, alive=None)
    failed = branch("breaker", DAY, SweepState.FAILED, failed="timeout: no answer in 60 min")
    unpublished = branch("hermit", DAY, SweepState.UNPUBLISHED)
    unpublished = unpublished._replace(release=f"git branch -D {unpublished.sweep.branch}")
    marker = Problem(
        ErrorCode.MARKER_ERROR,
        "runs/keeper-2026-11-23/sweep.yaml on origin/main: at must be a time",
        "mend runs/keeper-2026-11-23/sweep.yaml on origin/main; the role waits until then",
        path="runs/keeper-2026-11-23/sweep.yaml",
        commit=TIP,
        line=4,
        column=5,
    )
    unknown = Problem(
        ErrorCode.UNKNOWN_ROLE,
        "nobody registered a role called mystery",
        "write it under roles in orchestrator.yaml",
        path="orchestrator.yaml",
        commit=TIP,
        line=30,
        key="schedules.mystery",
    )
    return (
        facts("auditor", entry=off),
        facts("historian", last=merged()),
        facts("reviewed", branches=(branch("reviewed", DAY, SweepState.AWAITING_REVIEW),)),
        facts("flyer", branches=(flying,)),
        facts("breaker", branches=(failed,)),
        facts("hermit", branches=(unpublished,)),
        facts(
            "daily",
            entry=entry("daily", "1h"),
            today_merged=True,
            last=merged("daily", timedelta(hours=2)),
        ),
        facts(
            "spender",
            entry=entry("spender", cap=5),
            registration=registration("spender", "claude-code", 7.5),
            estimate_usd=7.5,
            estimate_source="orchestrator.yaml:9",
        ),
        facts("fresh"),
        facts("scribe", entry=config_problem()),
        facts("keeper", last=BrokenMarker(marker, SweepName("keeper", DAY))),
        facts("mystery", registration=unknown),
    )


def evaluation(*some: RoleFacts, config: Config | None = None, **changes: object) -> Evaluation:
    known = some or rest_facts()
    entries = {f.role: f.entry for f in known}
    problems = tuple(e for e in entries.values() if isinstance(e, Problem))
    made = Evaluation(
        now=iso(NOW),
        repository=REPOSITORY,
        config=config or Config(schedules=entries, problems=problems, commit=TIP),
        outcomes=tuple(RoleOutcome(evaluate(f), f) for f in known),
    )
    return made._replace(**changes)  # type: ignore[arg-type]


def swept(role: str = "historian", **changes: object) -> RoleOutcome:
    """A sweep that was dispatched and completed."""
    known = facts(role)
    result = SweepResult(
        sweep=SweepName.on(role, NOW),
        intent=INTENT,
        closing=CLOSING,
        status=Status.OK,
        usage=Usage(1234, 56, 0.0123, CostSource.REPORTED),
    )
    return RoleOutcome(evaluate(known), known, result._replace(**changes))  # type: ignore[arg-type]


def turned(role: str, action: Action, code: Code, reason: str, hint: str | None) -> RoleOutcome:
    known = facts(role)
    verdict: Verdict = evaluate(known).turned(
        action, code, reason, unblock=hint, error=action is Action.ERROR
    )
    return RoleOutcome(verdict, known)


def ticked() -> Evaluation:
    """A tick with every kind of line."""
    outcomes = (
        *evaluation().outcomes,
        swept("sweeper"),
        swept(
            "timed",
            status=Status.TIMEOUT,
            usage=Usage(),
            failed="timeout: stopped after 60 min",
            transcript="/home/bot/.cache/orchestrator/timed-2026-11-30",
        ),
        swept("offline", published=False, left_out=((".github/workflows/x.yml", "not in writes"),)),
        turned(
            "racer",
            Action.REST,
            Code.LOST_RACE,
            "another instance claimed racer-2026-11-30 first",
            None,
        ),
        turned(
            "barred",
            Action.ERROR,
            Code.REFUSED,
            "origin refused run/barred-2026-11-30: pre-receive hook declined",
            "let this identity create run/* branches on origin",
        ),
    )
    made = evaluation()
    return made._replace(
        outcomes=outcomes,
        mended=("historian-2026-11-22 was interrupted here and is closed as failed",),
        notes=("this clone is shallow: its history ends at a boundary",),
    )


def whole_file_refused() -> Evaluation:
    problem = Problem(
        ErrorCode.CONFIG_ERROR,
        "the key every is written twice, on lines 3 and 5",
        "keep one of them",
        path="orchestrator.yaml",
        commit=TIP,
        line=5,
        column=5,
        key="schedules.historian.every",
    )
    config = Config(problems=(problem,), commit=TIP)
    return Evaluation(iso(NOW), REPOSITORY, config, ())


def absent() -> Evaluation:
    return Evaluation(iso(NOW), REPOSITORY, Config(commit=TIP, present=False), ())


def warned() -> Problem:
    return Problem(
        ErrorCode.CONFIG_ERROR,
        "shedules is not a key this program knows",
        "did you mean schedules?",
        path="orchestrator.yaml",
        commit=TIP,
        line=1,
        column=1,
        key="shedules",
        severity=Severity.WARNING,
    )
