"""Calendar schedules on real repositories: everything they need to know is in git."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.git.reader import Reader
from orchestrator.model.names import SweepName
from orchestrator.observe import evaluate_repository
from orchestrator.outcome import RoleOutcome
from orchestrator.rules.verdict import Action, Code
from orchestrator.sweeps import marker_at
from tests.support import repos
from tests.support.world import FILES, World

NIGHTLY = "schedules:\n  historian:\n    cron: 0 2 * * *\n    timezone: Europe/Berlin\n"
COMMITTED = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
FIRST = datetime(2026, 11, 30, 1, 0, tzinfo=UTC)


def _commit(world: World, policy: str, at: datetime, **more: str) -> None:
    files = {"orchestrator.yaml": policy, **more}
    repos.commit_files(world.shared, files, when=int(at.timestamp()))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A remote whose policy got a nightly schedule on 29 November, noon."""
    made = World.with_remote(tmp_path, FILES)
    _commit(made, NIGHTLY, COMMITTED)
    made.now = COMMITTED + timedelta(minutes=5)
    return made


def _state(outcome: RoleOutcome) -> tuple[str | None, str]:
    return outcome.verdict.rule, outcome.verdict.code


def _sweep(world: World, day: str) -> SweepName:
    found = SweepName.from_slug(f"historian-{day}")
    assert found is not None
    return found


def test_a_schedule_starts_with_its_next_occurrence_and_goes_on_from_merge_to_merge(
    world: World,
) -> None:
    resting = world.only()
    assert _state(resting) == ("S2", Code.NOT_DUE)
    assert resting.verdict.due_at == FIRST
    world.now = FIRST + timedelta(minutes=7)
    swept = world.only()
    assert swept.sweep is not None
    assert swept.sweep.sweep == _sweep(world, "2026-11-30")
    text = repos.read(world.shared, "run/historian-2026-11-30:runs/historian-2026-11-30/sweep.yaml")
    assert 'every: "cron 0 2 * * * Europe/Berlin"\nat: 2026-11-30T01:07:00Z\n' in text
    assert "occurrence: 2026-11-30T01:00:00Z\n" in text
    assert _state(world.only()) == ("S1", Code.SWEEP_OPEN)
    world.merge(_sweep(world, "2026-11-30"), keep=False)
    after = world.only()
    assert _state(after) == ("S2", Code.NOT_DUE)
    assert after.verdict.due_at == FIRST + timedelta(days=1)
    world.wait(days=9)
    (caught_up,) = world.tick().outcomes
    assert caught_up.sweep is not None
    assert caught_up.sweep.sweep.date == (FIRST + timedelta(days=9)).date()


def test_clocks_that_differ_agree_on_the_sweep(world: World) -> None:
    other = repos.clone(world.upstream or world.home, world.root / "other")
    world.now = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    assert world.only().sweep is not None
    world.now = datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC)
    assert _state(world.only(other)) == ("S1", Code.SWEEP_OPEN)
    asked = evaluate_repository(world.settings(other), world.now).outcomes[0]
    assert asked.facts.today == _sweep(world, "2026-11-30")


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        (NIGHTLY + "    enabled: true\n", False),
        (NIGHTLY + "    description: another text\n", False),
        (NIGHTLY + "    cost_limit_usd: 3\n    overlap: allow\n", False),
        (NIGHTLY.replace("0 2 * * *", "0 2 * * 0-6"), False),
        (NIGHTLY.replace("0 2", "30 1"), True),
        (NIGHTLY + "    jitter: 1m\n", True),
        (NIGHTLY + "    start_at: 2026-01-01T00:00:00Z\n", True),
        (NIGHTLY.replace("Berlin", "Paris"), True),
    ],
)
def test_only_a_change_of_the_times_makes_a_schedule_start_anew(
    world: World, changed: str, counts: bool
) -> None:
    _commit(world, changed, FIRST + timedelta(hours=1))
    world.now = FIRST + timedelta(hours=2)
    outcome = world.explain(fetch=True)
    assert _state(outcome) == (("S2", Code.NOT_DUE) if counts else ("S4", Code.DUE))
    assert (outcome.facts.timing_since is not None) or not counts


def test_a_pause_leaves_no_backlog(world: World) -> None:
    _commit(world, NIGHTLY + "    enabled: false\n", COMMITTED + timedelta(hours=1))
    world.now = FIRST + timedelta(days=3)
    assert world.only().verdict.code is Code.DISABLED
    _commit(world, NIGHTLY, FIRST + timedelta(days=3, hours=2))
    world.now = FIRST + timedelta(days=3, hours=3)
    resting = world.only()
    assert _state(resting) == ("S2", Code.NOT_DUE)
    assert resting.verdict.due_at == FIRST + timedelta(days=4)


