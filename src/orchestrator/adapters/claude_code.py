"""The adapter `claude-code`: Anthropic's `claude -p`, its edit tools only, in its own HOME.

It has a hard budget of its own: `cost_limit_usd` goes to it, and it looks after every call, so it
can pass the cap by the price of one call. Dollars are what it reports, unless it says (or its model
shows) that it only guessed. Asked to end by SIGINT it still prints its final record; killed, its
session files in the HOME tell what it used.
"""

from collections.abc import Iterator, Mapping

from orchestrator.adapters import program
from orchestrator.adapters.base import Operator, Plan, Probe, ProcessResult, Report, Request
from orchestrator.adapters.prices import Call, computed, has_price
from orchestrator.adapters.program import Wanted, path_for
from orchestrator.adapters.reading import (
    Json,
    Reading,
    count,
    dollars,
    json_lines,
    report,
    sentence,
    table,
    trouble,
)
from orchestrator.adapters.sessions import session_files
from orchestrator.model.config import Registration
from orchestrator.model.status import Status
from orchestrator.model.usage import CostSource, Usage

MAX_TURNS = 200
PROVIDER = "anthropic"

_TOOLS = "Read,Edit,Write,Glob,Grep"  # no shell: it would see the key, and could start anything
_OPTIONAL = ("--restricted", "--no-chrome")
_WANTED = Wanted(
    adapter="claude-code",
    program="claude",
    help=("--help",),
    flags=(
        "--output-format",
        "--permission-mode",
        "--setting-sources",
        "--strict-mcp-config",
        "--tools",
        "--max-budget-usd",
    ),
    keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    install="npm install -g @anthropic-ai/claude-code",
)
_ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_MAX_RETRIES": "3",  # by default a refused key is tried for two minutes
}
_PASSED = ("ANTHROPIC_BASE_URL", "NODE_EXTRA_CA_CERTS")
_STOPS = {"error_max_budget_usd": Status.BUDGET, "error_max_turns": Status.TURN_LIMIT}


class ClaudeCodeAdapter:
    """Claude Code, non-interactive."""

    name = "claude-code"
    priced = True
    wanted = _WANTED
    provider = PROVIDER

    def probe(self, registration: Registration, operator: Operator) -> Probe:
        """Whether `claude` is here, has a key, and knows the flags that keep it contained."""
        return program.probe(_WANTED, registration, operator)

    def plan(self, request: Request, probe: Probe) -> Plan:
        """Edits only below the working copy; nothing the repository brings is run or loaded."""
        # --max-turns is not in the help, and has been taken by every version.
        argv = [probe.program or _WANTED.program, "-p", "--output-format", "stream-json"]
        argv += ["--verbose", "--max-turns", str(MAX_TURNS)]
        if request.registration.model is not None:
            argv += ["--model", request.registration.model]
        if request.budget_usd is not None:
            argv += ["--max-budget-usd", f"{request.budget_usd:f}"]
        argv += ["--permission-mode", "acceptEdits", "--setting-sources=", "--strict-mcp-config"]
        argv += [flag for flag in _OPTIONAL if flag in probe.flags]
        argv += ["--tools", _TOOLS]
        environ = request.operator.environment
        return Plan(
            tuple(argv),
            stdin=request.prompt.encode(),
            environment={**_ENVIRONMENT, **path_for(argv[0], environ)},
            pass_through=(*_WANTED.keys, *_PASSED),
        )

    def parse(self, result: ProcessResult, request: Request) -> Report:
        """The last `result` record; without one, what the session files still tell."""
        final = None
        for record in json_lines(result.stdout):
            if record.get("type") == "result":
                final = record
        if final is None:
            calls = list(_calls(result))
            return report(result, Reading(False, computed(calls, PROVIDER, request.at)))
        return report(result, _reading(final, request))


def _reading(final: Json, request: Request) -> Reading:
    usage = _usage(final, request)
    subtype = sentence(final.get("subtype")) or ""
    errors = final.get("errors")
    said = [e for e in errors if isinstance(e, str)] if isinstance(errors, list) else []
    words = "; ".join(said) or sentence(final.get("result"))
    if subtype in _STOPS:
        return Reading(False, usage, _STOPS[subtype], words)
    if subtype != "success" or final.get("is_error") is not False:
        code = count(final.get("api_error_status"))
        status = trouble(words or "", code) or Status.FAILED
        return Reading(False, usage, status, words or f"it reported {subtype or 'an error'}")
    return Reading(True, usage, denied=_denied(final))


def _denied(final: Json) -> str | None:
    denials = final.get("permission_denials")
    if not isinstance(denials, list) or not denials:
        return None
    tools = sorted({str(table(d).get("tool_name", "?")) for d in denials})
    return f"it was refused {', '.join(tools)} ({len(denials)} times)"


def _usage(final: Json, request: Request) -> Usage:
    models = {name: table(value) for name, value in table(final.get("modelUsage")).items()}
    calls = [_sum(name, value) for name, value in models.items()]
    whole = [call for call in calls if call is not None]
    if len(whole) < len(calls) or not isinstance(final.get("modelUsage"), dict):
        return Usage()
    cost = dollars(final.get("total_cost_usd"))
    if cost is None or any(_guessed(n, v, request) for n, v in models.items()):
        return computed(whole, PROVIDER, request.at)
    tokens_in, tokens_out = sum(c.tokens_in for c in whole), sum(c.tokens_out for c in whole)
    return Usage(tokens_in, tokens_out, cost, CostSource.REPORTED)


def _guessed(model: str, usage: Json, request: Request) -> bool:
    """Whether the dollars of that model are a guess: newer versions say so, older ones do not."""
    basis = usage.get("costBasis")
    if basis is not None:
        return basis == "unknown"
    return not has_price(model, PROVIDER, request.at)


def _sum(model: str, usage: Json) -> Call | None:
    read = count(usage.get("cacheReadInputTokens", 0))
    written = count(usage.get("cacheCreationInputTokens", 0))
    fresh, out = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
    if fresh is None or out is None or read is None or written is None:
        return None
    return Call(model, fresh + read + written, out, read, written)


def _calls(result: ProcessResult) -> Iterator[Call]:
    """Every finished call of the session files; a message is written more than once as it grows."""
    messages: dict[str, Mapping[str, object]] = {}
    for data in session_files(result.home, ".claude/projects", "*.jsonl"):
        for record in json_lines(data):
            message = table(record.get("message"))
            if record.get("type") == "assistant" and isinstance(message.get("id"), str):
                messages[str(message["id"])] = message
    for message in messages.values():
        usage, model = table(message.get("usage")), sentence(message.get("model"))
        read = count(usage.get("cache_read_input_tokens", 0)) or 0
        written = count(usage.get("cache_creation_input_tokens", 0)) or 0
        fresh, out = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
        if model != "<synthetic>" and fresh is not None and out is not None:
            yield Call(model, fresh + read + written, out, read, written)
