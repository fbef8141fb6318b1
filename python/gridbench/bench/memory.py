"""Area `memory`: what 100 idle workers hold after each has done one task.

The PSS of all processes but the client: the workers, and with a grid the process that starts them.
The pool is forked from a client with the same imports, whose pages it shares.
"""

from __future__ import annotations

from gridbench.bench import cold
from gridbench.bench.crews import NATIVE, POOL, PYTHON
from gridbench.bench.figures import Area, Row, Samples, Target


def area(full: bool) -> Area:
    """The same number of workers, in full or not."""
    del full
    return Area("memory", "Memory (PSS) of idle workers, client not counted", cold.cases(), _rows)


def _rows(samples: Samples) -> list[Row]:
    pool = samples.of(cold.name(POOL), "bytes").scaled(1e-6)
    return [
        Row(
            what=f"memory of {cold.WORKERS} idle {what}",
            unit="MB",
            ours=samples.of(case, "bytes").scaled(1e-6),
            peer=pool,
            target=None if bound is None else Target(bound, of_peer=True),
            digits=1,
        )
        for what, case, bound in (
            ("Python workers", cold.name(PYTHON), 1.0),
            ("Python workers, function from a module", cold.name(PYTHON, own=True), None),
            ("native workers", cold.name(NATIVE), 0.25),
        )
    ]
