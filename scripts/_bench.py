"""The measurements behind `scripts/bench`."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

IMPORTS = "import click, pygit2, pydantic, ruamel.yaml"
NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
PACKED_REFS = 100_000
MERGED_SWEEPS = 5_000
TREE_FILES = 100_000
DOCUMENTS = 1_500
ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_COMMITTER_NAME": "Bench",
    "GIT_COMMITTER_EMAIL": "bench@example.org",
}


def git(path: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", "-C", str(path), *args], input=stdin, capture_output=True, env=ENV, check=True
    )
    return done.stdout.decode().strip()


def marker(role: str, day: date) -> bytes:
    at = f"{day}T01:00:00Z"
    return (
        f"sweep: {role}-{day}\nrole: {role}\nevery: 7d\nat: {at}\ncovering_since: null\n"
        "adapter: builtin\nmodel: null\ncost_limit_usd: null\n"
        "tokens_in: 0\ntokens_out: 0\ncost_usd: 0\n"
    ).encode()


def build(path: Path, *, files: int, sweeps: int, refs: int) -> Path:
    """A clone with a remote, whose historian swept two days ago: a tick rests by S2."""
    path.mkdir(parents=True)
    upstream, home = path / "up.git", path / "home"
    git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(upstream))
    rows = {
        "orchestrator.yaml": b"schedules:\n  historian:\n    every: 7d\n",
        "README.md": b"# Bench\n",
    }
    last = NOW.date() - timedelta(days=2)
    rows[f"runs/historian-{last}/sweep.yaml"] = marker("historian", last)
    for n in range(sweeps):
        day = date(2010, 1, 1) + timedelta(days=n)
        rows[f"runs/other-{day}/sweep.yaml"] = marker("other", day)
    for n in range(files):
        rows[f"src/{n // 1000:03d}/file{n % 1000:03d}.txt"] = b"text\n"
    stream = [b"commit refs/heads/main\ncommitter B <b@example.org> 1764000000 +0000\ndata 1\n.\n"]
    for name, data in rows.items():
        stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
    git(upstream, "fast-import", "--quiet", stdin=b"".join(stream) + b"\n")
    git(path, "clone", "--quiet", "--no-checkout", f"file://{upstream}", str(home))
    if refs:
        tip = git(home, "rev-parse", "HEAD")
        known = git(home, "for-each-ref", "--format=%(objectname) %(refname)").splitlines()
        lines = [f"{tip} refs/heads/bulk/{n:07d}" for n in range(refs)]
        lines += [x for x in known if not x.endswith("/HEAD")]
        packed = sorted(lines, key=lambda line: line.split(" ")[1])
        header = "# pack-refs with: peeled fully-peeled sorted "
        (home / ".git" / "packed-refs").write_text("\n".join([header, *packed]) + "\n")
    return home


def run(command: Sequence[str]) -> tuple[float, int]:
    """Wall-clock seconds, and peak memory in KiB as the kernel accounts it."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed: {said.decode()}")
    return time.perf_counter() - started, usage.ru_maxrss


def paired(
    runs: int, one: Callable[[], tuple[float, int]], two: Callable[[], tuple[float, int]]
) -> tuple[float, float, float, float | None]:
    """Run both in turn; medians of the two, and of the ratios pair by pair."""
    one(), two()  # caches
    pairs = [(one(), two()) for _ in range(runs)]
    seconds = statistics.median(a[0] / b[0] for a, b in pairs)
    memory = statistics.median(a[1] / b[1] for a, b in pairs) if pairs[0][1][1] else None
    return (
        statistics.median(a[0] for a, _ in pairs),
        statistics.median(b[0] for _, b in pairs),
        seconds,
        memory,
    )


missed: list[str] = []


def report(title: str, ratio: float | None, limit: float | None, detail: str = "") -> None:
    verdict = ""
    if ratio is not None and limit is not None:
        verdict = "ok" if ratio <= limit else "MISSED"
        if ratio > limit:
            missed.append(title)
    shown = "" if ratio is None else f"{ratio:6.2f}"
    bound = "" if limit is None else f"<= {limit:.1f}"
    print(f"{title:<58} {shown:>7} {bound:>7}  {verdict:<6} {detail}", flush=True)


def tick(home: Path) -> list[str]:
    at = str(Path(__file__).with_name("_at.py"))
    return [sys.executable, at, NOW.isoformat(), "-C", str(home), "tick", "--no-fetch"]


def claims(home: Path) -> Callable[[], tuple[float, int]]:
    """Writes an intent commit and creates its branch, then removes the branch again."""
    from orchestrator.git.reader import Reader
    from orchestrator.git.writer import Writer
    from orchestrator.model.marker import Marker
    from orchestrator.model.names import Ref, SweepName
    from orchestrator.record import write_intent

    number = 0

    def once() -> tuple[float, int]:
        nonlocal number
        number += 1
        reader = Reader.open(str(home), ENV)
        writer, identity = Writer(reader), reader.identity(ENV)
        base = reader.resolve(Ref("refs/remotes/origin/main"))
        assert base is not None
        reader.names(base, "runs")  # a tick has looked before it claims
        sweep = SweepName("historian", NOW.date())
        at = NOW + timedelta(seconds=number)  # no tree may have been stored before
        made = Marker(sweep, "7d", at, None, "builtin", None, None)
        started = time.perf_counter()
        intent = write_intent(
            writer,
            made,
            base,
            dispatch_id=f"bench-{number}-{os.getpid()}",
            instance="bench",
            identity=identity,
            now=NOW,
        )
        assert writer.create_ref(sweep.local_ref, intent, "bench")
        spent = time.perf_counter() - started
        writer.delete_ref(sweep.local_ref, intent)
        return spent, 0

    return once


