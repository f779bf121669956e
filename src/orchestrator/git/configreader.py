"""Reading a repository's configuration: its remotes, what kind of clone it is, who commits."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import pygit2
from pygit2.enums import ConfigLevel

from orchestrator.git import opening
from orchestrator.git.objects import clean_person

_FETCHES = re.compile(r"remote\.(.+)\.fetch")
_FALLBACK_NAME = "orchestrator"
_FALLBACK_EMAIL = "orchestrator@localhost"


class Identity(NamedTuple):
    """Who commits; `fallback` when neither the environment nor git config said so fully."""

    name: str
    email: str
    fallback: bool


class ConfigReader:
    """The configuration of one opened repository, the files under HOME included.

    Attributes:
        path: where the repository is, for people.
    """

    def __init__(self, repository: pygit2.Repository, path: str) -> None:
        self.repository = repository
        self.path = path

    @property
    def is_bare(self) -> bool:
        return self.repository.is_bare

    @property
    def is_shallow(self) -> bool:
        return self.repository.is_shallow

    @property
    def is_partial(self) -> bool:
        """Whether objects may be missing here on purpose (`git clone --filter`)."""
        if self.config("extensions.partialClone") is not None:
            return True
        return any(self.config_bool(f"remote.{r}.promisor", default=False) for r in self.remotes())

    def remotes(self) -> tuple[str, ...]:
        """The configured remotes' names, in configuration order.

        One that lost its URL counts, as it does for git: without it everything would seem to
        happen in this repository. What the user's own configuration says about remotes everywhere
        makes none.
        """
        named = [name for name in self.repository.remotes.names() if name is not None]
        for entry in self.repository.config:
            match = _FETCHES.fullmatch(entry.name)
            if match and entry.level >= ConfigLevel.LOCAL:
                named.append(match[1])
        return tuple(dict.fromkeys(named))

    def config(self, name: str) -> str | None:
        """The last value of a configuration variable, or None when it is not set."""
        values = self.config_all(name)
        return values[-1] if values else None

    def config_all(self, name: str) -> tuple[str, ...]:
        """Every value of a configuration variable, in order.

        Raises:
            CannotLookError: the configuration cannot be read.
        """
        try:
            return tuple(value or "" for value in self.repository.config.get_multivar(name))
        except KeyError:
            return ()
        except (pygit2.GitError, ValueError, OSError) as error:
            raise opening.config_error(name, error) from error

    def config_bool(self, name: str, default: bool) -> bool:
        """A configuration variable as git reads a boolean.

        Raises:
            CannotLookError: the value is not a boolean, or the configuration cannot be read.
        """
        try:
            return self.repository.config.get_bool(name)
        except KeyError:
            return default
        except (pygit2.GitError, ValueError, OSError) as error:
            raise opening.config_error(name, error) from error

    def identity(self, environ: Mapping[str, str]) -> Identity:
        """Who commits here: GIT_COMMITTER_*, then `committer.*`, then `user.*`, then a fallback."""
        found = []
        for field in ("name", "email"):
            said = (
                environ.get(f"GIT_COMMITTER_{field.upper()}"),
                self.config(f"committer.{field}"),
                self.config(f"user.{field}"),
            )
            found.append(next((c for s in said if s and (c := clean_person(s))), None))
        name, email = found
        fallback = name is None or email is None
        return Identity(name or _FALLBACK_NAME, email or _FALLBACK_EMAIL, fallback)
