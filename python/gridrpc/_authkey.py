"""The key of `multiprocessing` that workers need to reach the client's managers and connections.

It travels ahead of the pickles that may need it, since a client may load `multiprocessing` long
after it has opened a grid.
"""

from __future__ import annotations

import pickle

#: Begins a pickle of protocol 5.
BEGINNING = b"\x80\x05"


def with_authkey(head: bytes) -> bytes:
    """The pickle with the key ahead of it; in workers, whose results need none, as it is."""
    from multiprocessing.process import current_process

    from gridrpc import _worker

    if _worker.serving or not head.startswith(BEGINNING):
        return head
    key = bytes(current_process().authkey)
    # A call whose result is dropped. It memoizes nothing, as what follows counts what it memoizes.
    function = pickle.GLOBAL + f"{adopt.__module__}\n{adopt.__name__}\n".encode()
    argument = pickle.BINBYTES + len(key).to_bytes(4, "little") + key
    call = function + argument + pickle.TUPLE1 + pickle.REDUCE + pickle.POP
    return BEGINNING + call + head.removeprefix(BEGINNING)


def adopt(key: bytes) -> None:
    """Take over the client's key, in a worker."""
    from multiprocessing.process import current_process

    from gridrpc import _worker

    if _worker.serving:
        current_process().authkey = key
