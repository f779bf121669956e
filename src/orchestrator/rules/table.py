"""When a sweep is due: the whole rule set, in the order in which it is asked.

Why this order
--------------
The first rule that holds decides, so what stands earlier protects what stands later:

*S0 disabled* comes first because a person's "off" outranks every fact about the past. It costs
nothing to know and must not depend on anything that could be broken.

*S1 open* comes before any talk of time: while a sweep of the role is in flight or waits for its
reviewer, another would only pile up work nobody has looked at. One open sweep a role is the
product's back-pressure. It also outranks a broken marker: whoever has a branch to review is
better served by that than by a complaint about the past.

*S2 not due* is the interval, counted from the `at` of the newest merged marker. Merging is what
makes a sweep count, dispatch is what it counts from. A marker that cannot be read is an error
here, never "treat as first": that would spend money on a typo.

*S3 today* is the duplicate guard: a slug is a role and a day, so a day has at most one sweep of a
role, whatever `every` says. It is asked after S2 so that the usual answer names the interval, and
before SB so that a cap is only complained about when a sweep would really start.

*SB over the cap* is asked last of all that can say no: an estimate above the cap is a mistake in
the committed policy, and saying so at every tick for a week before a sweep is even due would teach
people to ignore it.

*S4 dispatch* is what remains. No path ends without a reason. One thing can still hold a due sweep
back: this clone could not use its agent's service a short while ago (a refused key, a rate limit).
Then it rests until the time to try again, because asking every minute helps nobody.

Errors have their place too: an entry that cannot be read comes before all rules; a role nobody
registered (or registered badly, or capped without an estimate) comes after S0, so that a disabled
role stays quiet.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from orchestrator.model.config import Registration, ScheduleEntry
from orchestrator.model.problem import ErrorCode, Problem
from orchestrator.model.timing import iso, next_midnight
from orchestrator.rules.facts import (
    Backoff,
    BrokenMarker,
    MergedSweep,
    RoleFacts,
    SweepBranch,
    SweepState,
)
from orchestrator.rules.timing import due, next_start
from orchestrator.rules.verdict import Action, Check, Code, Evidence, RuleId

ALLOW = "allow"


class Known(NamedTuple):
    """Facts whose entry and registration are known to be usable; what rules after S0 see."""

    facts: RoleFacts
    entry: ScheduleEntry
    registration: Registration


class Rule(NamedTuple):
    """One row of the table; `question` and `meaning` are what the documentation prints."""

    id: RuleId
    question: str
    meaning: str
    action: Action
    code: Code


S0 = Rule(
    RuleId.S0,
    "disabled?",
    "The entry says `enabled: false`.",
    Action.REST,
    Code.DISABLED,
)
S1 = Rule(
    RuleId.S1,
    "sweep open?",
    "A local or remote-tracking `run/<role>-<date>` branch is not merged: in flight, awaiting "
    "review, failed, or unpublished.",
    Action.REST,
    Code.SWEEP_OPEN,
)
S2 = Rule(
    RuleId.S2,
    "not due yet?",
    "Less than `every` has passed since the `at` of the role's newest merged marker; for `cron` "
    "and `interval`, the latest occurrence was swept, is older than the schedule, or is missed.",
    Action.REST,
    Code.NOT_DUE,
)
S3 = Rule(
    RuleId.S3,
    "swept today?",
    "A branch for today's slug exists, or its marker is on the default branch already (days are "
    "UTC days).",
    Action.REST,
    Code.ALREADY_TODAY,
)
SB = Rule(
    RuleId.SB,
    "over the cap?",
    "`cost_limit_usd` is set and the role's estimate is higher.",
    Action.SKIP,
    Code.OVER_CAP,
)
S4 = Rule(
    RuleId.S4,
    "due",
    "None of the above.",
    Action.DISPATCH,
    Code.DUE,
)

TABLE = (S0, S1, S2, S3, SB, S4)


def _place(facts: RoleFacts, line: int) -> str:
    return f"{facts.config_place}:{line}"


def check_disabled(facts: RoleFacts, entry: ScheduleEntry) -> Check:
    """S0. Asked before anything else is known about the role."""
    place = _place(facts, entry.line_of("enabled"))
    evidence: Evidence = {"file": place, "commit": facts.config_commit, "enabled": entry.enabled}
    if facts.by_hand:
        return Check(
            RuleId.S0, holds=False, reason="no: a person asks for it now", evidence=evidence
        )
    if entry.enabled:
        written = f"enabled: true at {place}" if "enabled" in entry.lines else "on by default"
        return Check(RuleId.S0, holds=False, reason=f"no: {written}", evidence=evidence)
    return Check(
        RuleId.S0,
        holds=True,
        reason=f"disabled at {place}",
        evidence=evidence,
        unblock=f"set enabled: true at {place} on {facts.tip_name}",
    )


_WAITS = {
    SweepState.IN_FLIGHT: "is in flight",
    SweepState.AWAITING_REVIEW: "awaits review",
    SweepState.FAILED: "failed and awaits a person",
    SweepState.UNPUBLISHED: "is not on the remote: its last commits are in this clone only",
}


def _open_reason(branch: SweepBranch, more: int) -> str:
    shown = branch.sweep.branch if branch.state is SweepState.UNPUBLISHED else branch.shown_ref
    said = f"{shown} {_WAITS[branch.state or SweepState.AWAITING_REVIEW]}"
    if branch.state is SweepState.IN_FLIGHT:
        if branch.since is not None:
            said += f" since {iso(branch.since)}"
        if branch.instance:
            said += f" by {branch.instance}"
        if branch.alive is not None:
            said += ", its agent running here" if branch.alive else ", but no agent runs here"
    if branch.failed is not None:
        said += f": {branch.failed}"
    return said + (f" (and {more} more open)" if more else "")


def _open_unblock(branch: SweepBranch, remote: str | None) -> str:
    release = f"{branch.release} releases the role" if branch.release else "delete the branch"
    match branch.state:
        case SweepState.IN_FLIGHT:
            return f"it ends by itself; {release}"
        case SweepState.UNPUBLISHED if remote is not None:
            return f"git push {remote} {branch.sweep.branch} publishes it; {release}"
        case _:
            return f"merge {branch.shown_ref} to approve it; {release}"


def check_open(known: Known) -> Check:
    """S1. The newest open branch is named; how many there are is counted."""
    facts, entry = known.facts, known.entry
    still_open = facts.open_branches
    merged = [b.shown_ref for b in facts.branches if b.merged is not None]
    if not still_open:
        looked = f"{len(merged)} merged" if merged else "none exists"
        return Check(
            RuleId.S1,
            holds=False,
            reason=f"no: no run/{facts.role}-<date> branch is unmerged ({looked})",
            evidence={"merged": merged, "tip": facts.tip},
        )
    if entry.overlap is not None and entry.overlap == ALLOW:
        place = _place(facts, entry.line_of("overlap"))
        return Check(
            RuleId.S1,
            holds=False,
            reason=f"no: {len(still_open)} open, and overlap: allow at {place}",
            evidence={"refs": [f"{r.name} {r.tip}" for b in still_open for r in b.refs]},
        )
    branch = still_open[0]
    evidence: Evidence = {
        "refs": [f"{r.name} {r.tip}" for b in still_open for r in b.refs],
        "state": branch.state,
        "intent": branch.intent,
        "since": iso(branch.since) if branch.since else None,
        "instance": branch.instance,
        "alive": branch.alive,
        "failed": branch.failed,
        "tip": facts.tip,
    }
    return Check(
        RuleId.S1,
        holds=True,
        reason=_open_reason(branch, len(still_open) - 1),
        evidence=evidence,
        unblock=_open_unblock(branch, facts.remote),
        state=branch.state,
    )


def _next_chance(known: Known, interval_end: datetime | None) -> datetime | None:
    """When time alone could make a sweep due: after the interval and on a day not yet used."""
    facts = known.facts
    if interval_end is None or known.entry.calendar is not None:
        return interval_end
    used_today = facts.today_merged or any(b.sweep == facts.today for b in facts.branches)
    tomorrow = next_midnight(facts.now)
    if used_today and tomorrow is not None:
        return max(interval_end, tomorrow)
    return interval_end


def _broken(facts: RoleFacts, marker: BrokenMarker) -> Check:
    return Check(
        RuleId.S2,
        holds=False,
        reason=marker.problem.message,
        evidence={"file": marker.problem.place, "commit": facts.tip},
        unblock=marker.problem.hint,
        problem=marker.problem,
    )


def check_due(known: Known) -> Check:
    """S2. Only the newest marker is looked at; one that cannot be read ends the evaluation."""
    facts, entry = known.facts, known.entry
    for marker in (facts.last, facts.paced_by):
        if isinstance(marker, BrokenMarker):
            return _broken(facts, marker)
    last = facts.last if isinstance(facts.last, MergedSweep) else None
    answer = due(facts, entry)
    evidence: Evidence = {
        "every": entry.timing,
        "every_at": _place(facts, entry.timing_line),
        "marker": last.sweep.marker_path if last else None,
        "at": iso(last.at) if last else None,
        "now": iso(facts.now),
        "tip": facts.tip,
        **_calendar_evidence(known),
    }
    warning = answer.warning
    if last is not None and last.unfinished and warning is None:
        warning = f"{last.sweep} was merged before its closing commit: what it cost is not recorded"
    if answer.elapsed:
        reason = f"no: {answer.reason}"
        return Check(RuleId.S2, holds=False, reason=reason, evidence=evidence, warning=warning)
    chance = _next_chance(known, answer.due_at)
    reason = answer.reason
    if chance is not None and chance != answer.due_at:
        reason += "; a day has one sweep, so the day after counts"
    return Check(
        RuleId.S2,
        holds=True,
        reason=reason,
        evidence=evidence,
        due_at=chance,
        unblock=f"change the schedule at {_place(facts, entry.timing_line)} on {facts.tip_name}"
        if answer.ended
        else None,
        warning=warning,
    )


def _calendar_evidence(known: Known) -> Evidence:
    """What a calendar schedule's answer rests on beside; nothing for an interval."""
    facts, calendar = known.facts, known.entry.calendar
    if calendar is None:
        return {}
    from orchestrator.model.occurrence import exact  # only calendar schedules

    latest, newest, since = facts.occurrence, facts.newest_occurrence, facts.timing_since
    return {
        "occurrence": exact(latest) if latest else None,
        "newest_occurrence": exact(newest) if newest else None,
        "timing_since": f"{iso(since.at)} {since.commit}" if since else None,
    }


