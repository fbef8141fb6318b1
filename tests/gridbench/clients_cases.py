"""Cases with many clients made by hand, for the tests of sentences about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.jsonl_store import Header
from gridbench.linpack.record import (
    CLIENTS_FORM,
    ClientsCase,
    CorePolicy,
    ServedCall,
    ServerSample,
    operations,
)

QUIET = {"judgement": "undisturbed", "told": ""}
HEADER = Header(
    machine={"host": "bench", "processor": "a processor", "cores": 4, "memory": 2**34},
    versions={"python": "3.11", "gridrpc": "0.1.0"},
    options={"step": 3.0, "probability": 0.5, "duration": 60.0, "solver": "OpenBLAS 0.3.21"},
    started="2031-05-04T10:30:00+00:00",
    seed=1,
)


def call_of(client: int, submit: float, seconds: float, **more: object) -> ServedCall:
    """It is accepted after 2 % of its time, begins after 10 %, and runs for 80 %."""
    values: dict[str, object] = {
        "client": client,
        "submit": submit,
        "enqueue": submit + 0.02 * seconds,
        "dequeue": submit + 0.1 * seconds,
        "returned": submit + 0.9 * seconds,
        "complete": submit + seconds,
    }
    return ServedCall(**(values | more))  # type: ignore[arg-type]


def sample_of(at: float, busy: float = 0.5, runnable: float = 2.0) -> ServerSample:
    return ServerSample(
        at=at, seconds=5.0, busy=busy, server=0.8 * busy, runnable=runnable, memory=40 << 20
    )


def case_of(calls: Sequence[ServedCall], **more: object) -> ClientsCase:
    values: dict[str, object] = {
        "policy": "all",
        "n": 600,
        "clients": 1 + max((call.client for call in calls), default=0),
        "at": "2031-05-04T10:31:00+00:00",
        "status": "done" if all(call.ending == "ok" for call in calls) else "failed",
        "step": 3.0,
        "seconds": 60.0,
        "cores": 4,
        "calls": tuple(calls),
        "samples": tuple(sample_of(5.0 * part) for part in range(1, 13)),
        "load": QUIET,
    }
    return ClientsCase(**(values | more))  # type: ignore[arg-type]


def steady(policy: CorePolicy, n: int, clients: int, gflops: float, **more: object) -> ClientsCase:
    """Each client makes twelve calls of the same performance, one after the other if they take
    longer than a step of 5 s."""
    seconds = operations(n) / (gflops * 1e9)
    calls = [
        call_of(client, at, seconds)
        for client in range(clients)
        for at in (max(5.0, 1.01 * seconds) * step + 0.01 * client for step in range(12))
    ]
    return case_of(calls, policy=policy, n=n, clients=clients, **more)


def write_folder(folder: Path, cases: Sequence[ClientsCase]) -> Path:
    file = CLIENTS_FORM.open(folder, HEADER, fresh=True)
    for one in cases:
        file.add(one)
    file.close()
    return folder
