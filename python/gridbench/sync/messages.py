"""What the client and the crews of hosts send each other. Times are in nanoseconds of the monotonic
clock of the crew's host."""

from __future__ import annotations

from dataclasses import dataclass, field

from gridbench.sync.record import HostUse, Phase, Start, Status


@dataclass(frozen=True, slots=True)
class CrewFacts:
    """A host."""

    host: str
    """Its own name of itself."""
    cores: int
    python: str
    """The version."""


@dataclass(frozen=True, slots=True)
class Order:
    """A task to be prepared."""

    worker: int
    program: str
    """Its file, its name on PATH, or gridbench.sync.tasks.PROGRAM."""
    arguments: tuple[str, ...]
    directory: str
    """That it runs in; it is made if it is not there."""
    environment: dict[str, str] = field(default_factory=dict)
    """On top of the crew's."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Whether a task waits."""

    worker: int
    start: Start
    why_not: str = ""
    """Empty: it waits."""


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task ended."""

    worker: int
    start: Start
    status: Status
    began: int | None = None
    ended: int | None = None
    exit: int | None = None
    why: str = ""
    user: float = 0.0
    system: float = 0.0
    memory: int = 0
    phases: tuple[Phase, ...] = ()
    output: bytes = b""
    """What it printed, its end if that is long."""
    errors: bytes = b""


@dataclass(frozen=True, slots=True)
class Done:
    """A round on one host."""

    late: int
    """Nanoseconds by which the order came after the instant."""
    outcomes: tuple[TaskOutcome, ...]
    use: HostUse | None
