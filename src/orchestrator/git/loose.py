"""Loose object files, looked at before libgit2 reads them: it never returns from one that was cut
short by a full disk, a power cut or a torn copy.
"""

import os
import zlib

_CHUNK = 16 * 1024  # inflates to at most a thousand times that


def is_whole(common_dir: str, oid: str) -> bool:
    """Whether the object's loose file inflates to its end.

    True as well when there is no such file, or it cannot be opened: what stands in a pack, in
    another repository or nowhere is libgit2's to say.
    """
    try:
        file = open(os.path.join(common_dir, "objects", oid[:2], oid[2:]), "rb")  # noqa: SIM115
    except OSError:
        return True
    inflated = zlib.decompressobj()
    with file:
        try:
            while data := file.read(_CHUNK):
                inflated.decompress(data)
                if inflated.eof:
                    return True
        except (zlib.error, OSError):
            return False
    return False
