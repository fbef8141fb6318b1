"""Synchronised rounds made by hand, for the tests of sentences about them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gridbench.jsonl_store import Header
from gridbench.sync.record import FORM, HostUse, Latency, Phase, Round, Sample, Status, TaskRun

EVIL = "<script>document.title='broken'</script><b>bold</b>"
DISTURBED = {"judgement": "disturbed", "told": "disturbed: other programs used 1.9 processors"}


def header_of(**options: object) -> Header:
    return Header(
        machine={"host": "client", "processor": "a processor", "cores": 2, "memory": 2**34},
        versions={"python": "3.11", "gridrpc": "0.1.0"},
        options={"task": "metadata", "workers": [2, 4]} | options,
        started="2031-05-04T10:30:00+00:00",
        seed=1,
    )


def task_of(
    worker: int,
    began: float | None,
    ended: float | None,
    *,
    host: str = "node0",
    status: Status = "ok",
    phases: Sequence[Phase] = (),
    **more: object,
) -> TaskRun:
    return TaskRun(
        worker=worker,
        host=host,
        rank=worker,
        status=status,
        began=began,
        ended=ended,
        phases=tuple(phases),
        **more,  # type: ignore[arg-type]
    )


def round_of(tasks: Sequence[TaskRun], **more: object) -> Round:
    values: dict[str, object] = {
        "workers": len(tasks),
        "parameter": "",
        "repeat": 0,
        "start": "entry",
        "at": "2031-05-04T10:31:00+00:00",
        "status": "done" if all(task.status == "ok" for task in tasks) else "failed",
        "prepared_in": 0.25,
        "tasks": tuple(tasks),
    }
    return Round(**(values | more))  # type: ignore[arg-type]


def four() -> Round:
    """Of four tasks on two hosts; all answers can be worked out by hand.

    They begin at 0, 1, 2 and 3 ms and end at 10, 11, 12 and 8 ms: the skew is 3 ms, the span 12 ms,
    all run from 3 to 8 ms, and together they run for 10 + 10 + 10 + 5 = 35 ms.
    """
    ends = [(0.0, 0.010), (0.001, 0.011), (0.002, 0.012), (0.003, 0.008)]
    latencies = [0.1, 0.2, 0.3, 0.4]
    return round_of(
        [
            task_of(
                number,
                *times,
                host=f"node{number % 2}",
                clock_error=0.0001 * (number + 1),
                phases=[
                    Phase(
                        name="mkdir",
                        seconds=0.002 * (number + 1),
                        operations=100,
                        latency=Latency(p50=p50, p90=2 * p50, p99=3 * p50, max=4 * p50),
                    ),
                    Phase(name="write", seconds=0.004 / (number + 1), bytes=1_000_000),
                ],
            )
            for number, (times, p50) in enumerate(zip(ends, latencies, strict=True))
        ]
    )


def sample_of(at: float, seconds: float, *, busy: float = 1.5, share: float = 0.9) -> Sample:
    return Sample(
        at=at,
        seconds=seconds,
        processors=busy,
        waiting=0.3,
        disk_busy=share,
        disk="vda",
        disk_read=1e6,
        disk_written=2e8,
        network_in=1e5,
        network_out=2e5,
        loopback=3e6,
        dirty=300 * 2**20,
        available=8 * 2**30,
        pressure={"cpu": 0.4, "io": 0.7},
        watched={"gfmd": 0.8},
        watched_busiest={"gfmd": 0.8},
    )


def sweep(
    workers: Sequence[int] = (1, 2, 4, 7, 14, 28, 56),
    parameters: Sequence[str] = ("4k", "64k", "1m"),
    repeats: int = 3,
    hosts: int = 8,
    *,
    samples: int = 20,
    seed: int = 1,
) -> list[Round]:
    """Rounds as of metadata operations on a server that is saturated from 14 workers on; one worker
    is slow, one round was disturbed, and one task failed."""
    draw = random.Random(seed)
    found = []
    for count in workers:
        for place, parameter in enumerate(parameters):
            for repeat in range(repeats):
                tasks = []
                each = 20_000 // count
                rate = 700 / (1 + place) / max(1.0, count / 14)
                used = min(hosts, count)
                for number in range(count):
                    host = f"node{number % used}"
                    slow = 1.6 if number == 5 and count > 8 else 1.0
                    seconds = each / rate * draw.uniform(0.97, 1.03) * slow
                    began = draw.uniform(0.0002, 0.0006)
                    p50 = 1 / rate
                    tasks.append(
                        task_of(
                            number,
                            began,
                            began + seconds + 0.004,
                            host=host,
                            clock_error=0.00002,
                            user=0.2,
                            system=0.4,
                            memory=12 * 2**20,
                            output=f"output/{count}-{parameter}-{repeat}/{number}",
                            phases=[
                                Phase(
                                    name="mkdir",
                                    seconds=seconds * 0.7,
                                    operations=each,
                                    latency=Latency(
                                        p50=p50, p90=2 * p50, p99=5 * p50, max=30 * p50
                                    ),
                                ),
                                Phase(name="write", seconds=seconds * 0.3, bytes=each * 4096),
                            ],
                        )
                    )
                span = max(task.ended or 0.0 for task in tasks)
                step = span / max(1, samples)
                uses = tuple(
                    HostUse(
                        host=f"node{number}",
                        cores=2,
                        memory=2**33,
                        whole=sample_of(span, span),
                        during=tuple(
                            sample_of(
                                step * (look + 1),
                                step,
                                busy=draw.uniform(1.0, 2.0),
                                share=draw.uniform(0.7, 1.0),
                            )
                            for look in range(samples)
                        ),
                    )
                    for number in range(used)
                )
                found.append(round_of(tasks, parameter=parameter, repeat=repeat, hosts=uses))
    if len(found) > 3:
        found[1] = replace(found[1], load=DISTURBED)
        tasks = list(found[-1].tasks)
        tasks[-1] = replace(tasks[-1], status="failed", exit=1, why="no space left on device")
        found[-1] = replace(found[-1], status="failed", tasks=tuple(tasks))
    return found


def write_folder(folder: Path, rounds: Sequence[Round], **options: object) -> Path:
    """A folder of results."""
    file = FORM.open(folder, header_of(**options), fresh=True)
    for one in rounds:
        file.add(one)
    file.close()
    return folder
