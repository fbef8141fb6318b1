"""What a client of a cluster is to do, as it is told to its process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Node:
    """A host."""

    name: str
    address: str
    inside: list[str]
    """What stands before a command that is to run there."""
    home: str


@dataclass(frozen=True, slots=True)
class Job:
    """A cluster, and what to measure on it."""

    client: str
    """The address of this machine on the network."""
    ssh: list[str]
    """The command that logs in to a host by its name."""
    nodes: list[Node]
    workers: int
    """Of each host."""
    size: int
    """Bytes of a large argument, and of the data that all get."""
    calls: int
    tasks: int
    seconds: float
    """That each task sleeps."""
    only_shared: bool = False
    """Only the data that all get is of interest."""

    @property
    def all_workers(self) -> int:
        """Of all hosts."""
        return self.workers * len(self.nodes)

    def save(self, file: Path) -> None:
        """For `read`, in another process."""
        file.write_text(json.dumps(asdict(self)), encoding="utf-8")


def read(file: str) -> Job:
    """What `save` has written."""
    values = json.loads(Path(file).read_text(encoding="utf-8"))
    values["nodes"] = [Node(**node) for node in values["nodes"]]
    return Job(**values)
