"""A Python client that calls one function again and again, as `load calls` does from C.

    python server_load.py KIND ADDRESS SECONDS [MODEL SIZE]
    python server_load.py idle ADDRESS SECONDS COUNT

KIND is gridrpc, pyro, or http, json (HTTP without binary tensors) or grpc of the Open Inference
Protocol by tritonclient, with a tensor of SIZE bytes. `idle` is COUNT clients, each with a
connection of its own: it prints `ready` when each has made a call. Then each makes one every
SECONDS, until the input ends. This runs as a script, in Pythons that have next to nothing
installed.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Callable
from typing import Any


def _gridrpc(address: str) -> Callable[[], object]:
    import gridrpc

    grid = gridrpc.Grid(servers=[address])
    call: Callable[[], object] = grid.function("gridbench_server/null")
    return call


def _pyro(address: str) -> Callable[[], object]:
    import Pyro5.api

    null: Callable[[], object] = Pyro5.api.Proxy(address).null
    return null


def _triton(kind: str, address: str, model: str, size: int) -> Callable[[], object]:
    import importlib

    import numpy as np

    package: Any = importlib.import_module(f"tritonclient.{'grpc' if kind == 'grpc' else 'http'}")
    client = package.InferenceServerClient(address)
    numbers = np.arange(size // 8, dtype=float)
    tensor = package.InferInput("x", [len(numbers)], "FP64")
    outputs = None
    if kind == "json":
        tensor.set_data_from_numpy(numbers, binary_data=False)
        outputs = [package.InferRequestedOutput("y", binary_data=False)]
    else:
        tensor.set_data_from_numpy(numbers)

    def call() -> Any:
        return client.infer(model, [tensor], outputs=outputs)

    twice = call().as_numpy("y")
    if not np.array_equal(twice.reshape(-1), 2 * numbers):
        raise RuntimeError("the result is wrong")
    return call


def idle(address: str, seconds: float, count: int) -> None:
    """Connect, and stay."""
    nulls = []
    for _ in range(count):
        nulls.append(_gridrpc(address))
        nulls[-1]()
    print("ready", flush=True)
    turn = 0
    while not select.select([sys.stdin], [], [], seconds / len(nulls))[0]:
        nulls[turn % len(nulls)]()
        turn += 1


def main(kind: str, address: str, seconds: str, *more: str) -> None:
    """Connect, call once, wait for a line, call for so long, and print the result."""
    if kind == "idle":
        idle(address, float(seconds), int(more[0]))
        return
    if more:
        call = _triton(kind, address, more[0], int(more[1]))
    else:
        call = {"gridrpc": _gridrpc, "pyro": _pyro}[kind](address)
    call()
    print("ready", flush=True)
    sys.stdin.readline()
    done, longest, end = 0, 0.0, 0.0
    begin = time.perf_counter()
    while end < float(seconds):
        before = end
        call()
        end = time.perf_counter() - begin
        longest = max(longest, end - before)
        done += 1
    print(json.dumps({"calls": done, "failed": 0, "seconds": end, "longest": longest}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
