"""Many clients in one process, each with a connection of its own: they make a call now and then.

    python idle.py ADDRESS COUNT SECONDS

Prints `ready` when each has made a call. Then each makes one every SECONDS, until the input ends.
"""

from __future__ import annotations

import contextlib
import select
import sys

import gridrpc


def main(address: str, count: str, seconds: str) -> None:
    """Connect, and stay."""
    with contextlib.ExitStack() as stack:
        nulls = []
        for _ in range(int(count)):
            grid = stack.enter_context(gridrpc.Grid(servers=[address]))
            nulls.append(grid.function("gridbench_server/null"))
            nulls[-1]()
        print("ready", flush=True)
        turn = 0
        while not select.select([sys.stdin], [], [], float(seconds) / len(nulls))[0]:
            nulls[turn % len(nulls)]()
            turn += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
