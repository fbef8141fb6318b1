"""From nothing to workers: how long it takes, and what memory they hold."""

from __future__ import annotations

import os
import time

from gridbench.bench.client import Client, Found, NotStarted, WrongResult, one_line

_REST = 0.3  # seconds for the workers to become idle


def bring_up(client: Client, numpy_loaded: bool) -> Found:
    """`first`, `all`: seconds until the first worker, and all, are at work on their first task.

    The clock starts before the engine's driver, and with it the engine, is imported; it stands
    still while a batch system is brought up, which sites have. Each task stays until all workers
    have one, so that no worker has two. `bytes` is what all processes but the client hold (PSS)
    when they are idle again, `client_bytes` what the client does.
    """
    from gridbench.process.barrier import Meeting, meet

    if numpy_loaded:
        import numpy as np

        del np
    try:
        with Meeting(client.patience) as meeting:
            begin = time.monotonic()
            engine = client.make()
            asked = time.monotonic()
            engine.prepare(client.workers)
            begin += time.monotonic() - asked
            engine.start(client.workers)
            calls = [engine.call(meet, meeting.place) for _ in range(client.workers)]
            arrivals = meeting.gather(client.workers)
            meeting.end()
            processes = len(set(engine.gather(calls)))
    except Exception as error:  # an engine is foreign code: it can fail in any way
        raise NotStarted(one_line(error)) from error
    if processes != client.workers:
        raise WrongResult(f"{client.workers} tasks at one time ran in {processes} processes")
    values = {"first": min(arrivals) - begin, "all": max(arrivals) - begin}
    return Found(values | memory(client.workers))


def memory(workers: int) -> dict[str, float]:
    """Bytes that the client, and all processes below it, hold when they have come to rest.

    Nothing if there are fewer processes than workers: the engine keeps none that wait.
    """
    from gridbench.process.memory import footprint, tree

    time.sleep(_REST)
    client, *others = tree(os.getpid())
    if len(others) < workers:
        return {}
    return {
        "bytes": footprint(others),
        "client_bytes": footprint([client]),
        "processes": len(others),
    }
