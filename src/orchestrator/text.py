"""Text that others wrote, made fit to show: no terminal escapes, no secrets, one line.

The order matters. Escapes go first, because one in the middle of a token would hide it from the
patterns; secrets go next; cutting comes last, because half a token is still a usable prefix.
`safe_line` does all three in that order.
"""

import re
from collections.abc import Iterator, Mapping
from unicodedata import category

MASK = "[redacted]"

_ESCAPES = r"""(?x)
    (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]                   # CSI: colours, cursor
    | (?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)  # OSC: titles, links, the clipboard
    | \x1b[PX^_][^\x1b]*\x1b\\                         # DCS, SOS, PM, APC
    | \x1b[ -/]*[0-~]                                  # everything shorter
"""
_LINE_ENDS = re.compile("\r\n|[\n\v\f\r\x85\u2028\u2029]")

_SECRET_NAME = re.compile(
    # AUTH, but not the AUTHOR in GIT_AUTHOR_NAME; PWD is a folder, so it is not here
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTH(?!OR(?!IZ))",
    re.IGNORECASE,
)
_SECRET_MIN_LENGTH = 8

# Compiled when first used (re keeps them): a resting tick shows text, but has nothing to redact.
# Every pattern starts with a literal and has no nested repetition, so that a hostile megabyte
# costs milliseconds. Lower bounds are small on purpose: a cut-off token is a usable prefix too.
_TOKENS = r"""(?xs)
    -----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
        .*?(?:-----END\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | (?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]*
    | (?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{10,}
    | (?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{4,}
    | (?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{4,}
    | (?<![A-Za-z0-9])gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_.-]{4,}
    | (?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{8,}
    | (?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{8,}
    | (?<![A-Za-z0-9])(?:xox[a-z]|xapp)-[A-Za-z0-9-]{4,}
    | (?<![A-Za-z0-9])npm_[A-Za-z0-9]{16,}
    | (?<![A-Za-z0-9])hf_[A-Za-z0-9]{16,}
    | (?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){1,2}
    """
_HEADER = r"""(?xi)
    (\bBearer[ ]{1,4})[A-Za-z0-9._~+/=-]{6,}
    | (\bAuthorization["']?[ ]{0,4}:[ ]{0,4}["']?)[^\r\n"']{4,}
    | (\b(?:x-)?(?:api|goog-api|auth)-(?:key|token)["']?[ ]{0,4}:[ ]{0,4}["']?)[^\s"']{4,}
    """
_ASSIGNED = r"""(?xi)
    ((?:key|token|secret|password|passwd|passphrase|credentials?)
        (?:["']?=["']?|["'][ ]{0,4}:[ ]{0,4}["']))
    [^\s"'&;,]{6,}
    """
_URL_USER = r"([A-Za-z][A-Za-z0-9+.-]{1,15}://)([^\s/]{1,400})@"


def printable(text: str, *, one_line: bool = False) -> str:
    """`text` without terminal escapes and without characters of Unicode category C.

    Line ends become newlines, or spaces when `one_line`; tabs become spaces. Bytes that were not
    UTF-8 (surrogate escapes) and private or unassigned characters show as U+FFFD; what has no look
    of its own (bidirectional marks, zero-width characters) is dropped.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub(" " if one_line else "\n", re.sub(_ESCAPES, "", text)).replace("\t", " ")
    return "\n".join(
        line if line.isprintable() else "".join(map(_shown, line)) for line in text.split("\n")
    )


def _shown(char: str) -> str:
    kind = category(char)
    if not kind.startswith("C"):
        return char
    return "" if kind in ("Cc", "Cf") else "\ufffd"


def one_line(text: str, limit: int) -> str:
    """`text` as one printable line of at most `limit` characters, with an ellipsis when cut.

    Redact first (`safe_line` does): a secret that is cut here would no longer be recognised.
    """
    line = " ".join(printable(text, one_line=True).split())
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"[:limit]


def redact(text: str, environ: Mapping[str, str]) -> str:
    """`text` with secrets replaced by a mask: values from `environ`, and well-known shapes.

    A variable counts as secret when its name looks like a credential's and its value has at least
    eight characters; its beginning alone (half of it, at least eight characters) is masked too.
    """
    for secret in _secrets(environ):
        text = _without(text, secret)
    text = re.sub(_TOKENS, MASK, text)
    text = re.sub(_HEADER, lambda m: f"{m[1] or m[2] or m[3]}{MASK}", text)
    text = re.sub(_ASSIGNED, lambda m: f"{m[1]}{MASK}", text)
    return re.sub(_URL_USER, _url_user, text)


def brings_secret(text: str, before: str, environ: Mapping[str, str]) -> bool:
    """Whether `text` holds a credential that `before` did not: a value from `environ`, or a token
    of a well-known shape. Looser signs (`password=`) are left alone: documents are full of them.
    """
    if any(secret in text and secret not in before for secret in _secrets(environ)):
        return True
    return not set(re.findall(_TOKENS, text)) <= set(re.findall(_TOKENS, before))


def safe_line(text: str, environ: Mapping[str, str], limit: int) -> str:
    """One printable line of at most `limit` characters, secrets masked before it is cut."""
    return one_line(redact(printable(text), environ), limit)


def _secrets(environ: Mapping[str, str]) -> list[str]:
    found: set[str] = set()
    for name, raw in environ.items():
        value = raw.strip()
        if len(value) >= _SECRET_MIN_LENGTH and _SECRET_NAME.search(name):
            found.update(_spellings(value))
    # Longest first: a secret that contains another is masked whole.
    return sorted(found, key=lambda s: (-len(s), s))


def _spellings(value: str) -> Iterator[str]:
    """The value, and how JSON and a URL would write it."""
    # Only when there is a secret to look for.
    import json
    from urllib.parse import quote

    yield value
    yield json.dumps(value)[1:-1]
    yield quote(value.encode("utf-8", "surrogateescape"), safe="")
    # Each long line of a value of several lines, which programs like to print line by line.
    yield from (line for line in value.split("\n") if len(line) >= 2 * _SECRET_MIN_LENGTH)


def _without(text: str, secret: str) -> str:
    probe = secret[: max(_SECRET_MIN_LENGTH, len(secret) // 2)]
    parts: list[str] = []
    start = 0
    while (at := text.find(probe, start)) >= 0:
        end = at + len(probe)
        for char in secret[len(probe) :]:
            if text[end : end + 1] != char:
                break
            end += 1
        parts += (text[start:at], MASK)
        start = end
    return "".join(parts) + text[start:] if parts else text


def _url_user(match: re.Match[str]) -> str:
    scheme, user = match[1], match[2]
    # `ssh://git@host` names an account, not a secret; over http a lone user is often a token.
    if ":" in user or scheme.lower() in ("http://", "https://"):
        return f"{scheme}{MASK}@"
    return match[0]
