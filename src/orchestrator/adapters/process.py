"""The one runner: starts an agent's program, limits it, ends it, and leaves nothing running.

The agent is started by a small supervisor process (`_supervisor.py`), which is the subreaper of
everything the agent starts. When the leader ends, or is ended, every process below the supervisor
is killed, whatever session or group it moved to. If this process is killed itself, the supervisor
sees its control pipe close and does the same; if the supervisor is killed too, the kernel ends the
leader, and `kill_leftovers` finds the rest by a variable in their environment.

The end has three steps, each with its time limit: SIGINT to the leader (some agents then still
print what they spent), SIGTERM to its group, SIGKILL for everything.

Output comes through pipes that are read as it is printed; only the last few megabytes are kept, in
memory. So a flood fills no disk and ends no agent (a file size limit would hit the agent's own
files), and nobody waits for end of file, which a daemon with the pipe open would never send.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.adapters.base import Ending, Plan, ProcessResult
from orchestrator.adapters.containment import Limits, Run
from orchestrator.folders import private_folder, write_private
from orchestrator.stop import StopFlag

DISPATCH_VARIABLE = "ORCHESTRATOR_DISPATCH"

# What an agent may see of our environment. Its shell tools see it all, so the list is short.
_PASSED = frozenset(
    [
        "PATH",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
    ]
)
_PASSED_PREFIX = "LC_"
_DISPATCH_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{7,63}")
LIMITS = Limits()


def agent_environment(
    plan: Plan, environ: Mapping[str, str], home: Path, dispatch_id: str
) -> dict[str, str]:
    """The environment of the agent: an allow-list of `environ`, what the plan names, our own two.

    HOME is always the private one, and the dispatch is always marked, whatever the plan says.
    """
    kept = {k: v for k, v in environ.items() if k in _PASSED or k.startswith(_PASSED_PREFIX)}
    kept.setdefault("PATH", os.defpath)
    kept.update({name: environ[name] for name in plan.pass_through if name in environ})
    kept.update(plan.environment)
    kept["HOME"] = str(home)
    kept[DISPATCH_VARIABLE] = dispatch_id
    return kept


def run_agent(
    plan: Plan,
    *,
    workdir: Path,
    home: Path,
    timeout_s: float,
    environ: Mapping[str, str],
    stop: StopFlag,
    dispatch_id: str,
    transcripts: Path | None = None,
    on_start: Callable[[int], None] | None = None,
    limits: Limits = LIMITS,
) -> ProcessResult:
    """Run the plan's command in `workdir` until it ends or is ended. Leaves no process behind.

    Args:
        plan: what the adapter wants started.
        workdir: the private working copy, where the program starts.
        home: the private HOME to make (0700) with the plan's files; the caller removes it after
            the adapter has parsed the result.
        timeout_s: wall-clock limit, seconds.
        environ: this process's environment; the agent gets an allow-list of it.
        stop: looked at ten times a second; set, it ends the run as `Ending.INTERRUPTED`. Set
            twice, the polite steps are skipped.
        dispatch_id: marks every process of the run (`kill_leftovers`).
        transcripts: a folder for what the agent printed (0600, cut to the same caps, secrets
            masked), or None.
        on_start: told the leader's process id once the program runs.
        limits: how long the steps of the end may take, and how much output is kept.

    Raises:
        ValueError: a home file's path leads out of the home, or the dispatch id is not one.
        OSError: the home or the transcripts' folder cannot be written.
    """
    if not _DISPATCH_ID.fullmatch(dispatch_id):
        raise ValueError("a dispatch id has 8 to 64 letters, digits and dashes")
    private_folder(home)
    _write_home(home, plan.home_files)
    environment = agent_environment(plan, environ, home, dispatch_id)
    nothing = ProcessResult(Ending.NOT_STARTED, None, b"", b"", 0.0, home)
    if stop.is_set():
        return replace(nothing, ending=Ending.INTERRUPTED)
    started = time.monotonic()
    try:
        run = Run(plan, workdir, environment, limits)
    except OSError as error:
        return replace(nothing, error=_start_words(plan.argv[0], error.errno or 0))
    swept = 0
    try:
        ending = run.until_ended(started + timeout_s, stop, on_start)
    finally:
        run.close()
        if not run.orderly:  # the agent can kill its supervisor; its other children live on then
            swept = kill_leftovers(dispatch_id)
    if run.failed is not None:
        return replace(nothing, error=_start_words(plan.argv[0], run.failed))
    result = ProcessResult(
        ending,
        run.code,
        run.stdout.read(),
        run.stderr.read(),
        time.monotonic() - started,
        home,
        run.swept + swept,
        None if run.orderly else "its supervisor was killed",
    )
    if transcripts is not None:
        _write_transcripts(transcripts, result, {**environ, **environment})
    return result


def _start_words(program: str, number: int) -> str:
    return f"{program} could not be started: {os.strerror(number)}"


def _write_home(home: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        parts = name.split("/")
        if not all(parts) or ".." in parts or "." in parts or "\0" in name:
            raise ValueError(f"{name!r} is not a path inside a home")
        folder = home
        for part in parts[:-1]:
            folder = private_folder(folder / part)
        write_private(folder / parts[-1], data)


def _write_transcripts(folder: Path, result: ProcessResult, environ: Mapping[str, str]) -> None:
    from orchestrator.text import printable, redact

    private_folder(folder)
    for name, data in (("stdout.txt", result.stdout), ("stderr.txt", result.stderr)):
        text = redact(printable(data.decode("utf-8", "replace")), environ)
        write_private(folder / name, text.encode())


def kill_leftovers(dispatch_id: str) -> int:
    """Kill every process that carries this dispatch's mark in its environment; return how many.

    For recovery after this program was killed. Linux only (elsewhere nothing is found, 0). A
    process is checked and killed through one handle, so that its number being reused meanwhile
    cannot hit another; this process and those above it are never touched.
    """
    if sys.platform != "linux" or not _DISPATCH_ID.fullmatch(dispatch_id):
        return 0
    mark = f"{DISPATCH_VARIABLE}={dispatch_id}".encode()
    spared = set(_ancestors(os.getpid()))
    killed: set[int] = set()
    for _ in range(50):
        found = [pid for pid in _all_processes() if pid not in spared and _kill_if(pid, mark)]
        if not found:
            break
        killed.update(found)
        time.sleep(0.01)
    return len(killed)


def _all_processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return
        pid = int(stat.rpartition(b")")[2].split()[1])


def _kill_if(pid: int, mark: bytes) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if mark not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:  # gone, or another user's
        return False
    else:
        return True
    finally:
        os.close(handle)
