"""A scripted model on 127.0.0.1, spoken to by the real agent CLIs.

It speaks enough of three protocols: Anthropic Messages, OpenAI Responses, Gemini generateContent,
each with streaming. What the model "wants" is a script: a list of turns, after which it ends with a
sentence. Every answer has the same usage, so that what a run must have cost is plain arithmetic.
"""

import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from uuid import uuid4

FRESH, WRITTEN, READ, OUT, THOUGHT = 1000, 200, 3000, 110, 40
"""Tokens of every answer: prompt (new, into the cache, from the cache), text, reasoning."""
TOKENS_IN, TOKENS_OUT = FRESH + WRITTEN + READ, OUT + THOUGHT

_TREE = re.compile(r"(/[\w./+-]+/tree)(?![\w/.-])")
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
Json = dict[str, Any]


class Write(NamedTuple):
    """Write a file; relative paths are of the working copy."""

    path: str
    text: str = "# Reconciled\n\nWritten by the scripted model.\n"


class Shell(NamedTuple):
    """Run a shell command."""

    command: str


class Read(NamedTuple):
    """Read a file of the working copy."""

    path: str


class Hang(NamedTuple):
    """Never answer."""


class Fail(NamedTuple):
    """Answer with an HTTP error."""

    code: int


Turn = Write | Shell | Read | Hang | Fail


@dataclass
class ModelServer:
    """What the server says, and what it heard.

    Attributes:
        script: a turn for each call; beyond its end the model is done, or with `endless` repeats
            the last turn for ever.
        answered: how many calls were answered with usage.
    """

    script: Sequence[Turn]
    endless: bool = False
    url: str = ""
    heard: list[Json] = field(default_factory=list)
    answered: int = 0
    released: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)

    def turn(self, done: int) -> Turn | None:
        if done < len(self.script):
            return self.script[done]
        return self.script[-1] if self.endless else None


