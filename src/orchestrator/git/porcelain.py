"""What git prints, read: pure functions from its output to values.

Only output that git promises to keep stable is parsed (`--porcelain`, `--format`, `ls-remote`).
Malformed input raises PorcelainError and nothing else.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from orchestrator.errors import CannotLookError
from orchestrator.model.names import Oid, Ref

REF_FORMAT = "%(objectname)%00%(refname)%00%(symref)"
"""For `git for-each-ref --format`; a ref's name holds neither NUL nor newline."""

# Patterns of rare use stay text: `re` compiles and keeps them on first use, not at every start.
_OID = r"[0-9a-f]{40}"
_TRAILER = r"([A-Za-z0-9][A-Za-z0-9-]*)[ \t]*:[ \t]*(.*)"
_CREDENTIALS = r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/]*@"
_BROKEN_REF = r"ignoring (?:broken ref|dangling symref) (\S+)"
_REMOTE_LINE = r"remote: ?(.*)"
_NOISE = (
    "hint: ",
    "warning: ",
    "To ",
    "From ",
    "Counting objects",
    "Compressing objects",
    "Writing objects",
    "Enumerating objects",
    "Receiving objects",
    "Resolving deltas",
    "Delta compression",
    "Total ",
    # git's advice after a lock, and its closing words after any failed transfer
    "Another git process seems",
    "an editor opened by",
    "are terminated then try",
    "may have crashed",
    "remove the file manually",
    "Please make sure you have the correct",
    "and the repository exists",
)
_HOPELESS = "fatal: Could not read from remote repository."
_MOST_LINES = 3


class PorcelainError(CannotLookError):
    """git printed something this program does not know how to read."""


class RefLine(NamedTuple):
    """One ref; `symref` is the name of the ref it points to, when it is symbolic."""

    oid: Oid
    name: Ref
    symref: Ref | None


class PushLine(NamedTuple):
    """What became of one ref in a push.

    Attributes:
        flag: ` ` fast-forward, `+` forced, `*` new, `-` deleted, `!` rejected, `=` up to date.
        ref: the ref's full name on the remote.
        summary: git's words in brackets or the range, such as `[new branch]`.
        reason: the words in parentheses after it, or the empty string.
    """

    flag: str
    ref: Ref
    summary: str
    reason: str

    @property
    def answered(self) -> bool:
        """Whether the remote said so; false when the connection ended before it could."""
        return not (self.flag == "!" and self.summary == "[remote failure]")


class RemoteRefs(NamedTuple):
    """What `ls-remote --symref` listed: `symrefs` has the targets of symbolic refs by name."""

    refs: Mapping[Ref, Oid]
    symrefs: Mapping[Ref, Ref]


def parse_refs(output: bytes) -> tuple[RefLine, ...]:
    """Read `for-each-ref --format=REF_FORMAT`.

    Raises:
        PorcelainError: a line does not have the three fields.
    """
    return tuple(_ref_line(line) for line in output.split(b"\n") if line)


def _ref_line(line: bytes) -> RefLine:
    fields = line.split(b"\0")
    if len(fields) != 3 or not fields[1]:  # noqa: PLR2004 - the three of REF_FORMAT
        raise PorcelainError(f"git for-each-ref printed an unexpected line: {line[:80]!r}")
    return RefLine(_oid(fields[0]), _ref(fields[1]), _ref(fields[2]) if fields[2] else None)


def broken_refs(stderr: str) -> tuple[Ref, ...]:
    """The refs `for-each-ref` left out because it could not read them."""
    return tuple(Ref(name) for name in re.findall(_BROKEN_REF, stderr))


def parse_ls_remote(output: bytes) -> RemoteRefs:
    """Read `ls-remote`, with or without `--symref`; peeled tags (`^{}`) are left out.

    Raises:
        PorcelainError: a line is neither `<oid> TAB <ref>` nor `ref: <ref> TAB <name>`.
    """
    refs: dict[Ref, Oid] = {}
    symrefs: dict[Ref, Ref] = {}
    for line in output.split(b"\n"):
        if not line:
            continue
        left, tab, name = line.partition(b"\t")
        if not tab or not name:
            raise PorcelainError(f"git ls-remote printed an unexpected line: {line[:80]!r}")
        if left.startswith(b"ref: "):
            symrefs[_ref(name)] = _ref(left.removeprefix(b"ref: "))
        elif not name.endswith(b"^{}"):
            refs[_ref(name)] = _oid(left)
    return RemoteRefs(MappingProxyType(refs), MappingProxyType(symrefs))


