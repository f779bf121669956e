"""A sweep's lock: who holds it, and what its file says when nobody does any more."""

import os
import shutil
import signal
from pathlib import Path

from orchestrator.locks import (
    Signature,
    acquire,
    is_held,
    signatures_at,
    signed_slugs,
    sweep_lock_path,
)

DISPATCH = "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"


def path_in(folder: Path) -> str:
    return sweep_lock_path(str(folder), "scribe-2026-11-30")


def test_a_signature_outlives_the_process_that_was_killed(tmp_path: Path) -> None:
    path = path_in(tmp_path)
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        lock = acquire(path)
        if lock is not None:
            lock.sign(DISPATCH, launched=False)
            lock.sign(DISPATCH, launched=True)
            os.write(told, b"!")
        signal.pause()
    os.read(ready, 1)
    held = is_held(path), acquire(path)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(told)
    assert held == (True, None)
    assert not is_held(path)
    assert signatures_at(path) == (Signature(DISPATCH, launched=True),)
    assert signed_slugs(str(tmp_path)) == ("scribe-2026-11-30",)


def test_a_copied_file_is_no_signature(tmp_path: Path) -> None:
    path = path_in(tmp_path / "a")
    lock = acquire(path)
    assert lock is not None
    lock.sign(DISPATCH, launched=True)
    lock.release()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert signatures_at(path) == (Signature(DISPATCH, launched=True),)
    assert signatures_at(path_in(tmp_path / "b")) == ()


def test_a_moved_file_still_is(tmp_path: Path) -> None:
    lock = acquire(path_in(tmp_path / "a"))
    assert lock is not None
    lock.sign(DISPATCH, launched=False)
    lock.release()
    (tmp_path / "a").rename(tmp_path / "b")
    assert signatures_at(path_in(tmp_path / "b")) == (Signature(DISPATCH, launched=False),)


def test_earlier_signatures_stay_until_all_is_in_order(tmp_path: Path) -> None:
    lock = acquire(path_in(tmp_path))
    assert lock is not None
    for number in range(12):
        lock.sign(f"{DISPATCH[:-2]}{number:02}", launched=False)
    lock.sign(f"{DISPATCH[:-2]}11", launched=True)
    signed = lock.signatures()
    assert [s.dispatch_id[-2:] for s in signed] == [f"{n:02}" for n in range(4, 12)]
    assert [s.launched for s in signed] == [False] * 7 + [True]
    lock.release()


def test_what_is_put_in_order_leaves_no_file(tmp_path: Path) -> None:
    path = path_in(tmp_path)
    lock = acquire(path)
    assert lock is not None
    assert lock.signatures() == ()
    lock.release(remove=True)
    assert signatures_at(path) == ()
    assert signed_slugs(str(tmp_path)) == ()


def test_a_file_with_other_words_is_no_signature(tmp_path: Path) -> None:
    path = Path(path_in(tmp_path))
    path.parent.mkdir(parents=True)
    for words in (b"", b"\xff\xfe", b"a b c\n", DISPATCH.encode(), b" " * 10_000):
        path.write_bytes(words)
        assert signatures_at(str(path)) == ()
