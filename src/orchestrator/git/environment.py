"""What of this process's environment git gets to see: an allow-list, each entry for a reason."""

import os
from collections.abc import Mapping

SILENCE_S = 30
"""Seconds a server may be silent before the conversation ends."""

# What ssh must do when it is really ssh. The user's own options come first on its command line,
# and ssh takes the first value it sees, so theirs win.
_SSH_OPTIONS = (
    "-o BatchMode=yes "  # no password, passphrase or host key questions
    "-o ConnectTimeout=20 "
    f"-o ServerAliveInterval={SILENCE_S // 2} -o ServerAliveCountMax=2"  # notices a dead peer
)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Variables a local command may see.
_PASSED = _names(
    "PATH HOME USER LOGNAME SHELL TMPDIR TZ "
    "XDG_CONFIG_HOME "  # pygit2 looks there for git's configuration too
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH "  # for gits installed off the beaten track
    "SYSTEMROOT"
)

# Of the GIT_ variables, those that say how to reach a server, or nothing to do with us.
_PASSED_GIT = _names(
    "GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_PROXY_COMMAND GIT_PROXY_SSL_CERT "
    "GIT_PROXY_SSL_KEY GIT_PROXY_SSL_CAINFO GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSL_CERT "
    "GIT_SSL_KEY GIT_SSL_NO_VERIFY GIT_SSL_VERSION GIT_HTTP_PROXY_AUTHMETHOD GIT_HTTP_USER_AGENT "
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL "
    "GIT_EXEC_PATH "  # where this git's own programs are
    "GIT_CONFIG_NOSYSTEM"
)

# Not even for a conversation with a remote: they ask a person, or change what git prints.
_NEVER = _names(
    "SSH_ASKPASS SSH_ASKPASS_REQUIRE DISPLAY WAYLAND_DISPLAY LANG LANGUAGE LC_MESSAGES "
    "PAGER EDITOR VISUAL BASH_ENV ENV"
)

_FIXED = {
    "LC_ALL": "C",  # git's own words in English, so that the few we must know are known
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",  # the credential manager's own switch
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",  # no ext::, no remote-helper programs
    "GIT_OPTIONAL_LOCKS": "0",  # looking takes no lock
    "GIT_NO_REPLACE_OBJECTS": "1",  # pygit2 knows no replacements: both see the same history
    "GIT_PAGER": "cat",
    "GIT_ADVICE": "0",
}


def home_of(environ: Mapping[str, str]) -> str | None:
    """HOME, or what the password database says when the environment has none (cron often has
    none). None when neither knows.
    """
    if environ.get("HOME"):
        return environ["HOME"]
    import pwd  # only where HOME is missing

    try:
        return pwd.getpwuid(os.getuid()).pw_dir or None
    except KeyError:
        return None


def local_environment(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in environ.items() if k in _PASSED or k in _PASSED_GIT}
    kept.update(_FIXED)
    kept["GIT_NO_LAZY_FETCH"] = "1"  # a partial clone stays silent unless asked (git 2.45 and up)
    kept.setdefault("PATH", os.defpath)
    home = home_of(environ)
    if home is not None:
        kept["HOME"] = home
    return kept


def remote_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a conversation with a remote may see: everything but what asks a person or steers git.

    Credential helpers, ssh and proxies are the operator's own programs, and take their tokens and
    agents from wherever he put them.
    """
    kept = {
        k: v for k, v in environ.items() if k not in _NEVER and not k.startswith(("GIT_", "LC_"))
    }
    kept.update(local_environment(environ))
    kept.pop("GIT_NO_LAZY_FETCH", None)
    return kept


def ssh_command(environ: Mapping[str, str], configured: str | None) -> str | None:
    """The ssh command to use, made non-interactive when it is really ssh.

    `configured` is git config's `core.sshCommand`. None leaves the choice to git.
    """
    import shlex  # only before a conversation with a remote

    command = environ.get("GIT_SSH_COMMAND") or configured
    if not command:
        program = environ.get("GIT_SSH")
        if program and os.path.basename(program) != "ssh":
            return None
        command = shlex.quote(program) if program else "ssh"
    return f"{command} {_SSH_OPTIONS}" if _is_ssh(command) else command


def _is_ssh(command: str) -> bool:
    """Whether a shell command line is a plain call of ssh that takes more options at its end."""
    import shlex  # only before a conversation with a remote

    if set(command) & set(";|&<>()$`\n"):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and os.path.basename(words[0]) in ("ssh", "ssh.exe")