def check_today(known: Known) -> Check:
    """S3. Branches are often deleted on merge, so the marker on the tip counts as well."""
    facts, today = known.facts, known.facts.today
    refs = [f"{r.name} {r.tip}" for b in facts.branches if b.sweep == today for r in b.refs]
    evidence: Evidence = {
        "slug": today.slug,
        "refs": refs,
        "marker": today.marker_path if facts.today_merged else None,
        "tip": facts.tip,
    }
    if not refs and not facts.today_merged:
        problem = facts.obstacle
        return Check(
            RuleId.S3,
            holds=False,
            reason=problem.message if problem else f"no: {today.slug} does not exist yet",
            evidence=evidence,
            unblock=problem.hint if problem else None,
            problem=problem,
        )
    where = f"{today.marker_path} is on {facts.tip_name}" if facts.today_merged else refs[0]
    whose = "today's" if today.date == facts.now.astimezone(UTC).date() else f"{today.date}'s"
    return Check(
        RuleId.S3,
        holds=True,
        reason=f"{whose} sweep exists already: {where}; a day (UTC) has at most one",
        evidence=evidence,
        due_at=next_start(facts, known.entry),
        unblock=None if known.entry.calendar is None else f"delete {today.branch} to sweep again",
    )


def check_cap(known: Known) -> Check:
    """SB. No cap, no check. The estimate is known here: its absence was caught before S1."""
    facts, entry = known.facts, known.entry
    cap, estimate = entry.cost_limit_usd, facts.estimate_usd
    place = _place(facts, entry.line_of("cost_limit_usd"))
    evidence: Evidence = {
        "cost_limit_usd": cap,
        "cap_at": place if cap is not None else None,
        "estimate_usd": estimate,
        "estimate_from": facts.estimate_source or None,
    }
    if cap is None:
        return Check(RuleId.SB, holds=False, reason="no: no cost_limit_usd", evidence=evidence)
    if estimate is None or estimate <= cap:
        known_estimate = "free" if estimate is None else f"estimate ${estimate:g}"
        return Check(
            RuleId.SB,
            holds=False,
            reason=f"no: {known_estimate}, cap ${cap:g}",
            evidence=evidence,
            warning=_overspent(facts, cap),
        )
    return Check(
        RuleId.SB,
        holds=True,
        reason=f"the estimate of ${estimate:g} ({facts.estimate_source}) is over the cap of "
        f"${cap:g} at {place}",
        evidence=evidence,
        unblock=f"raise cost_limit_usd at {place}, or lower the estimate "
        f"({facts.estimate_source}) if it is wrong",
    )


