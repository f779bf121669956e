"""Being asked to stop, as a value that signal handlers set and long work looks at."""


class StopFlag:
    """Counts requests to stop. The first asks politely, a second means at once.

    A handler of SIGTERM, SIGINT or SIGHUP calls `set`; it only counts, so it is safe there.
    """

    __slots__ = ("_count", "_signal")

    def __init__(self) -> None:
        self._count = 0
        self._signal: int | None = None

    def set(self, signal: int | None = None) -> None:
        """Ask to stop; `signal` is the first signal's number, for the record."""
        self._count += 1
        if self._signal is None:
            self._signal = signal

    def is_set(self) -> bool:
        return self._count > 0

    @property
    def insisted(self) -> bool:
        """Asked more than once: skip what waits for a polite end."""
        return self._count > 1

    @property
    def signal(self) -> int | None:
        return self._signal