def test_an_entry_that_was_broken_for_a_while_starts_anew_too(world: World) -> None:
    _commit(world, "schedules: [\n", COMMITTED + timedelta(hours=1))
    _commit(world, NIGHTLY, FIRST + timedelta(hours=1))
    world.now = FIRST + timedelta(hours=2)
    assert _state(world.only()) == ("S2", Code.NOT_DUE)


def test_where_a_shallow_clone_ends_counts_as_the_change(world: World) -> None:
    _commit(world, NIGHTLY, FIRST + timedelta(hours=1), **{"README.md": "# New\n"})
    world.now = FIRST + timedelta(hours=2)
    assert world.explain(fetch=True).verdict.action is Action.DISPATCH
    shallow = repos.clone(world.shared, world.root / "shallow", "shallow")
    outcome = world.explain(shallow)
    assert _state(outcome) == ("S2", Code.NOT_DUE)
    assert outcome.facts.timing_since is not None
    assert outcome.facts.timing_since.at == FIRST + timedelta(hours=1)


def test_commits_between_do_not_hide_an_older_schedule(world: World) -> None:
    for n in range(40):
        at = FIRST - timedelta(hours=2) + timedelta(minutes=10 * n)
        _commit(world, NIGHTLY, at, **{"README.md": f"# {n}\n"})
    world.now = FIRST + timedelta(hours=8)
    assert world.explain(fetch=True).verdict.action is Action.DISPATCH


def test_an_open_sweep_of_an_occurrence_holds_it_wherever_overlap_is_allowed(world: World) -> None:
    _commit(world, NIGHTLY + "    overlap: allow\n", COMMITTED)
    world.now = FIRST + timedelta(minutes=1)
    assert world.only().sweep is not None
    resting = world.only()
    assert _state(resting) == ("S2", Code.NOT_DUE)
    world.wait(days=1)
    second = world.only()
    assert second.sweep is not None
    branches = [r for r in repos.refs(world.shared) if "/run/" in r]
    assert [b.rpartition("/")[2] for b in branches] == [
        "historian-2026-11-30", "historian-2026-12-01",
    ]  # fmt: skip
    assert _state(world.only()) == ("S2", Code.NOT_DUE)


def test_an_open_branch_whose_marker_cannot_be_read_counts_for_its_whole_day(world: World) -> None:
    _commit(world, NIGHTLY.replace("0 2", "0 */8") + "    overlap: allow\n", COMMITTED)
    slug = "historian-2026-11-30"
    repos.commit_files(
        world.shared, {f"runs/{slug}/sweep.yaml": "at: [\n"}, branch=f"run/{slug}", start="main"
    )
    world.now = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
    outcome = world.explain(fetch=True)
    assert _state(outcome) == ("S2", Code.NOT_DUE)
    assert outcome.verdict.due_at == datetime(2026, 12, 1, 7, 0, tzinfo=UTC)


def test_a_closed_sweep_keeps_its_occurrence_after_a_crash_and_a_merge(world: World) -> None:
    world.now = FIRST + timedelta(minutes=1)
    result = world.only().sweep
    assert result is not None
    assert result.closing is not None
    reading = marker_at(Reader.open(str(world.home), world.environ), result.closing, result.sweep)
    assert reading is not None
    assert reading.occurrence == FIRST


_ASK = """
import os, sys
from datetime import UTC, datetime
from orchestrator.tick import tick
from orchestrator.site import Settings
settings = Settings(sys.argv[1], environ=dict(os.environ))
(found,) = tick(settings, lambda: datetime(2026, 11, 29, tzinfo=UTC)).outcomes
assert found.verdict.code == "not_due", found.verdict
print(*sorted(sys.modules))
"""


def test_a_resting_tick_of_every_imports_nothing_of_calendars(tmp_path: Path) -> None:
    marker = "runs/historian-2026-11-28/sweep.yaml"
    world = World.alone(tmp_path, {**FILES, marker: "at: 2026-11-28T02:00:00Z\n"})
    done = subprocess.run(
        [sys.executable, "-c", _ASK, str(world.home)], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    calendar = {f"orchestrator.{m}" for m in ("model.occurrence", "model.cron", "zones")}
    names = {"zoneinfo", "hashlib", "cronsim", "tzdata", "orchestrator.configcalendar", *calendar}
    assert not loaded & names
