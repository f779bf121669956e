"""Edits of `orchestrator.yaml` that keep its comments and its order, proposed as a branch.

Policy changes are merged by people, like everything here: an edit becomes one commit on a branch
`policy/<what>-<date>` and goes no further. What the edited text says is checked before anything is
written: the role as asked, every other role as before.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from io import StringIO
from typing import Any, NamedTuple

from orchestrator.configfile import read_config
from orchestrator.errors import OrchestratorError, UsageError
from orchestrator.git.writer import TreeChange, Writer
from orchestrator.model.config import Config
from orchestrator.model.names import CONFIG_PATH, Oid, Ref
from orchestrator.model.problem import Problem
from orchestrator.policy import FILE_KINDS, MAX_FILE_BYTES
from orchestrator.site import Site

FOLDER = "policy"
_KINDS = ("every", "cron", "interval")
_WORDS = {"true": True, "false": False, "null": None}


class Edit(NamedTuple):
    """What to change: `values` by key, None removes the key; with `delete` the whole role goes.

    Attributes:
        verb: what is done, for the branch's name and the commit: `pause`, `set`.
    """

    verb: str
    role: str
    values: Mapping[str, object]
    delete: bool = False


class Proposal(NamedTuple):
    """The file before and after, and the branch it is proposed on."""

    edit: Edit
    before: str
    after: str
    branch: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        from difflib import unified_diff

        lines = (self.before.splitlines(keepends=True), self.after.splitlines(keepends=True))
        return "".join(unified_diff(*lines, f"a/{CONFIG_PATH}", f"b/{CONFIG_PATH}"))


def parse_pairs(pairs: tuple[str, ...]) -> dict[str, object]:
    """`key=value` words as an entry's values; an empty value removes the key.

    Raises:
        UsageError: a word has no `=`, or a key stands twice.
    """
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in found:
            what = "stands twice" if key in found else "is no key=value"
            raise UsageError(f"{pair} {what}", "write it like cron='0 2 * * *'; key= removes one")
        found[key] = _typed(key, value)
    return found


def _typed(key: str, value: str) -> object:
    if value == "":
        return None
    if key == "enabled":
        return _WORDS.get(value, value)
    if key == "cost_limit_usd":
        try:
            return float(value) if "." in value else int(value)
        except ValueError:
            return value
    return value


def propose(site: Site, edit: Edit, now: datetime) -> Proposal:
    """Work the edit out; nothing is written.

    Raises:
        UsageError: the role is not scheduled, or the edit changes nothing.
        OrchestratorError: the file as it is, or as it would be, cannot be read.
    """
    data = _current(site)
    config = read_config(data, commit=site.tip)
    _check_role(config, edit)
    before = (data or b"").decode("utf-8-sig")
    candidates = _edited(before, edit)
    if not candidates:
        raise UsageError(f"{edit.verb} changes nothing: {CONFIG_PATH} says so already")
    right = [text for text in candidates if _wrong(config, text, edit) is None]
    if not right:
        raise _wrong(config, candidates[-1], edit) or AssertionError("nothing was wrong")
    after = right[0]
    day = now.astimezone(UTC).date().isoformat()
    return Proposal(edit, before, after, f"{FOLDER}/{edit.verb}-{edit.role}-{day}")


def publish(site: Site, proposal: Proposal, now: datetime) -> Oid:
    """Commit the proposal and create its branch, on the remote where there is one.

    Raises:
        OrchestratorError: a branch of that name exists, or the remote refused it.
    """
    writer = Writer(site.reader)
    edit, entry = proposal.edit, site.reader.entry(site.tip, CONFIG_PATH)
    mode = 0o100755 if entry is not None and entry.kind == "executable" else 0o100644
    change = TreeChange(writer.blob(proposal.after.encode()), mode)
    tree = writer.tree(site.tip, {CONFIG_PATH: change})
    message = f"{edit.verb.capitalize()} the schedule of {edit.role}\n"
    identity = site.reader.identity(site.settings.environ)
    commit = writer.commit(tree, [site.tip], message, identity, now)
    ref = Ref(f"refs/heads/{proposal.branch}")
    exists = OrchestratorError(
        f"a branch {proposal.branch} exists already, and is left as it is", "merge or delete it"
    )
    if site.remote is None:
        if not writer.create_ref(ref, commit, f"policy: {edit.verb} {edit.role}"):
            raise exists
        return commit
    outcome = site.remote.create(commit, ref)
    there = None if outcome.flag == "*" else site.remote.ls(ref).get(ref)
    if outcome.flag != "*" and there != commit:
        if there is not None:
            raise exists
        words = "; ".join((*outcome.server, outcome.reason)).strip("; ") or "it gave no reason"
        raise OrchestratorError(f"{site.remote.name} refused {proposal.branch}: {words}")
    return commit


def _current(site: Site) -> bytes | None:
    entry = site.reader.entry(site.tip, CONFIG_PATH)
    if entry is None:
        return None
    if entry.kind not in FILE_KINDS:
        raise OrchestratorError(f"{CONFIG_PATH} on {site.tip_name} is not a plain file")
    return site.reader.read_blob(entry.oid, MAX_FILE_BYTES)


def _check_role(config: Config, edit: Edit) -> None:
    whole = [p for p in config.errors if p.message.startswith("the whole file is refused")]
    if whole:
        raise OrchestratorError(f"{whole[0].place}: {whole[0].message}", whole[0].hint)
    if edit.role not in config.schedules and edit.verb != "set":
        known = ", ".join(config.schedules) or "none"
        raise UsageError(f'no role "{edit.role}" is scheduled', f"scheduled: {known}")


def _edited(text: str, edit: Edit) -> tuple[str, ...]:
    """The text with the edit made, best first; empty when it changes nothing.

    A round trip keeps comments and order, but not everybody's indentation: so the lines that the
    edit changes are put into the text as it was, where the two correspond line by line.
    """
    plain = text.replace("\r\n", "\n")
    same, changed = _round_trip(plain, None), _round_trip(plain, edit)
    if same == changed:
        return ()
    found: tuple[str, ...] = (changed,)
    lines, there, wanted = (t.splitlines(keepends=True) for t in (plain, same, changed))
    if len(lines) == len(there) and (not plain or plain.endswith("\n")):
        from difflib import SequenceMatcher

        steps = SequenceMatcher(None, there, wanted, autojunk=False).get_opcodes()
        parts = [lines[a:b] if tag == "equal" else wanted[c:d] for tag, a, b, c, d in steps]
        found = ("".join(line for part in parts for line in part), changed)
    return tuple(t.replace("\n", "\r\n") for t in found) if "\r\n" in text else found


def _round_trip(text: str, edit: Edit | None) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 4096
    if text.strip():
        _, indent, offset = load_yaml_guess_indent(text)
        yaml.indent(mapping=indent or 2, sequence=indent or 4, offset=offset or 0)
    root: Any = yaml.load(text)
    root = {} if root is None else root
    if edit is not None:
        schedules = root.get("schedules")
        if schedules is None:
            schedules = root["schedules"] = {}
        if edit.delete:
            del schedules[edit.role]
        else:
            _set(schedules, edit)
    out = StringIO()
    yaml.dump(root, out)
    return out.getvalue()


def _set(schedules: Any, edit: Edit) -> None:  # noqa: ANN401 - what the round trip gives
    entry = schedules.get(edit.role)
    if not hasattr(entry, "keys"):
        entry = schedules[edit.role] = {}
    new_kind = next((k for k in _KINDS if edit.values.get(k) is not None), None)
    for key in _KINDS if new_kind is not None else ():
        if key != new_kind:
            entry.pop(key, None)
    for key, value in edit.values.items():
        default = key == "enabled" and value is True and key not in entry
        if value is None:
            entry.pop(key, None)
        elif default:
            continue
        elif (
            key not in entry
            or entry[key] != value
            or isinstance(entry[key], bool) != (isinstance(value, bool))
        ):
            entry[key] = value


def _wrong(before: Config, text: str, edit: Edit) -> OrchestratorError | None:
    """None when the role reads as asked and every other entry as before."""
    after = read_config(text.encode())
    found = after.schedules.get(edit.role)
    if isinstance(found, Problem):
        return OrchestratorError(f"{found.key}: {found.message}", found.hint)
    if _others(before, edit.role) != _others(after, edit.role) or (found is None) != edit.delete:
        return OrchestratorError(
            f"{CONFIG_PATH} cannot be edited without changing more than {edit.role}",
            "edit the file by hand",
        )
    return None


def _others(config: Config, role: str) -> object:
    schedules = {r: _bare(e) for r, e in config.schedules.items() if r != role}
    return schedules, {r: _bare(e) for r, e in config.roles.items()}


def _bare(entry: Any) -> object:  # noqa: ANN401 - either kind of entry, or a problem
    if isinstance(entry, Problem):
        return entry.message
    return entry._replace(line=0, lines={})
