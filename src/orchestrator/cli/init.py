"""`orchestrator init`: a first policy, and the file of whatever calls `tick`."""

import os
from importlib import resources

import click

from orchestrator import __version__
from orchestrator.cli.group import SETTINGS, common
from orchestrator.cli.invocation import Invocation
from orchestrator.errors import OrchestratorError, UsageError
from orchestrator.model.names import CONFIG_PATH

SCHEDULERS = ("cron", "systemd", "github-actions", "gitlab-ci")


@click.command("init", context_settings=SETTINGS)
@click.option("--print", "show", is_flag=True, help="Print the file and write nothing.")
@click.option(
    "--with",
    "scheduler",
    type=click.Choice(SCHEDULERS),
    help="Print that scheduler's file for an unattended machine; write nothing.",
)
@common
@click.pass_obj
def command(run: Invocation, show: bool, scheduler: str | None) -> int:
    """Write a first orchestrator.yaml, with the historian every 7 days.

    It goes to the top of the working tree. A file that exists is never overwritten, and nothing is
    committed: that, and merging it, is yours to do.
    """
    if scheduler is not None:
        run.console.out(scheduler_file(scheduler, run))
        return 0
    text = template(CONFIG_PATH)
    if show:
        run.console.out(text)
        return 0
    top = _top(run.path or ".")
    if _is_bare(top):
        raise UsageError(
            f"{top} is a bare repository: it has no working tree to write to",
            "orchestrator init --print shows the file; commit it from a clone",
        )
    path = os.path.join(top, CONFIG_PATH)
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise OrchestratorError(
            f"{path} exists already, and is left as it is",
            f"check it with: orchestrator check {path}",
        ) from None
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be written: {error.strerror}") from error
    if not run.quiet:
        run.console.out(_next_steps(path))
    return 0


def template(name: str) -> str:
    """One of the packaged files."""
    return resources.files("orchestrator.cli").joinpath("templates", name).read_text("utf-8")


def scheduler_file(scheduler: str, run: Invocation) -> str:
    """The scheduler's file, with this machine's paths in it."""
    import shlex

    repository = _top(run.path or ".")
    search = _search_path(run)
    program = program_command()
    words = {
        "VERSION": __version__,
        "HOME": run.environ.get("HOME") or os.path.expanduser("~"),
        "USER": run.environ.get("LOGNAME") or run.environ.get("USER") or "root",
        "PATH": search,
        "REPOSITORY": repository,
        # A percent sign ends a crontab's command unless it is escaped, in quotes too.
        "PROGRAM_CRON": shlex.join(program).replace("%", r"\%"),
        "REPOSITORY_CRON": shlex.quote(repository).replace("%", r"\%"),
        "PROGRAM_UNIT": " ".join(map(_unit_word, program)),
        "REPOSITORY_UNIT": repository.replace("%", "%%"),
        "REPOSITORY_UNIT_QUOTED": _unit_word(repository),
        "PATH_UNIT": _unit_text(search),
    }
    for word, value in words.items():
        if not value.isprintable():
            raise UsageError(f"{word} has a character that no {scheduler} file can hold")
    text = template(scheduler)
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def _unit_text(text: str) -> str:
    """Text inside double quotes of a systemd unit."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _unit_word(word: str) -> str:
    """One word of a systemd command line; a dollar sign would start a variable there."""
    plain = all(c.isalnum() or c in "/._-+:=@," for c in word)
    return word if plain else f'"{_unit_text(word).replace("$", "$$")}"'


def program_command() -> tuple[str, ...]:
    """How to start this very program by absolute path, as cron and systemd need it."""
    import sys

    beside = os.path.join(os.path.dirname(sys.executable), "orchestrator")
    if os.access(beside, os.X_OK) and os.path.isfile(beside):
        return (beside,)
    return (sys.executable, "-m", "orchestrator")


def _search_path(run: Invocation) -> str:
    """The absolute folders of PATH, in order: where git and the agents are found today."""
    usual = "/usr/local/bin:/usr/bin:/bin"
    folders = dict.fromkeys((run.environ.get("PATH") or usual).split(":"))
    return ":".join(f for f in folders if f.startswith("/")) or usual


def _top(folder: str) -> str:
    """The top of the working tree that `folder` is in, or the folder itself outside of any.

    Raises:
        UsageError: it is no folder.
    """
    try:
        start = os.path.realpath(folder)
    except FileNotFoundError:
        raise UsageError("the current folder does not exist", "name one with -C PATH") from None
    if not os.path.isdir(start):
        raise UsageError(f"{folder} is not a folder", "name one with -C PATH")
    here = start
    while True:
        if os.path.exists(os.path.join(here, ".git")):
            return here
        above = os.path.dirname(here)
        if above == here:
            return start
        here = above


def _is_bare(folder: str) -> bool:
    inside = (os.path.join(folder, name) for name in ("HEAD", "objects", "refs"))
    return all(map(os.path.exists, inside))


def _next_steps(path: str) -> str:
    program = " ".join(program_command())
    folder = os.path.dirname(path)
    return (
        f"wrote {path}\n"
        "next:\n"
        "  1. commit it and merge it into the default branch; only there does it count:\n"
        f"       git add {CONFIG_PATH} && git commit -m 'Schedule the historian'\n"
        "  2. see what would happen:\n"
        "       orchestrator explain\n"
        "  3. let something tick. `orchestrator init --with cron` (or systemd,\n"
        "     github-actions, gitlab-ci) prints the whole file; in short, for cron:\n"
        f"       */15 * * * * {program} -C {folder} tick --quiet\n"
    )
