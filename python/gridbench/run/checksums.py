"""The untimed pass in which every byte is checked, on both ways.

In the timed pass tasks only touch the pages of their data, so that checking does not
become what is measured. Here each task digests its data and makes a known output.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from gridbench.engines.base import Bytes, Outcome, Task
from gridbench.workload.task import DIGEST_BYTES, digests, pattern


def inspect_length(task: Task, outcome: Outcome) -> str:
    """For the timed pass: what is wrong if the output has not the length asked for."""
    got = 0 if outcome.output is None else outcome.output.nbytes
    if got == task.output_bytes:
        return ""
    return f"returned {got:,} bytes of output instead of {task.output_bytes:,}"


def digest_inspector(data: Bytes, shared: Bytes, size: int) -> Callable[[Task, Outcome], str]:
    """For the checksum pass: data arrived unchanged, and so did the output of `size` bytes."""
    head = digests(data, shared)
    expected = zlib.crc32(pattern(size).tobytes())

    def inspect(task: Task, outcome: Outcome) -> str:
        del task
        if outcome.output is None or outcome.output.nbytes != DIGEST_BYTES + size:
            got = 0 if outcome.output is None else outcome.output.nbytes
            return f"returned {got:,} bytes instead of digests and output, {DIGEST_BYTES + size:,}"
        whole = outcome.output.data.cast("B")
        for what, part in (("task data", slice(0, 4)), ("shared data", slice(4, DIGEST_BYTES))):
            if whole[part] != head[part]:
                return f"the {what} did not arrive as it was sent"
        if zlib.crc32(whole[DIGEST_BYTES:]) != expected:
            return "the output did not arrive as it should be"
        return ""

    return inspect
