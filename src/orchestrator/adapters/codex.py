"""The adapter `codex`: OpenAI's `codex exec --json`, in its own sandbox and its own HOME.

It has no budget and no turn limit of its own: what bounds a run is the estimate against the cap
before, and the time limit. It reports tokens and no dollars, so these are computed. Interrupted or
killed, it prints no usage; its session files in the HOME have it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.adapters import program
from orchestrator.adapters.base import Operator, Plan, Probe, ProcessResult, Report, Request
from orchestrator.adapters.prices import Call, computed
from orchestrator.adapters.program import Wanted, path_for
from orchestrator.adapters.reading import (
    Json,
    Reading,
    count,
    json_lines,
    report,
    sentence,
    table,
    trouble,
)
from orchestrator.adapters.sessions import session_files
from orchestrator.model.config import Registration
from orchestrator.model.status import Status

PROVIDER = "openai"

_WANTED = Wanted(
    adapter="codex",
    program="codex",
    help=("exec", "--help"),
    flags=(
        "--json",
        "--sandbox",
        "--cd",
        "--skip-git-repo-check",
        "--ignore-user-config",
        "--ignore-rules",
        "--disable",
        "--config",
    ),
    keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    install="npm install -g @openai/codex",
)
_SETTINGS = (
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    'shell_environment_policy.inherit="core"',  # its shell sees no key
    "sandbox_workspace_write.exclude_slash_tmp=true",  # other runs' files are there
    "sandbox_workspace_write.exclude_tmpdir_env_var=true",
)
_WITHOUT = ("plugins", "unbounded_connection_retries")  # else it waits for ever for its service
_PASSED = ("CODEX_CA_CERTIFICATE",)
_EXIT = re.compile(r"(?:exited with code|[Ee]xit code:) (-?\d+)")
_ENDINGS = ("turn.completed", "turn.failed")


class CodexAdapter:
    """Codex, non-interactive."""

    name = "codex"
    priced = True
    wanted = _WANTED
    provider = PROVIDER

    def probe(self, registration: Registration, operator: Operator) -> Probe:
        """Whether `codex` is here, has a key, and knows the flags that keep it contained."""
        return program.probe(_WANTED, registration, operator)

    def plan(self, request: Request, probe: Probe) -> Plan:
        """Writes only below the working copy, without network, with no configuration but ours."""
        environ = request.operator.environment
        argv = [probe.program or _WANTED.program, "exec", "--json", "--sandbox", "workspace-write"]
        if request.registration.model is not None:
            argv += ["-m", request.registration.model]
        argv += ["-C", str(request.workdir), "--skip-git-repo-check"]
        argv += ["--ignore-user-config", "--ignore-rules"]
        for setting in (*_SETTINGS, *_gateway(environ)):
            argv += ["-c", setting]
        for feature in _WITHOUT:
            argv += ["--disable", feature]
        key = environ.get("CODEX_API_KEY") or environ.get("OPENAI_API_KEY")
        return Plan(
            (*argv, "-"),
            stdin=request.prompt.encode(),
            environment={**({"CODEX_API_KEY": key} if key else {}), **path_for(argv[0], environ)},
            pass_through=_PASSED,
        )

    def parse(self, result: ProcessResult, request: Request) -> Report:
        """The last `turn.completed` or `turn.failed`; tokens also from the session files."""
        final: Json = {}
        words = None
        done: list[bool] = []
        for record in json_lines(result.stdout):
            if record.get("type") in _ENDINGS:
                final = record
            elif record.get("type") == "error":
                words = sentence(record.get("message")) or words
            elif record.get("type") == "item.completed":
                done += _worked(table(record.get("item")))
        calls = _calls(result, request.registration.model)
        if final.get("type") == "turn.completed":
            total = _call(table(final.get("usage")), _model(calls, request))
            if total is not None and not _same(calls, total):
                calls = [total]
            usage = computed(calls, PROVIDER, request.at)
            return report(result, Reading(True, usage, denied=_denied([*done, *_exits(result)])))
        usage = computed(calls, PROVIDER, request.at)
        if final.get("type") == "turn.failed":
            words = sentence(table(final.get("error")).get("message")) or words
            return report(
                result, Reading(False, usage, trouble(words or "") or Status.FAILED, words)
            )
        return report(result, Reading(False, usage, words=words))


def _worked(item: Json) -> list[bool]:
    """Whether a command, or a change of files, worked; nothing for other items."""
    if item.get("type") not in ("command_execution", "file_change"):
        return []
    return [item.get("status") == "completed" and item.get("exit_code", 0) == 0]


def _exits(result: ProcessResult) -> Iterator[bool]:
    """The same from the session files: of a quick command, the output tells nothing."""
    for data in session_files(result.home, ".codex/sessions", "rollout-*.jsonl"):
        for record in json_lines(data):
            payload = table(record.get("payload"))
            if payload.get("type") in ("function_call_output", "custom_tool_call_output"):
                code = _EXIT.search(str(payload.get("output"))[:4096])
                if code is not None:
                    yield code[1] == "0"


def _denied(done: Sequence[bool]) -> str | None:
    """Its sandbox refuses as the system does: by the failure of a command."""
    if not done or any(done):
        return None
    return "none of its commands and changes succeeded"


def _gateway(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Settings for another address of the service, as OPENAI_BASE_URL names it."""
    url = environ.get("OPENAI_BASE_URL")
    if not url:
        return ()
    provider = (
        f'{{name="gateway",base_url={json.dumps(url)},wire_api="responses",'
        'env_key="CODEX_API_KEY",request_max_retries=3,stream_max_retries=3}'
    )
    return ('model_provider="gateway"', f"model_providers.gateway={provider}")


def _model(calls: Sequence[Call], request: Request) -> str | None:
    return calls[-1].model if calls else request.registration.model


def _same(calls: Sequence[Call], total: Call) -> bool:
    """Whether the session files have all of the run, call by call."""
    tokens = (sum(c.tokens_in for c in calls), sum(c.tokens_out for c in calls))
    return tokens == (total.tokens_in, total.tokens_out)


def _calls(result: ProcessResult, model: str | None) -> list[Call]:
    """The calls as the session files count them: each `token_count` has the totals so far."""
    calls = []
    for data in session_files(result.home, ".codex/sessions", "rollout-*.jsonl"):
        before = Call(model, 0, 0)
        for record in json_lines(data):
            payload = table(record.get("payload"))
            if record.get("type") == "turn_context":
                model = sentence(payload.get("model")) or model
            if payload.get("type") != "token_count":
                continue
            total = _call(table(table(payload.get("info")).get("total_token_usage")), model)
            if total is None or total[1:] == before[1:]:
                continue
            calls.append(
                Call(model, *(max(0, b - a) for a, b in zip(_n(before), _n(total), strict=True)))
            )
            before = total
    return calls


def _n(call: Call) -> tuple[int, int, int, int]:
    return call.tokens_in, call.tokens_out, call.cache_read, call.cache_write


def _call(usage: Json, model: str | None) -> Call | None:
    """Cached tokens are within input, and reasoning within output."""
    tokens_in, tokens_out = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    if tokens_in is None or tokens_out is None:
        return None
    read = count(usage.get("cached_input_tokens")) or 0
    written = count(usage.get("cache_write_input_tokens")) or 0
    return Call(model, tokens_in, tokens_out, read, written)
