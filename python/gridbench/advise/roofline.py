"""What tasks that compute at once share on one machine: a roofline of its processors and memory."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.quantities import MOST_CORES, parse_bytes, parse_size
from gridbench.workload.body import SLEEP
from gridbench.workload.numbers import shown

MOST_TRAFFIC = float(1 << 60)
"""Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """What a task needs of a machine, and what the machine has. InputError for what makes no sense.

    Work takes as long as its computing takes on the processors, or as the data that it moves takes
    through the memory, whichever is longer.
    """

    threads: int = 1
    """Of each task."""
    traffic: float = 0.0
    """Bytes that the whole work moves between processors and memory."""
    processors: int = 0
    """That all threads share; 0: each has one of its own."""
    bandwidth: float = 0.0
    """Bytes per second of the machine's memory, for all processors together; 0: not known."""

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= MOST_CORES:
            raise InputError(f"the number of threads must be from 1 to {MOST_CORES:,}")
        if not 0 <= self.traffic <= MOST_TRAFFIC:
            raise InputError(f"memory traffic of {as_given(self.traffic, 'bytes')} makes no sense")

    def at_full_speed(self, processors: int) -> int:
        """How many tasks can run at once on so many processors with none slower for the others; at
        least one, whose threads share processors if there are too few."""
        return max(1, processors // self.threads)

    def by_processors(self, count: int) -> float:
        """How many times as long `count` tasks at once take as one that has a processor for each of
        its threads."""
        return max(1.0, count * self.threads / self.processors) if self.processors else 1.0

    def by_memory(self, seconds: float, count: int) -> float:
        """The same of the time that their data takes through the memory, if the whole work takes
        `seconds`, one task after the other."""
        return count * self.traffic / (seconds * self.bandwidth) if self.bandwidth else 0.0

    def factor(self, seconds: float, count: int) -> float:
        """The longer of both."""
        return max(self.by_processors(count), self.by_memory(seconds, count))


def parse_roofline(
    *, threads: int | None, traffic: str | None, bandwidth: str | None, body: str
) -> tuple[Roofline, float | None]:
    """What tasks need of the machine, and the bandwidth that was given, in bytes per second, if one
    was. InputError for what does not go together, or not with work of that body."""
    if body == SLEEP:
        for option, value in (("--threads-per-task", threads), ("--memory-traffic", traffic)):
            if value is not None:
                raise InputError(
                    f"{option} is for work that computes, and with --task {SLEEP} it waits",
                    remedy="leave one of them out",
                )
    if bandwidth is not None and traffic is None:
        raise InputError(
            "--memory-bandwidth is for work that moves data through memory",
            remedy="add --memory-traffic, such as 20GB",
        )
    return (
        Roofline(
            threads=threads or 1,
            traffic=0.0 if traffic is None else _traffic("--memory-traffic", traffic),
        ),
        None if bandwidth is None else _bandwidth("--memory-bandwidth", bandwidth),
    )


def _traffic(option: str, text: str) -> float:
    return _above_0(option, text, parse_bytes(option, text, MOST_TRAFFIC, "an exabyte"))


def _bandwidth(option: str, text: str) -> float:
    """Bytes per second, from `20GB/s` or `20GB`."""
    return _above_0(option, text, parse_size(option, text.removesuffix("/s")))


def _above_0(option: str, text: str, value: int) -> float:
    if not value:
        raise InputError(
            f"{option}: `{shown(text)}` is not above 0", remedy="give a size such as 20GB"
        )
    return float(value)
