"""The soak behind `scripts/soak`: exits 1 at the first violation, with the seed that showed it."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.support.soak.arena import Transport, arena  # noqa: E402 - the path has to be set first
from tests.support.soak.controls import guarded, naive_refs, same_intent  # noqa: E402
from tests.support.soak.driver import Plan, Soak, Violation, table  # noqa: E402

MIX: tuple[Transport, ...] = ("file", "http", "ssh", "file", "http")


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended on the way out
    base = Path(tempfile.mkdtemp(prefix="soak-", dir=options.dir))
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}, in {base}", flush=True)
    try:
        ok = _run(options, seed, base)
    except Violation as violation:
        print(f"VIOLATION: {violation}\nkept: {base}", file=sys.stderr)
        return 1
    if not options.keep:
        shutil.rmtree(base)
    return 0 if ok else 1


def _run(options: argparse.Namespace, seed: int, base: Path) -> bool:
    if options.naive_refs or options.same_intent:
        return _controls(options, base)
    if options.short:
        with_remote = Plan(seed, instances=5, rounds=12, kills=8, drops=4, edits=3)
        alone = Plan(seed, instances=3, rounds=7, kills=4, drops=0, edits=1)
    else:
        with_remote = Plan(
            seed,
            instances=options.instances,
            rounds=options.rounds,
            kills=options.kills,
            drops=options.drops if options.drops is not None else options.rounds // 8,
            edits=options.rounds // 10,
        )
        alone = None
    _soak("one remote over file, http and ssh", with_remote, base / "remote")
    if alone is not None:
        _soak("no remote, one repository", alone, base / "alone", alone=True)
        options.naive_refs = options.same_intent = True
        return _controls(options, base)
    return True


def _soak(title: str, plan: Plan, base: Path, *, alone: bool = False) -> None:
    clones = max(2, (plan.instances * 2 + 2) // 3)
    with arena(base, clones=clones, transports=MIX, alone=alone) as made:
        tally = Soak(made, plan, _say).run()
    print(f"{title}: {plan.instances} instances in {len(made.clones)} clones", flush=True)
    print(table(plan, tally), flush=True)


def _say(line: str) -> None:
    print(line, flush=True)


def _controls(options: argparse.Namespace, base: Path) -> bool:
    """The same harness must catch what is known to be wrong, or it proves nothing."""
    ok = True
    if options.naive_refs:
        kept = guarded(base / "guarded")
        print(
            f"its counterpart, the locked transaction: {kept.doubles} doubles in {kept.races} races"
        )
        ok = kept.doubles == 0
    for name, wanted, control in (
        ("naive-refs", options.naive_refs, naive_refs),
        ("same-intent", options.same_intent, same_intent),
    ):
        if wanted:
            found = control(base / name)
            print(f"negative control {name}: {found}", flush=True)
            ok = ok and found.caught
    return ok


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--instances", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--drops", type=int, help="default: one in eight rounds")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--naive-refs", action="store_true")
    parser.add_argument("--same-intent", action="store_true")
    parser.add_argument("--dir", help="where to make the folder, default the temporary folder")
    parser.add_argument("--keep", action="store_true", help="keep the folder of a good run too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
