"""The results of a scenario: one line per case and engine, written as soon as it is done.

A folder of results holds `cases.jsonl`, of which a line is a `CaseResult`, `report.html`, and
`runs/CASE/ENGINE/`, each as `gridbench run` leaves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from gridbench.engines.names import current_name
from gridbench.errors import InputError
from gridbench.jsonl_store import Form, Header, RecordFile, latest, load_records, open_records

CASES = "cases.jsonl"
RUNS = "runs"
REPORT = "report.html"

Status = Literal["done", "skipped", "failed", "invalid"]
Transport = Literal["one host", "links"]
Identity = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of one case on one engine. Times are in seconds, sizes in bytes."""

    scenario: int
    """1 to 6."""
    case: str
    """The case's key: two cases of a scenario never share one."""
    engine: str
    round: int = 0
    """From 0, if cases are repeated."""
    cores: int
    tasks: int
    sleep_s: float
    """Mean time that a task was to sleep, scaled."""
    stddev_s: float = 0.0
    """Standard deviation of these times, scaled."""
    time_scale: float
    bytes_in: int
    """Data of each task."""
    bytes_shared: int
    bytes_out: int
    """Output of each task."""
    transport: Transport = "one host"
    """Whether workers were beside the client; or behind shaped links, or on servers of a grid."""
    nodes: int = 1
    """Places that workers were spread over; each has the shared data once at most."""
    link_rate: float | None = None
    """Bits per second of each link, one of them the client's; not known of servers."""
    start: Literal["cold", "warm"] = "cold"
    status: Status
    reason: str = ""
    """Why it is not `done`: one line; what it is a case of, and figures behind a colon."""
    again: bool = False
    """It failed, and the reason may be other programs or an interruption: it is tried again when
    the scenario goes on."""
    total_s: float | None = None
    """From t = 0 until the last result was in the client's hand; known also of invalid runs."""
    ideal_s: float | None = None
    """The same tasks on as many cores with no overhead at all."""
    figures: dict[str, float] = field(default_factory=dict)
    """What the analysis found (see `gridbench.scenario.figures`); what is not known is left out."""
    expected_s: float = 0.0
    """How long it was expected to take, the start and the end of its workers included."""
    took_s: float = 0.0
    """How long it really took."""
    load: dict[str, float] = field(default_factory=dict)
    """What the machine did meanwhile, as shares of all its processors."""
    at: str = ""
    """When it ended, ISO 8601."""
    folder: Path | None = None
    """Where its run lies, seen from the folder of the results; `read_cases` gives the full path."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "engine", current_name(self.engine))

    @property
    def identity(self) -> Identity:
        """What it is a result of: a later one takes the place of an earlier one."""
        return self.case, self.engine, self.round

    @property
    def reason_kind(self) -> str:
        """`reason` without the figures, which differ from run to run: they stand behind a colon."""
        return self.reason.partition(":")[0]

    @property
    def overhead_s(self) -> float | None:
        """`total_s` less `ideal_s`: what it cost to go remote."""
        return None if self.total_s is None or self.ideal_s is None else self.total_s - self.ideal_s


FORM = Form(kind="gridbench scenario", of="a scenario", noun="case", record=CaseResult)


class CasesFile(RecordFile[CaseResult]):
    """The file of a scenario's results, open to be added to."""

    def current(self) -> list[CaseResult]:
        """The latest result of each case, in the order in which they were first tried."""
        return latest(self.records)


def open_cases(folder: Path, header: Header, *, fresh: bool) -> CasesFile:
    """The results in `folder`, or an empty file if there are none or `fresh`.

    Raises InputError if the folder cannot be used, if the file is damaged, or if it is of another
    machine, version, or choice of options.
    """
    path = folder / CASES
    header, cases = open_records(path, FORM, header, fresh=fresh)
    return CasesFile(path, header, cases)


def folders_of_results(path: Path) -> list[Path]:
    """The folders of results that `path` stands for: itself, or those of several scenarios in it.

    None if it is something else.
    """
    if (path / CASES).is_file():
        return [path]
    return sorted(found.parent for found in path.glob(f"scenario-*/{CASES}"))


def read_cases(folder: Path) -> list[CaseResult]:
    """The latest result of each case in a folder of results; their folders are full paths.

    It can be read while the scenario still runs. Raises InputError if there are none, or if the
    file is damaged.
    """
    return read_results(folder)[1]


def read_results(folder: Path) -> tuple[Header, list[CaseResult]]:
    """As `read_cases`, with what all of them have in common."""
    if not (folder / CASES).is_file():
        raise InputError(
            f"holds no results of a scenario: there is no {CASES}",
            file=folder,
            remedy="give the folder that `gridbench scenario` has written",
        )
    header, cases = load_records(folder / CASES, FORM)
    return header, [
        replace(case, folder=None if case.folder is None else folder / case.folder)
        for case in latest(cases)
    ]