def _overspent(facts: RoleFacts, cap: float) -> str | None:
    """The cap is on the estimate; an agent that spent more shows that the estimate is wrong."""
    last = facts.last
    marker = last.marker if isinstance(last, MergedSweep) else None
    if marker is None or marker.cost_usd is None or marker.cost_usd <= cap:
        return None
    return f"{marker.sweep} cost ${marker.cost_usd:g}, over the cap of ${cap:g}: mend the estimate"


def check_dispatch(known: Known) -> Check:
    """S4. What remains when nothing above holds."""
    facts, last = known.facts, known.facts.last
    since = None
    if last is not None and not isinstance(last, BrokenMarker):
        since = last.covered_until
    window = f"covering since {iso(since)}" if since else "a first sweep, so its window is open"
    evidence: Evidence = {
        "slug": facts.today.slug,
        "branch": facts.today.branch,
        "adapter": known.registration.adapter,
        "covering_since": iso(since) if since else None,
        "tip": facts.tip,
    }
    if facts.backoff is not None:
        return _waits_for_agent(facts.backoff, evidence)
    return Check(
        RuleId.S4,
        holds=True,
        reason=f"due: {facts.today.slug} with {known.registration.adapter}, {window}",
        evidence=evidence,
        due_at=facts.now,
    )


