"""Cases of remote Linpack made by hand, of clients, servers and links with known constants."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gridbench.jsonl_store import Header
from gridbench.linpack.record import (
    FORM,
    LOCAL,
    LinpackCase,
    PlannedLinpackCase,
    Solve,
    operations,
    transferred,
)

DISTURBED = {"judgement": "disturbed", "others": 1.9}
QUIET = {"judgement": "undisturbed", "others": 0.0}
SIZES = (100, 200, 400, 800, 1600)


@dataclass(frozen=True, slots=True)
class Constants:
    """What a call takes."""

    comm0: float
    bandwidth: float
    comp0: float
    speed: float

    def seconds(self, n: int) -> tuple[float, float]:
        """Of communication and computation."""
        communication = self.comm0 + transferred(n) / self.bandwidth if self.bandwidth else 0.0
        return communication, self.comp0 + operations(n) / self.speed


#: Of a server over a fast path and a slow one, and of a client that solves itself.
SERVER = {
    "socket": Constants(15e-4, 2e9, 2e-5, 10e9),
    "100mbit+10ms": Constants(12e-3, 12e6, 2e-5, 10e9),
}
FAST = Constants(0.0, 0.0, 1e-5, 10e9)
SLOW = Constants(0.0, 0.0, 1e-4, 1e9)


def case_of(path: str, n: int, times: tuple[float, float], **more: object) -> LinpackCase:
    """A case that was done, of a client in C at full speed."""
    communication, computation = times
    solve = Solve(
        seconds=communication + computation, calculation=computation, info=0, residual=0.01
    )
    planned = PlannedLinpackCase(client="C", path=path, n=n, speed=1.0, repeat=0)
    values: dict[str, object] = {
        "at": "2031-05-04T10:31:00+00:00",
        "status": "done",
        "solves": (solve, solve),
        "load": QUIET,
    }
    return planned.recorded_as(LinpackCase, **{**values, **more})


def measured(
    paths: Mapping[str, Constants] = SERVER,
    *,
    sizes: Sequence[int] = SIZES,
    repeats: int = 3,
    spread: float = 0.01,
) -> list[LinpackCase]:
    """All sizes over all paths, by a client at full speed and one with a tenth of a processor.
    Repeats differ by `spread`."""
    draw = random.Random(1)
    found = []
    for speed, local in ((1.0, FAST), (0.1, SLOW)):
        limit = "" if speed == 1.0 else "control group"
        for path, constants in ({LOCAL: local} | dict(paths)).items():
            for n in sizes:
                for repeat in range(repeats):
                    factor = 1 + spread * draw.uniform(-1, 1)
                    communication, computation = constants.seconds(n)
                    times = communication * factor, computation * factor
                    own = {"speed": speed, "repeat": repeat, "limit": limit}
                    found.append(case_of(path, n, times, **own))
    return found


def header_of(**options: object) -> Header:
    """Of a folder."""
    return Header(
        machine={
            "host": "client",
            "processor": "a processor",
            "cores": 2,
            "cores_usable": 2,
            "memory": 2**34,
        },
        versions={"python": "3.11", "gridrpc": "0.1.0"},
        options={"threads": 1, "calls": 3, "solver": "OpenBLAS 0.3.21"} | options,
        started="2031-05-04T10:30:00+00:00",
        seed=1,
    )


def write_folder(folder: Path, found: Sequence[LinpackCase]) -> Path:
    """As `gridbench linpack` writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = FORM.open(folder, header_of(), fresh=True)
    for one in found:
        file.add(one)
    file.close()
    return folder