def parse_push(output: bytes) -> tuple[PushLine, ...]:
    """Read `push --porcelain`. Lines that are not about a ref (`To …`, `Done`) are left out.

    Raises:
        PorcelainError: a line about a ref lacks a field.
    """
    lines = (line for line in output.decode("utf-8", "surrogateescape").split("\n"))
    return tuple(_push_line(line) for line in lines if line[1:2] == "\t")


def _push_line(line: str) -> PushLine:
    fields = line.split("\t")
    if len(fields) != 3 or fields[0] not in " +-*!=":  # noqa: PLR2004 - flag, refs, summary
        raise PorcelainError(f"git push printed an unexpected line: {line[:80]!r}")
    _, colon, ref = fields[1].rpartition(":")
    if not colon or not ref:
        raise PorcelainError(f"git push named no ref: {line[:80]!r}")
    summary, space, reason = fields[2].partition(" (")
    return PushLine(fields[0], Ref(ref), summary, reason.removesuffix(")") if space else "")


def server_lines(stderr: str) -> tuple[str, ...]:
    """What the server said during a push or fetch (its `remote:` lines), credentials removed."""
    found = (re.fullmatch(_REMOTE_LINE, line) for line in re.split(r"[\r\n]+", stderr))
    # git pads the lines with blanks (or erases to the line's end) so that they overwrite progress.
    words = (m[1].replace("\x1b[K", "").rstrip() for m in found if m is not None)
    return tuple(without_credentials(w) for w in words if w)


def complaint(stderr: str) -> str:
    """The sentence that says what went wrong, out of everything git and ssh printed.

    What the server said and git's own `fatal:` and `error:` lines; where git only says that it
    could not read, what ssh said before that.
    """
    lines = (line.strip().removeprefix("remote: ") for line in stderr.splitlines())
    told = [x for x in lines if x and not x.startswith(_NOISE) and x != "remote:"]
    gits = [x for x in told if x.startswith(("fatal: ", "error: ")) and x != _HOPELESS]
    if gits:
        said = {line.strip() for line in server_lines(stderr)}
        told = [x for x in told if x in gits or x in said]
    else:
        told = [x for x in told if x != _HOPELESS] or told
    told = [re.sub(r"^(?:fatal|error): ", "", x) for x in told]
    return without_credentials("; ".join(dict.fromkeys(told[:_MOST_LINES])))


def without_credentials(text: str) -> str:
    """`text` with `user:password@` taken out of every URL."""
    return re.sub(_CREDENTIALS, r"\1", text) if "@" in text else text


def trailers(message: str) -> dict[str, str]:
    """The trailers of a commit message: `Key: value` lines of its last paragraph.

    The paragraph counts when every line of it is a trailer or the continuation of one (a line that
    starts with a blank). Of a repeated key the last value stands.
    """
    paragraphs = re.split(r"\n[ \t]*\n", message.replace("\r\n", "\n").strip("\n"))
    if len(paragraphs) == 1:
        return {}  # a lone first paragraph is the subject
    found: dict[str, str] = {}
    key = None
    for line in paragraphs[-1].split("\n"):
        if line[:1] in (" ", "\t") and key is not None:
            found[key] = f"{found[key]} {line.strip()}"
            continue
        match = re.fullmatch(_TRAILER, line)
        if match is None:
            return {}
        key = match[1]
        found[key] = match[2].strip()
    return found


def _oid(field: bytes) -> Oid:
    text = field.decode("ascii", "replace")
    if not re.fullmatch(_OID, text):
        raise PorcelainError(f"git printed {field[:80]!r} where an object id was expected")
    return Oid(text)


def _ref(field: bytes) -> Ref:
    return Ref(field.decode("utf-8", "surrogateescape"))
