"""The process between a tick and an agent; a program of its own, started by `process.py`.

    supervisor.py CONTROL_FD STATUS_FD PROGRAM [ARG...]

It is the child subreaper of the agent's whole tree: whatever the agent starts, in a session of its
own or not, ends up below this process and is killed when the agent's leader has ended. That it is
a process of its own has two reasons: everything below it is the agent's by construction, so the
tick never has to guess which child is whose, and it outlives a tick that was killed.

    CONTROL_FD  commands, a byte each: I (SIGINT to the leader), T (SIGTERM to its group), K (kill
                everything now). End of file means the tick is gone: kill everything.
    STATUS_FD   lines: `started PID`; `failed ERRNO`; `ended CODE SWEPT LEFT`.

Where there is no Linux, there is no subreaper: then the leader's process group is killed, and a
child that left it survives. It imports nothing of the package and little else, to start fast.
"""

import os
import select
import signal
import sys
import time

_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SWEEP_SECONDS = 10.0
_QUIET_LOOKS = 2  # one look at /proc can miss a process that is just being started
_NO_CODE = -int(signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if not _LINUX:
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _start(command: list[str]) -> tuple[int, int]:
    """Start the leader; return its pid and 0, or its pid and the errno of a failed exec."""
    told, tell = os.pipe()  # closed by a successful exec
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a killed supervisor takes the leader along
            if os.getppid() != supervisor:
                os._exit(127)
            # What was ignored stays ignored through exec (nohup, a shell's `&`); then the agent
            # could not be asked to end.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execv(command[0], command)  # noqa: S606 - no shell is what is wanted
        except OSError as error:
            os.write(tell, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(tell)
    words = os.read(told, 16)
    os.close(told)
    return pid, int(words or b"0")


def _descendants(root: int) -> list[int]:
    """Every living process below `root`, from one look at /proc."""
    children: dict[int, list[tuple[int, bool]]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:  # not mounted here: what is left is the process group
        return []
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        children.setdefault(int(parent), []).append((int(name), state not in (b"Z", b"X")))
    found, todo = [], [root]
    while todo:
        for pid, alive in children.get(todo.pop(), ()):
            todo.append(pid)
            if alive:
                found.append(pid)
    return found


class _Supervisor:
    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.code: int | None = None
        self.swept: set[int] = set()

    def leader_ended(self) -> bool:
        """Reap orphans. The leader is left unreaped, so that its process group's id stays its."""
        if not hasattr(os, "waitid"):
            return self._leader_ended_reaped()
        while True:
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            try:
                if os.waitid(os.P_PID, self.leader, flags) is not None:
                    return True
                seen = os.waitid(os.P_ALL, 0, flags)
            except ChildProcessError:
                return True
            if seen is None:
                return False
            if seen.si_pid != self.leader:
                os.waitpid(seen.si_pid, os.WNOHANG)

    def _leader_ended_reaped(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.leader, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def signal_leader(self, number: int) -> None:
        if self.code is None:
            os.kill(self.leader, number)

    def signal_group(self, number: int) -> None:
        try:
            os.killpg(self.leader, number)
        except OSError:  # gone, or nothing in it that may be signalled
            return

    def sweep(self) -> int:
        """Kill everything below; return how many could not be (other users' programs)."""
        deadline = time.monotonic() + _SWEEP_SECONDS
        left: list[int] = []
        quiet = 0
        while quiet < _QUIET_LOOKS:
            left = _descendants(os.getpid()) if _LINUX else []
            for pid in left:
                self._kill(pid)
            if self.code is None:  # not reaped yet, so the group's id is still the agent's
                self.signal_group(signal.SIGKILL)
            self._reap()
            quiet = 0 if left else quiet + 1
            if time.monotonic() > deadline:
                break
            if left:
                time.sleep(0.005)
        self._reap()
        return len(left)

    def _kill(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            return
        if pid != self.leader:
            self.swept.add(pid)

    def _reap(self) -> None:
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                if reaped[0] == self.leader:
                    self.code = os.waitstatus_to_exitcode(reaped[1])
        except ChildProcessError:
            return


def _watch(supervisor: _Supervisor, control: int, wake: int) -> None:
    """Return when everything is to be killed: the leader ended, K, or the tick is gone."""
    while not supervisor.leader_ended():
        ready, _, _ = select.select([control, wake], [], [], 1.0)
        if wake in ready and any(b != signal.SIGCHLD for b in os.read(wake, 512)):
            return  # this program itself was asked to end
        if control not in ready:
            continue
        commands = os.read(control, 64)
        if not commands or b"K" in commands:
            return
        if b"I" in commands:
            supervisor.signal_leader(signal.SIGINT)
        if b"T" in commands:
            supervisor.signal_group(signal.SIGTERM)


def main(arguments: list[str]) -> int:
    control, status = int(arguments[0]), int(arguments[1])
    os.set_inheritable(control, False)
    os.set_inheritable(status, False)
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    leader, failed = _start(arguments[2:])
    for fd in (0, 1, 2):  # the agent's own; kept here they would look like somebody still writes
        os.close(fd)
    _tell(status, f"failed {failed}" if failed else f"started {leader}")
    supervisor = _Supervisor(leader)
    if not failed:
        _watch(supervisor, control, wake)
    left = supervisor.sweep()
    code = _NO_CODE if supervisor.code is None else supervisor.code
    _tell(status, f"ended {code} {len(supervisor.swept)} {left}")
    return 0


def _tell(status: int, line: str) -> None:
    try:
        os.write(status, line.encode() + b"\n")
    except OSError:  # the tick is gone; what matters now is the sweep
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