def _waits_for_agent(backoff: Backoff, evidence: Evidence) -> Check:
    """Due, and yet it rests in this clone: its agent's service could not be used lately."""
    times = "once" if backoff.failures == 1 else f"{backoff.failures} times in a row"
    return Check(
        RuleId.S4,
        holds=True,
        reason=f"due, but {backoff.agent} could not be used here ({times}): "
        f"{backoff.reason}; tried again from {iso(backoff.until)}",
        evidence={
            **evidence,
            "retry_at": iso(backoff.until),
            "failures": backoff.failures,
            "failed": backoff.reason,
        },
        due_at=backoff.until,
        waits=True,
        unblock="mend it, then delete the role's file in .git/orchestrator/backoff to try at once",
    )


AFTER_S0: tuple[tuple[Rule, Callable[[Known], Check]], ...] = (
    (S1, check_open),
    (S2, check_due),
    (S3, check_today),
    (SB, check_cap),
    (S4, check_dispatch),
)


def registered_or_problem(facts: RoleFacts, entry: ScheduleEntry) -> Registration | Problem:
    """How a role that is switched on is run, or what keeps it from running; asked after S0."""
    if isinstance(facts.registration, Problem):
        return facts.registration
    capped = entry.cost_limit_usd is not None
    if capped and facts.registration.priced and facts.estimate_usd is None:
        line = entry.line_of("cost_limit_usd")
        return Problem(
            ErrorCode.NO_ESTIMATE,
            f"{facts.role} has a cost_limit_usd, but nothing says what a sweep with "
            f"{facts.registration.adapter} is expected to cost",
            f"write estimate_usd for {facts.role} under roles in {facts.config_place}",
            path=facts.config_place,
            commit=facts.config_commit,
            line=line,
            key=f"schedules.{facts.role}.cost_limit_usd",
        )
    return facts.registration
