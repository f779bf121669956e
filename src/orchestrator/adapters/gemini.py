"""The adapter `gemini`: Google's `gemini` without a terminal, edits only, in its own HOME.

It has a turn limit and no budget. It reports tokens and no dollars, so these are computed. When it
does not come to its own end (the turn limit, SIGINT, SIGTERM) it prints no usage; its session files
in the HOME have it.
"""

import json
from collections.abc import Sequence

from orchestrator.adapters import program
from orchestrator.adapters.base import Operator, Plan, Probe, ProcessResult, Report, Request
from orchestrator.adapters.prices import Call, computed
from orchestrator.adapters.program import Wanted, path_for
from orchestrator.adapters.reading import (
    Json,
    Reading,
    count,
    json_lines,
    json_objects,
    report,
    sentence,
    table,
    trouble,
)
from orchestrator.adapters.sessions import session_files
from orchestrator.model.config import Registration
from orchestrator.model.status import Status

MAX_TURNS = 200
PROVIDER = "google"

_WANTED = Wanted(
    adapter="gemini",
    program="gemini",
    help=("--help",),
    flags=(
        "--output-format",
        "--approval-mode",
        "--skip-trust",
        "--allowed-mcp-server-names",
        "--extensions",
    ),
    keys=("GEMINI_API_KEY",),
    install="npm install -g @google/gemini-cli",
)
SYSTEM_SETTINGS = "system-settings.json"
"""In the HOME: what wins over the repository's own `.gemini/settings.json`."""

_PASSED = ("GOOGLE_GEMINI_BASE_URL", "NODE_EXTRA_CA_CERTS")
_STOPS = {41: Status.AUTH, 53: Status.TURN_LIMIT}
_NOBODY = "none"


class GeminiAdapter:
    """Gemini CLI, non-interactive."""

    name = "gemini"
    priced = True
    wanted = _WANTED
    provider = PROVIDER

    def probe(self, registration: Registration, operator: Operator) -> Probe:
        """Whether `gemini` is here, has a key, and knows the flags that keep it contained."""
        return program.probe(_WANTED, registration, operator)

    def plan(self, request: Request, probe: Probe) -> Plan:
        """Edits only; the repository's MCP servers, hooks, extensions and skills stay off."""
        argv = [probe.program or _WANTED.program, "-o", "json"]
        if request.registration.model is not None:
            argv += ["-m", request.registration.model]
        argv += ["--approval-mode", "auto_edit", "--skip-trust"]
        argv += ["--allowed-mcp-server-names", _NOBODY, "--extensions", _NOBODY]
        environment = path_for(argv[0], request.operator.environment)
        settings = json.dumps(_settings()).encode()
        home_files = {".gemini/settings.json": settings}
        if request.home is not None:
            home_files[SYSTEM_SETTINGS] = settings
            environment["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] = str(request.home / SYSTEM_SETTINGS)
        return Plan(
            tuple(argv),
            stdin=request.prompt.encode(),
            environment=environment,
            pass_through=(*_WANTED.keys, *_PASSED),
            home_files=home_files,
        )

    def parse(self, result: ProcessResult, request: Request) -> Report:
        """The one object it prints at its own end; else the error object, and the session files."""
        calls = _calls(result)
        final = next((o for o in reversed(json_objects(result.stdout)) if "session_id" in o), None)
        if final is not None and "error" not in final:
            totals = _totals(final)
            if totals is not None and not _same(calls, totals):
                calls = totals
            usage = computed(calls, PROVIDER, request.at)
            if loop := _loop(final):
                return report(result, Reading(False, usage, Status.TURN_LIMIT, loop))
            done = isinstance(final.get("response"), str)
            return report(result, Reading(done, usage, denied=_denied(final)))
        usage = computed(calls, PROVIDER, request.at)
        status, words = _error(result, final)
        return report(result, Reading(False, usage, status, words))


def _settings() -> dict[str, object]:
    return {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "model": {"maxSessionTurns": MAX_TURNS},
        "general": {
            "enableAutoUpdate": False,
            "enableAutoUpdateNotification": False,
            "maxAttempts": 3,  # by default a service that is down is tried for minutes
        },
        "privacy": {"usageStatisticsEnabled": False},
        "hooksConfig": {"enabled": False},
        "skills": {"enabled": False},
    }


def _error(result: ProcessResult, final: Json | None) -> tuple[Status | None, str | None]:
    """What its error object says; it goes to standard error, between other lines."""
    objects = [final] if final is not None else json_objects(result.stderr)
    error = next((table(o["error"]) for o in reversed(objects) if "error" in o), None)
    code = result.exit_code if error is None else count(error.get("code"))
    words = None if error is None else sentence(error.get("message"))
    if code in _STOPS:
        return _STOPS[code], words
    if error is None:
        return None, None
    return trouble(words or "", code) or Status.FAILED, words


def _loop(final: Json) -> str | None:
    """It stops a model that repeats itself, says so in a warning, and exits 0."""
    warnings = final.get("warnings")
    said = [w for w in warnings if isinstance(w, str)] if isinstance(warnings, list) else []
    return next((w for w in said if "loop detected" in w.lower()), None)


def _totals(final: Json) -> list[Call] | None:
    """What it counts in all, per model; None when it does not count."""
    models = table(table(final.get("stats")).get("models"))
    calls = []
    for name, value in models.items():
        call = _call(name, table(table(value).get("tokens")), "prompt", "candidates")
        if call is None:
            return None
        calls.append(call)
    return calls or None


def _call(model: str | None, tokens: Json, given: str, made: str) -> Call | None:
    """Cached tokens are within the prompt's; thoughts are beside what was made of them."""
    tokens_in, tokens_out = count(tokens.get(given)), count(tokens.get(made))
    if tokens_in is None or tokens_out is None:
        return None
    thoughts = count(tokens.get("thoughts")) or 0
    return Call(model, tokens_in, tokens_out + thoughts, count(tokens.get("cached")) or 0)


def _calls(result: ProcessResult) -> list[Call]:
    """Every answer of the session files; one is written again as its tools end."""
    answers: dict[str, Json] = {}
    for data in session_files(result.home, ".gemini/tmp", "session-*.json*"):
        for record in json_lines(data):
            if record.get("type") == "gemini" and isinstance(record.get("id"), str):
                answers[str(record["id"])] = record
    calls = (
        _call(sentence(a.get("model")), table(a.get("tokens")), "input", "output")
        for a in answers.values()
    )
    return [call for call in calls if call is not None]


def _same(calls: Sequence[Call], totals: Sequence[Call]) -> bool:
    """Whether the session files have all of the run, call by call."""
    return _tokens(calls) == _tokens(totals)


def _tokens(calls: Sequence[Call]) -> tuple[int, int]:
    return sum(c.tokens_in for c in calls), sum(c.tokens_out for c in calls)


def _denied(final: Json) -> str | None:
    """What it asked for and nobody could approve; edits are approved beforehand."""
    tools = table(table(final.get("stats")).get("tools"))
    refused = [
        name
        for name, value in table(tools.get("byName")).items()
        if count(table(table(value).get("decisions")).get("reject"))
    ]
    failed, succeeded = count(tools.get("totalFail")) or 0, count(tools.get("totalSuccess")) or 0
    if refused:
        return f"it was refused {', '.join(sorted(refused))}"
    if failed and not succeeded:
        return f"none of its {failed} tool calls succeeded"
    return None