@contextmanager
def model_server(*script: Turn, endless: bool = False) -> Iterator[ModelServer]:
    """Serve the script on a free port of 127.0.0.1 until the block ends."""
    model = ModelServer(script, endless=endless)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(model))
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield model
    finally:
        model.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Asked(NamedTuple):
    """One call: the request, the tools it offers, how many of their results it carries."""

    body: Json
    tools: set[str]
    done: int
    tree: str


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, *_: object) -> None:
        return

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if "/models" in self.path:
            self._json(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        else:
            self._json(404, _error(404))

    def do_POST(self) -> None:
        raw = self._body()
        body: Json = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        self.model.heard.append({"path": path, "body": body})
        places = _TREE.findall(raw.decode("utf-8", "replace"))
        tree = next((place for place in places if "/home/" not in place), "/nowhere/tree")
        speak: Callable[[Json, str], None]
        if "count" in path.lower() and "token" in path.lower():
            self._json(200, {"input_tokens": 1234, "totalTokens": 1234})
            return
        if path.endswith("/messages"):
            speak = self._anthropic
        elif path.endswith("/responses"):
            speak = self._openai
        elif "enerateContent" in path:
            speak = self._gemini
        else:
            self._json(404, _error(404))
            return
        try:
            speak(body, tree)
        except (BrokenPipeError, ConnectionResetError):
            return

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", ""):
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding", "") == "gzip":
            data = zlib.decompress(data, 31)
        return data

    def _json(self, code: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Sequence[tuple[str | None, Json]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()

    def _turn(self, asked: _Asked) -> Turn | str | None:
        """What the model wants now; None when the call has been answered with an error, or not."""
        turn = self.model.turn(asked.done) if asked.tools else None
        if not asked.tools and isinstance(self.model.turn(0), Fail):
            turn = self.model.turn(0)
        if isinstance(turn, Fail):
            self._json(turn.code, _error(turn.code))
            return None
        if isinstance(turn, Hang):
            self.model.waiting.set()
            self.model.released.wait(600)
            self.close_connection = True
            return None
        self.model.answered += 1
        return turn or "Done, as scripted."

    def _anthropic(self, body: Json, tree: str) -> None:
        tools = {t.get("name", "") for t in body.get("tools") or []}
        contents = [
            m["content"] for m in body.get("messages", []) if isinstance(m["content"], list)
        ]
        done = sum(c.get("type") == "tool_result" for content in contents for c in content)
        turn = self._turn(_Asked(body, tools, done, tree))
        if turn is None:
            return
        usage = {
            "input_tokens": FRESH,
            "cache_creation_input_tokens": WRITTEN,
            "cache_read_input_tokens": READ,
            "output_tokens": TOKENS_OUT,
        }
        block: Json
        start: Json
        if isinstance(turn, str):
            block, stop = {"type": "text", "text": turn}, "end_turn"
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn}
        else:
            name, given = _anthropic_tool(turn, tree)
            block = {"type": "tool_use", "id": f"toolu_{_id()}", "name": name, "input": given}
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
            stop = "tool_use"
        message: Json = {
            "id": f"msg_{_id()}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [block],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self._json(200, message)
            return
        begun = {**message, "content": [], "stop_reason": None}
        begun["usage"] = {**usage, "output_tokens": 1}
        ended = {"stop_reason": stop, "stop_sequence": None}
        events: list[Json] = [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": usage},
            {"type": "message_stop"},
        ]
        self._stream([(event["type"], event) for event in events])

    def _openai(self, body: Json, tree: str) -> None:
        tools = {t.get("name") or t.get("type") or "" for t in body.get("tools") or []}
        given = [i for i in body.get("input", []) if isinstance(i, dict)]
        done = sum(str(i.get("type", "")).endswith("_output") for i in given)
        turn = self._turn(_Asked(body, tools, done, tree))
        if turn is None:
            return
        if isinstance(turn, str):
            text = {"type": "output_text", "text": turn, "annotations": []}
            item: Json = {"type": "message", "id": f"msg_{_id()}", "role": "assistant"}
            item |= {"status": "completed", "content": [text]}
        else:
            name, arguments = _openai_tool(turn, tools)
            item = {"type": "function_call", "id": f"fc_{_id()}", "call_id": f"call_{_id()}"}
            item |= {"name": name, "arguments": json.dumps(arguments), "status": "completed"}
        response: Json = {"id": f"resp_{_id()}", "object": "response", "created_at": 1764000000}
        response |= {"status": "in_progress", "model": body.get("model"), "output": []}
        usage = {
            "input_tokens": TOKENS_IN,
            "input_tokens_details": {"cached_tokens": READ},
            "output_tokens": TOKENS_OUT,
            "output_tokens_details": {"reasoning_tokens": THOUGHT},
            "total_tokens": TOKENS_IN + TOKENS_OUT,
        }
        ended = {**response, "status": "completed", "output": [item], "usage": usage}
        events: list[Json] = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": ended},
        ]
        self._stream([(event["type"], event) for event in events])

    def _gemini(self, body: Json, tree: str) -> None:
        offered = [t for t in body.get("tools", []) for t in t.get("functionDeclarations", [])]
        tools = {t.get("name", "") for t in offered}
        parts = [p for c in body.get("contents", []) for p in c.get("parts", [])]
        done = sum("functionResponse" in part for part in parts)
        turn = self._turn(_Asked(body, tools, done, tree))
        if turn is None:
            return
        part: Json
        if (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            part = {"text": json.dumps({"next_speaker": "user", "reasoning": "scripted"})}
        elif isinstance(turn, str):
            part = {"text": turn}
        else:
            name, arguments = _gemini_tool(turn, tree)
            part = {"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "c2ln"}
        content = {"role": "model", "parts": [part]}
        answer: Json = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": TOKENS_IN,
                "cachedContentTokenCount": READ,
                "candidatesTokenCount": OUT,
                "thoughtsTokenCount": THOUGHT,
                "totalTokenCount": TOKENS_IN + TOKENS_OUT,
            },
            "modelVersion": self.path.rpartition("/models/")[2].partition(":")[0],
            "responseId": _id(),
        }
        if "stream" in self.path:
            self._stream([(None, answer)])
        else:
            self._json(200, answer)


def _handler(model: ModelServer) -> type[_Handler]:
    return type("Handler", (_Handler,), {"model": model})


def _id() -> str:
    return uuid4().hex[:20]


def _error(code: int) -> Json:
    kind = _ERRORS.get(code, "not_found_error")
    error = {"type": kind, "message": f"scripted {code}", "code": kind, "status": kind}
    return {"type": "error", "error": error}


def _absolute(path: str, tree: str) -> str:
    return path if path.startswith("/") else f"{tree}/{path}"


def _anthropic_tool(turn: Turn, tree: str) -> tuple[str, Json]:
    match turn:
        case Write(path, text):
            return "Write", {"file_path": _absolute(path, tree), "content": text}
        case Read(path):
            return "Read", {"file_path": _absolute(path, tree)}
        case Shell(command):
            return "Bash", {"command": command, "description": "scripted"}
    raise AssertionError(turn)


def _openai_tool(turn: Turn, tools: set[str]) -> tuple[str, Json]:
    match turn:
        case Write(path, text):
            folder = path.rpartition("/")[0] or "."
            command = f"mkdir -p '{folder}' && printf '%s' '{text}' > '{path}'"
        case Read(path):
            command = f"cat '{path}'"
        case Shell(command):
            pass
        case _:
            raise AssertionError(turn)
    if "exec_command" in tools:
        return "exec_command", {"cmd": command}
    if "shell_command" in tools:
        return "shell_command", {"command": command}
    return "shell", {"command": ["bash", "-lc", command]}


def _gemini_tool(turn: Turn, tree: str) -> tuple[str, Json]:
    match turn:
        case Write(path, text):
            return "write_file", {"file_path": _absolute(path, tree), "content": text}
        case Read(path):
            return "read_file", {"file_path": _absolute(path, tree)}
        case Shell(command):
            return "run_shell_command", {"command": command}
    raise AssertionError(turn)
