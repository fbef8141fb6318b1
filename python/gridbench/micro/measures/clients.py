"""Null calls from several client processes at once, each with an engine of its own.

    python -m gridbench.micro.measures.clients ARGUMENTS

is one of them: it writes an empty list when it is ready, waits for a line, makes calls for a while,
and writes how many it made and how many seconds that took; or a text that says what went wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from gridbench.bench.client import Client, Found, NotStarted
from gridbench.process.launch import PYTHON


def rate_of_clients(client: Client, clients: int) -> Found:
    """`per_second`: null calls submitted singly, of all clients together."""
    arguments = [client.name, client.place, client.workers, client.patience, client.budget]
    processes = [
        subprocess.Popen(
            [*PYTHON, "-m", "gridbench.micro.measures.clients", json.dumps(arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(clients)
    ]  # fmt: skip
    try:
        for process in processes:
            _answer(process)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        rates = [count / passed for count, passed in map(_answer, processes)]
        # They end together, so that none of them measures while others close.
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in processes:
            process.wait(client.patience)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return Found({"per_second": sum(rates), "slowest": min(rates), "fastest": max(rates)})


def _answer(process: subprocess.Popen[str]) -> list[float]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise NotStarted(f"a client ended with status {process.wait()}")
    answer: list[float] | str = json.loads(line)
    if isinstance(answer, str):
        raise NotStarted(answer)
    return answer


def main(arguments: str) -> None:
    """One of the clients."""
    # What the engine prints is not the answer, and what it reads, as Open MPI's daemon does, is not
    # for it. Descriptors made by `dup` are not inherited.
    answers, orders = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0))
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    name, place, workers, patience, seconds = json.loads(arguments)
    client = Client(name=name, place=place, workers=workers, patience=patience, budget=seconds)
    try:
        from gridbench.micro.measures.calls import batch_size, submitted

        engine = client.engine
        # Small batches, so that all clients make calls until the end of the time.
        batch = batch_size(engine, seconds / 10, most=20_000)
        print([], file=answers, flush=True)
        orders.readline()
        count, passed = 0, 0.0
        while passed < seconds:
            passed += submitted(engine, batch)
            count += batch
        print([count, passed], file=answers, flush=True)
        orders.read()
    except Exception as error:  # an engine is foreign code: it can fail in any way
        print(json.dumps(f"one of the clients: {error}"), file=answers, flush=True)
    finally:
        client.close()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
