"""Claims made step by step, for tests of what can happen between two steps."""

from pathlib import Path
from uuid import uuid4

from orchestrator.claim import Claim, Claimant, NotClaimed, claim
from orchestrator.closing import Closed, Closer, Finished, Opened
from orchestrator.git.writer import TreeChange, Writer
from orchestrator.locks import acquire, sweep_lock_path
from orchestrator.observe import observe
from orchestrator.site import open_site
from tests.support.world import World


class Attempt:
    """A claim prepared on one look, to be made, and closed, when the test says so."""

    def __init__(self, world: World, path: Path | None = None, *, fetch: bool = True) -> None:
        site = open_site(world.settings(path), fetch=fetch)
        self.now = world.now
        self.facts = observe(site, world.now).facts["historian"]
        identity = site.reader.identity(world.environ)
        self.claimant = Claimant(site, Writer(site.reader), identity, str(uuid4()))

    def make(self) -> Claim | NotClaimed:
        return claim(self.claimant, self.facts, self.now)

    def won(self, *, launched: bool = True) -> Claim:
        """A claim that is won, signed for as a tick does it, by a tick that is there no more."""
        made = self.make()
        assert isinstance(made, Claim), made
        common_dir = self.claimant.site.reader.common_dir
        lock = acquire(sweep_lock_path(common_dir, made.sweep.slug))
        assert lock is not None
        lock.sign(made.dispatch_id, launched=launched)
        lock.release()
        return made

    def changes(self, files: dict[str, str | None]) -> dict[str, TreeChange | None]:
        writer = self.claimant.writer
        return {
            path: None if text is None else TreeChange(writer.blob(text.encode()))
            for path, text in files.items()
        }

    def close(self, made: Claim, finished: Finished) -> Closed:
        who = self.claimant
        opened = Opened(made.marker, made.intent, made.dispatch_id, made.instance)
        return Closer(who.site, who.writer, opened, who.identity, self.now).close(finished)
