"""The results of a scenario: one line per case and engine, written as soon as it is done.

A folder of results holds `cases.jsonl` with a `CaseResult` in each line, `report.html`, and
`runs/CASE/ENGINE/`, each as `gridbench run` leaves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from gridbench.engines.names import current_name
from gridbench.jsonl_store import Header, PlannedCase, RecordFile, ResultsForm

CASES = "cases.jsonl"
RUNS = "runs"

Status = Literal["done", "skipped", "failed", "invalid"]
Transport = Literal["one host", "links"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultKey(PlannedCase):
    """A case on one engine in one round."""

    scenario: int
    """1 to 6."""
    case: str
    """The case's key: two cases of a scenario never share one."""
    engine: str
    round: int = 0
    """From 0, if cases are repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult(ResultKey):
    """The result of one case on one engine. Times are in seconds, sizes in bytes."""

    cores: int
    tasks: int
    sleep_s: float
    """Mean time of a task, scaled."""
    stddev_s: float = 0.0
    """Standard deviation of these times, scaled."""
    time_scale: float
    bytes_in: int
    """Data of each task."""
    bytes_shared: int
    bytes_out: int
    """Output of each task."""
    transport: Transport = "one host"
    """Whether workers were beside the client, or behind links or on servers of a grid."""
    nodes: int = 1
    """Places of the workers; each has the shared data once at most."""
    link_rate: float | None = None
    """Bits per second of each link, the client's included; unknown for servers."""
    start: Literal["cold", "warm"] = "cold"
    status: Status
    reason: str = ""
    """Why it is not `done`: one line, with a kind of reason and details behind a colon."""
    again: bool = False
    """It failed, perhaps because of other programs or an interruption: resuming repeats it."""
    total_s: float | None = None
    """From t = 0 until the client had the last result; also of invalid runs."""
    ideal_s: float | None = None
    """The time of the same tasks on as many cores without overhead."""
    figures: dict[str, float] = field(default_factory=dict)
    """See `figures_of` (figures.py); unknown figures are missing."""
    expected_s: float = 0.0
    """The expected time, with the start and the end of its workers."""
    took_s: float = 0.0
    """The real time."""
    load: dict[str, float] = field(default_factory=dict)
    """Of the machine meanwhile, as shares of all its processors."""
    at: str = ""
    """When it ended, ISO 8601."""
    folder: Path | None = None
    """Of its run, relative to the folder of results; `read_cases` gives the full path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", current_name(self.engine))

    @property
    def reason_kind(self) -> str:
        """The kind of reason, without the details that differ from run to run."""
        return self.reason.partition(":")[0]

    @property
    def overhead_s(self) -> float | None:
        """`total_s` less `ideal_s`: the cost of going remote."""
        return None if self.total_s is None or self.ideal_s is None else self.total_s - self.ideal_s


FORM = ResultsForm(
    kind="gridbench scenario",
    of="results of a scenario",
    noun="case",
    record=CaseResult,
    file=CASES,
    command="gridbench scenario",
)


class ScenarioFiles:
    """The files of several scenarios, each in its folder, as one."""

    def __init__(self, files: Mapping[int, RecordFile[CaseResult]], locks: ExitStack) -> None:
        """`locks`: of their folders, released with the files."""
        self._files = files
        self._locks = locks
        self.records = [one for file in files.values() for one in file.records]

    def add(self, record: CaseResult) -> None:
        """Append to the file of its scenario. A case that is skipped keeps an earlier result."""
        if record.status == "skipped":
            before = {one.identity: one for one in self.records}.get(record.identity)
            if before and (before.status != "skipped" or before.reason == record.reason):
                return
        self.records.append(record)
        self._files[record.scenario].add(record)

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._locks.close()

    def discard(self) -> None:
        """Remove all files."""
        for file in self._files.values():
            file.discard()


def folders_of_results(path: Path) -> list[Path]:
    """The folders of results in `path`: itself, or one for each scenario; else none."""
    if (path / CASES).is_file():
        return [path]
    return sorted(found.parent for found in path.glob(f"scenario-*/{CASES}"))


def read_cases(folder: Path) -> list[CaseResult]:
    """The latest result of each case in a folder; the folders of their runs are full paths.

    They can be read while the scenario runs. InputError if there are none, or if the file is
    damaged.
    """
    return read_results(folder)[1]


def read_results(folder: Path) -> tuple[Header, list[CaseResult]]:
    """The same, with their header."""
    header, cases = FORM.read(folder)
    return header, [
        replace(case, folder=None if case.folder is None else folder / case.folder)
        for case in cases
    ]
