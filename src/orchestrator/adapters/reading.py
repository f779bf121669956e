"""Reading what an agent CLI printed: JSON that may be anything, and errors in its own words.

Everything here is data an agent could have influenced. Numbers are taken only when they can be
counts or dollars, and a status only from the program's own final record, never from its exit code
alone.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.adapters.base import Ending, ProcessResult, Report
from orchestrator.model.status import Status
from orchestrator.model.usage import UNKNOWN_USAGE, Usage

Json = Mapping[str, object]
NOTHING: Json = {}
_MAX_NUMBER = 10**15
_MAX_LINE = 4 * 1024 * 1024
_MAX_OBJECTS = 64
_FIRST_ERROR, _LAST_ERROR = 400, 599  # of HTTP

_AUTH = re.compile(
    r"\b40[123]\b|unauthori[sz]ed|authenticat|invalid (?:x-)?api[ -]key|api key not valid"
    r"|not logged in|/login|auth method|credit balance|permission[_ ]denied"
    r"|missing environment variable|no credentials",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"\b429\b|rate[_ -]?limit|quota|resource[_ ]exhausted|usage limit|too many requests",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\b(?:5[0-2]\d|408)\b|overloaded|connection|unable to connect|fetch failed|disconnected"
    r"|econn|enotfound|etimedout|eai_again|error sending request|unavailable|high demand"
    r"|timed? ?out|network",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a program's output says by itself, whoever ended the process.

    Attributes:
        finished: its final record is there and says it ended well.
        status: what its final record says went wrong, if it says so.
        denied: what it was refused, in words, when it was refused something.
    """

    finished: bool
    usage: Usage = UNKNOWN_USAGE
    status: Status | None = None
    words: str | None = None
    denied: str | None = None


def report(result: ProcessResult, reading: Reading) -> Report:
    """The reading, and the way the process ended: the worse of the two counts."""
    usage, words = reading.usage, reading.words
    if result.ending is Ending.NOT_STARTED:
        return Report(Status.UNAVAILABLE, usage, result.error)
    if result.ending is Ending.TIMEOUT:
        return Report(Status.TIMEOUT, usage, "the time limit was reached")
    if result.ending is Ending.INTERRUPTED:
        return Report(Status.INTERRUPTED, usage, "it was asked to stop")
    if reading.status is not None:
        return Report(reading.status, usage, words or exit_words(result))
    if result.exit_code != 0:
        said = words or last_words(result.stderr) or ""
        return Report(trouble(said) or Status.FAILED, usage, words or exit_words(result))
    if not reading.finished:
        return Report(Status.BAD_OUTPUT, usage, words or "it ended without its final record")
    return Report(Status.OK, usage, denied=reading.denied)


def trouble(text: str, code: int | None = None) -> Status | None:
    """Whose trouble an error is, by its HTTP status where it has one, else by its words."""
    words = re.sub(r"\b(?:https?|wss?)://\S+", "", text[:4096])  # a port may look like a status
    if code is not None and _FIRST_ERROR <= code <= _LAST_ERROR:
        words = f"{words} {code}"
    for status, pattern in (
        (Status.RATE_LIMITED, _RATE),
        (Status.AUTH, _AUTH),
        (Status.UNAVAILABLE, _DOWN),
    ):
        if pattern.search(words):
            return status
    return None


def exit_words(result: ProcessResult) -> str:
    """How the process ended, and the last thing it said about it."""
    code = result.exit_code
    if code is None:
        return result.error or "it ended in an unknown way"
    how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
    last = last_words(result.stderr)
    return f"{how}: {last}" if last else how


def last_words(data: bytes) -> str | None:
    """The last line that is not blank."""
    lines = (line.strip() for line in reversed(data.decode("utf-8", "replace").splitlines()))
    return next((line for line in lines if line), None)


def json_lines(data: bytes) -> Iterator[Json]:
    """Every line that is a JSON object, in order."""
    for line in data.split(b"\n"):
        if line.startswith(b"{") and len(line) <= _MAX_LINE:
            found = _parsed(line)
            if found is not None:
                yield found


def json_objects(data: bytes) -> list[Json]:
    """Every JSON object that starts a line, over as many lines as it takes (at most a few)."""
    text = data.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    found: list[Json] = []
    end = 0
    for match in re.finditer(r"^(?:\[[A-Z]+\] )?(?=\{)", text, re.MULTILINE):
        if match.end() < end or len(found) >= _MAX_OBJECTS:
            continue
        try:
            value, end = decoder.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _parsed(line: bytes) -> Json | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # a number of too many digits is a ValueError too
        return None
    return found if isinstance(found, dict) else None


def table(value: object) -> Json:
    """`value` as a JSON object; anything else is an empty one."""
    return value if isinstance(value, dict) else NOTHING


def count(value: object) -> int | None:
    """`value` as a count of tokens, or None when it cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MAX_NUMBER else None


def dollars(value: object) -> float | None:
    """`value` as an amount of US dollars, or None when it cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MAX_NUMBER else None


def sentence(value: object) -> str | None:
    """`value` as words, or None."""
    return value.strip() if isinstance(value, str) and value.strip() else None
