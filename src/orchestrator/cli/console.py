"""Printing: what the terminal understands, and what happens when nobody reads any more."""

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, TextIO

from orchestrator.errors import OrchestratorError
from orchestrator.report.layout import DEFAULT_WIDTH, MAX_WIDTH, Look

_MIN_WIDTH = 40


class Console(NamedTuple):
    """Standard output and standard error. Either may be closed (cron, `>&-`): then None."""

    stdout: TextIO | None
    stderr: TextIO | None
    environ: Mapping[str, str]

    @classmethod
    def of_this_process(cls) -> "Console":
        """The streams as they are now; what their encoding cannot say is printed escaped."""
        for stream in (sys.stdout, sys.stderr):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        return cls(sys.stdout, sys.stderr, dict(os.environ))

    @property
    def look(self) -> Look:
        """How standard output may look."""
        return look_of(self.stdout, self.environ)

    @property
    def error_look(self) -> Look:
        return look_of(self.stderr, self.environ)

    def out(self, text: str) -> None:
        """Print to standard output. A reader that went away (`| head`) is no error.

        Raises:
            OrchestratorError: the output could not be written (a full disk).
        """
        try:
            _write(self.stdout, text)
        except BrokenPipeError:
            _silence(self.stdout)
        except OSError as error:
            _silence(self.stdout)
            raise OrchestratorError(f"the output could not be written: {error.strerror}") from error

    def err(self, text: str) -> None:
        """Print to standard error; where that fails there is nowhere left to say so."""
        try:
            _write(self.stderr, text)
        except OSError:
            _silence(self.stderr)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None and text:
        stream.write(text)
        stream.flush()


def _silence(stream: TextIO | None) -> None:
    """Point the stream at nothing, or Python complains once more when it flushes at exit."""
    if stream is None:
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except OSError:
        return


def look_of(stream: TextIO | None, environ: Mapping[str, str]) -> Look:
    """Width and colour for `stream`.

    The width is the terminal's, at most 100, and 80 where there is no terminal. Colour is for
    terminals; NO_COLOR and TERM=dumb turn it off, FORCE_COLOR and CLICOLOR_FORCE on. NO_COLOR is
    asked first, because whoever sets it cannot bear colours.
    """
    terminal = stream is not None and stream.isatty()
    width = DEFAULT_WIDTH
    if terminal and stream is not None:
        try:
            found = os.get_terminal_size(stream.fileno()).columns
        except OSError:
            found = 0
        width = min(max(found, _MIN_WIDTH), MAX_WIDTH) if found else DEFAULT_WIDTH
    return Look(width, _colored(environ, terminal=terminal))


def _colored(environ: Mapping[str, str], *, terminal: bool) -> bool:
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if environ.get("TERM") == "dumb" or environ.get("CLICOLOR") == "0":
        return False
    return terminal
