"""The edge: where every error becomes a sentence, a hint and an exit code, once."""

from collections.abc import Iterable, Sequence

import click

from orchestrator.cli.invocation import Invocation
from orchestrator.errors import ExitCode, OrchestratorError, UsageError
from orchestrator.report.layout import UNBROKEN, Look
from orchestrator.report.text import hint_lines
from orchestrator.report.words import clean

_BUG = (
    "report it with the command you ran and the version (orchestrator --version); "
    "--verbose shows the traceback, so read that for secrets before you post it"
)
_INTERRUPTED = 130


def report_failure(error: BaseException, run: Invocation, arguments: Sequence[str]) -> int:
    """Print what ended the run, and give the exit code."""
    if isinstance(error, KeyboardInterrupt | click.Abort):
        run.console.err("error: interrupted\n")
        return _INTERRUPTED
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error = _usage(error, arguments)
    if isinstance(error, OrchestratorError):
        return fail(error, run, json=_wants_json(run, arguments))
    if isinstance(error, Exception):
        return _bug(error, run, json=_wants_json(run, arguments))
    raise error


def fail(error: OrchestratorError, run: Invocation, *, json: bool) -> int:
    """Print a foreseen error; with JSON, as a document on standard output too."""
    if json:
        from orchestrator.report.json import error_json

        _last_words(run, error_json(error))
    run.console.err(error_text(error, run.console.error_look))
    return int(error.exit_code)


def error_text(error: OrchestratorError, look: Look) -> str:
    """`error: <sentence>` and `hint: <way out>`; never broken, so that commands can be copied."""
    lines = [f"{look.error('error:')} {clean(error.message)}"]
    if error.hint is not None:
        lines += hint_lines(error.hint, UNBROKEN, "hint: ")
    return "".join(line + "\n" for line in lines)


def _bug(error: Exception, run: Invocation, *, json: bool) -> int:
    said = f"this is a bug in orchestrator: {type(error).__name__}{_place(error)}"
    if json:
        from orchestrator.report.json import bug_json

        _last_words(run, bug_json(said, _BUG))
    run.console.err(f"{run.console.error_look.error('error:')} {said}\nhint: {_BUG}\n")
    if run.verbose:
        import traceback

        lines = "".join(traceback.format_exception(error)).splitlines()
        run.console.err("".join(f"{clean_line(line)}\n" for line in lines))
    return int(ExitCode.ATTENTION)


def _place(error: Exception) -> str:
    """Where it was raised; no values, because they may hold secrets."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if str(name).startswith("orchestrator"):
            place = f" in {name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def clean_line(line: str) -> str:
    """One line of a traceback with its indentation, fit to show."""
    indent = len(line) - len(line.lstrip(" "))
    return " " * indent + clean(line.lstrip(" "))


def _last_words(run: Invocation, text: str) -> None:
    try:
        run.console.out(text)
    except OrchestratorError as error:
        run.console.err(error_text(error, run.console.error_look))


def _wants_json(run: Invocation, arguments: Sequence[str]) -> bool:
    """Also when the command line could not be read as far as `--format`."""
    if run.json:
        return True
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(pair == ("--format", "json") or pair[0] == "--format=json" for pair in pairs)


def _usage(error: click.ClickException, arguments: Sequence[str]) -> OrchestratorError:
    """What click says, in this program's form."""
    if not isinstance(error, click.UsageError):
        return OrchestratorError(error.format_message())
    from orchestrator.cli.group import VERBS

    message = error.format_message()
    verb = next((a for a in arguments if a in VERBS), None)
    hint = f"orchestrator {verb} --help" if verb is not None else "orchestrator --help"
    hint += " shows what it takes"
    if isinstance(error, click.NoSuchOption):
        message = error.message
        if error.possibilities:
            hint = f"did you mean {error.possibilities[0]}?"
    message = message.removesuffix(".")
    return UsageError(message[:1].lower() + message[1:], hint)


def unknown_command(name: str, known: Iterable[str]) -> UsageError:
    """A verb that does not exist, with the one that was probably meant."""
    from difflib import get_close_matches  # only on the way out: it costs an import

    verbs = list(known)
    close = get_close_matches(name, verbs, 1)
    hint = f"did you mean {close[0]}?" if close else "the commands are: " + ", ".join(verbs)
    return UsageError(f"no such command: {name}", hint)