def documents(path: Path) -> Path:
    """A generated repository of linked Markdown files, with a window that renames some."""
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")

    def commit(text: str, rows: dict[str, bytes], gone: Sequence[str] = ()) -> bytes:
        parts = [
            b"commit refs/heads/main\ncommitter B <b@example.org> 1764000000 +0000\n"
            b"data %d\n%s\n" % (len(text), text.encode())
        ]
        parts += [b"D %s\n" % name.encode() for name in gone]
        for name, data in rows.items():
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
        return b"".join(parts) + b"\n"

    def page(n: int) -> bytes:
        links = "".join(
            f"[Page {m}](../{m % 30:02d}/page{m:04d}.md#part-{m % 7}) on `src/m{m % 90}.py`.\n\n"
            for m in range(n, n + 12)
            if m < DOCUMENTS
        )
        return f"# Page {n}\n\n## Part {n % 7}\n\n{links}".encode()

    rows = {f"docs/{n % 30:02d}/page{n:04d}.md": page(n) for n in range(DOCUMENTS)}
    rows |= {f"src/m{n}.py": f"# module {n}\n".encode() * 20 for n in range(90)}
    moved = {f"docs/moved/page{n:04d}.md": page(n) for n in range(0, DOCUMENTS, 50)}
    gone = [f"docs/{n % 30:02d}/page{n:04d}.md" for n in range(0, DOCUMENTS, 50)]
    git(path, "fast-import", "--quiet", stdin=commit("one", rows) + commit("two", moved, gone))
    return path


def historian(repository: Path, since: str, until: str) -> tuple[float, int]:
    """Seconds for one page of findings over a window, and the number of Markdown files."""
    import json

    listed = git(repository, "ls-tree", "-r", "--name-only", until).splitlines()
    count = sum(name.lower().endswith((".md", ".mdx")) for name in listed)
    ask = {
        "version": 1,
        "mode": "page",
        "git_dir": git(repository, "rev-parse", "--absolute-git-dir"),
        "base": git(repository, "rev-parse", until),
        "since": git(repository, "rev-parse", since),
        "covering_since": "2026-11-01T00:00:00+00:00",
        "slug": "historian-2026-11-30",
        "workdir": None,
        "writes": ["docs/**", "**/*.md"],
    }
    started = time.perf_counter()
    command = [sys.executable, "-P", "-m", "orchestrator.adapters.builtin"]
    subprocess.run(command, input=json.dumps(ask).encode(), check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started, count


def catching_up(years: int) -> tuple[float, int]:
    """Seconds to find what a minutely schedule owes after an outage; ms to count what it missed."""
    from orchestrator import zones
    from orchestrator.model.cron import Cron
    from orchestrator.model.occurrence import Calendar, Zone

    zone = Zone("Europe/Berlin", zones.zone("Europe/Berlin"))
    calendar = Calendar(Cron.parse("* * * * *"), None, zone)
    before = NOW - timedelta(days=365 * years)
    started = time.perf_counter()
    latest, following = calendar.latest_due("historian", NOW), calendar.after(NOW)
    decided = time.perf_counter() - started
    missed_ones = calendar.between(before, NOW)
    assert latest is not None
    assert following is not None
    assert missed_ones == (525_600 - 60) * years, "the hour that is skipped in spring fires once"
    return decided, round((time.perf_counter() - started) * 1000)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--docs", type=Path)
    asked = parser.parse_args()
    runs = max(7, asked.runs)
    with tempfile.TemporaryDirectory(prefix="orchestrator-bench.") as folder:
        root = Path(folder)
        small = build(root / "small", files=10, sweeps=0, refs=0)
        big = build(root / "big", files=TREE_FILES, sweeps=MERGED_SWEEPS, refs=PACKED_REFS)
        print(f"medians of {runs} pairs; big: {PACKED_REFS:,} packed refs, "
              f"{MERGED_SWEEPS:,} merged sweeps, {TREE_FILES:,} files\n")  # fmt: skip
        one, two, ratio, _ = paired(
            runs, lambda: run(tick(small)), lambda: run([sys.executable, "-c", IMPORTS])
        )
        report("resting tick / importing its four packages", ratio, 1.3,
               f"{one * 1000:.0f} ms / {two * 1000:.0f} ms")  # fmt: skip
        one, two, ratio, memory = paired(runs, lambda: run(tick(big)), lambda: run(tick(small)))
        report("resting tick, big / small: time", ratio, 1.3,
               f"{one * 1000:.0f} ms / {two * 1000:.0f} ms")  # fmt: skip
        report("resting tick, big / small: peak memory", memory, 1.5)
        one, two, ratio, _ = paired(max(runs, 31), claims(big), claims(small))
        report("intent commit and branch, big / small: time", ratio, 1.3,
               f"{one * 1000:.1f} ms / {two * 1000:.1f} ms")  # fmt: skip
        short, long = (min(catching_up(years) for _ in range(runs)) for years in (1, 3))
        report("cron, a minutely schedule: due after 3 years / 1 year", long[0] / short[0], 1.5,
               f"{long[0] * 1000:.2f} ms / {short[0] * 1000:.2f} ms; "
               f"counting the missed: {long[1]} ms")  # fmt: skip
        if asked.docs is not None:
            depth = len(git(asked.docs, "rev-list", "--first-parent", "-n", "201", "HEAD").split())
            window = (f"HEAD~{depth - 1}", "HEAD")
            seconds, count = historian(asked.docs, *window)
            title = f"historian, {depth - 1} commits of {asked.docs.name}"
        else:
            seconds, count = historian(documents(root / "docs"), "main~1", "main")
            title = "historian, generated documents"
        report(title, None, None, f"{seconds:.1f} s for {count:,} Markdown files")
    if missed:
        raise SystemExit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
