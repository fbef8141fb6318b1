"""The grids of the six scenarios, as the report or its slides have them, and cases as workloads.

| | name | question | varied |
|---|---|---|---|
| 1 | shared | cores against shared data | cores, shared data |
| 2 | task-time | task time against data | task time, input and output of the same size |
| 3 | startup | start-up cost | tasks |
| 4 | input | delay by input data | cores, blocks of tasks, input |
| 5 | output | delay by output data | cores, blocks of tasks, output |
| 6 | split | work split into n tasks | n, total work, input |

Sizes are the same in all: 0, 10 KB to 100 MB in steps of ten, and 1 GB in the slides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gridbench.errors import InputError
from gridbench.formats import as_given, compact_size, counted
from gridbench.quantities import CORES, FLAG, GB, KB, MB, SIZE, ListOf, exact_size
from gridbench.schema import option
from gridbench.selection import parse_selection
from gridbench.workload.body import SLEEP

if TYPE_CHECKING:
    from gridbench.workload.workload import Seconds, Setup

SCENARIOS = {
    1: "shared",
    2: "task-time",
    3: "startup",
    4: "input",
    5: "output",
    6: "split",
}
"""The names of the scenarios on the command line."""
_SIZES = (0, 10 * KB, 100 * KB, MB, 10 * MB, 100 * MB)
_SMALL_SIZES = (0, 10 * KB, 100 * KB, MB)
_CORES = (1, 10, 50, 100, 200, 400)
_V = TypeVar("_V", int, float)
_SPLITS = (1, 10, 25, 50, 100, 200, 400, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioCase:
    """One row of a grid: a workload and the cores it runs on. Sizes are in bytes."""

    scenario: int
    cores: int
    tasks: int
    sleep: float
    """Seconds of each task, not scaled."""
    bytes_in: int = 0
    bytes_shared: int = 0
    bytes_out: int = 0

    @property
    def key(self) -> str:
        """Its name in the scenario, and that of its folder."""
        name = f"{self.cores}-cores-{self.tasks}-tasks-{self.sleep:g}s"
        for what, size in (
            ("in", self.bytes_in),
            ("shared", self.bytes_shared),
            ("out", self.bytes_out),
        ):
            name += f"-{what}-{exact_size(size)}" if size else ""
        return name

    def describe(self) -> str:
        """The case in words."""
        parts = [
            counted(self.cores, "core"),
            f"{counted(self.tasks, 'task')} of {as_given(self.sleep)}",
        ]
        for what, size in (
            ("in", self.bytes_in),
            ("shared", self.bytes_shared),
            ("out", self.bytes_out),
        ):
            parts += [f"{compact_size(size)} {what}"] if size else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridChoice:
    """The cases to take from the grids."""

    cores: Sequence[int] = option(
        "--cores",
        ListOf(CORES),
        metavar="LIST",
        help="Instead of the grid's, such as 1,10,100.",
        default=(),
    )
    sizes: Sequence[int] = option(
        "--sizes",
        ListOf(SIZE),
        metavar="LIST",
        help="Instead of the grid's, such as 0,10KB,1MB.",
        default=(),
    )
    quick: bool = option("--quick", FLAG, help="Fewer and shorter measurements.", default=False)
    slides: bool = option(
        "--slides/--report",
        FLAG,
        help="The grids as the slides have them, or as the report does.",
        default=False,
        default_text="--report",
    )
    split_data: bool = option(
        "--split-data",
        FLAG,
        help="Scenario 6: divide the input of the whole job among its tasks.",
        default=False,
        record="split_data",
    )
    optional: bool = option(
        "--optional", FLAG, help="Scenario 1: two more cases, of 120 s.", default=False
    )


@dataclass(frozen=True, slots=True)
class _Axes:
    """The values that a grid is the product of, as chosen."""

    choice: GridChoice

    def cores(self, *values: int) -> Sequence[int]:
        return self.choice.cores or self.some(*values)

    def sizes(self, values: Sequence[int]) -> Sequence[int]:
        if self.choice.sizes:
            return self.choice.sizes
        more = self.choice.slides and values is _SIZES
        return self.some(*values, *([GB] if more else []))

    def some(self, *values: _V) -> Sequence[_V]:
        return values[::2] if self.choice.quick else values


def cases_of(scenario: int, choice: GridChoice) -> list[ScenarioCase]:
    """The cases of a scenario, in the order of its grid. InputError for an unknown scenario."""
    parse_scenarios([str(scenario)])
    return list(dict.fromkeys(_GRIDS[scenario](_Axes(choice))))


def parse_scenarios(words: Sequence[str]) -> list[int]:
    """Numbers of scenarios, as on the command line. InputError for an unknown scenario."""
    return parse_selection(words, SCENARIOS, "scenario")


def _first(axes: _Axes) -> Iterator[ScenarioCase]:
    for cores, size in product(axes.cores(*_CORES), axes.sizes(_SIZES)):
        yield ScenarioCase(scenario=1, cores=cores, tasks=cores, sleep=30, bytes_shared=size)
    if axes.choice.optional:
        for size in (10 * MB, 100 * MB):
            yield ScenarioCase(scenario=1, cores=100, tasks=100, sleep=120, bytes_shared=size)


def _second(axes: _Axes) -> Iterator[ScenarioCase]:
    tasks = 100 if axes.choice.slides else 200
    for cores, sleep, size in product(
        axes.cores(100), axes.some(0, 0.1, 1, 10, 100), axes.sizes(_SIZES)
    ):
        yield ScenarioCase(
            scenario=2, cores=cores, tasks=tasks, sleep=sleep, bytes_in=size, bytes_out=size
        )


def _third(axes: _Axes) -> Iterator[ScenarioCase]:
    counts = (1, 10, 100, 200, 300, 500, 1000) if axes.choice.slides else (1, 10, 100, 1000, 10000)
    for cores, tasks in product(axes.cores(100), axes.some(*counts)):
        yield ScenarioCase(scenario=3, cores=cores, tasks=tasks, sleep=30)


def _in_blocks(
    axes: _Axes, make: Callable[[ScenarioCase, int], ScenarioCase], scenario: int
) -> Iterator[ScenarioCase]:
    cores_axis = (100, 200, 400) if axes.choice.slides else _CORES
    for cores, blocks, size in product(
        axes.cores(*cores_axis), axes.some(1, 2, 3), axes.sizes(_SIZES)
    ):
        case = ScenarioCase(scenario=scenario, cores=cores, tasks=cores * blocks, sleep=30)
        yield make(case, size)


def _fourth(axes: _Axes) -> Iterator[ScenarioCase]:
    return _in_blocks(axes, lambda case, size: replace(case, bytes_in=size), 4)


def _fifth(axes: _Axes) -> Iterator[ScenarioCase]:
    return _in_blocks(axes, lambda case, size: replace(case, bytes_out=size), 5)


def _sixth(axes: _Axes) -> Iterator[ScenarioCase]:
    # As the slides list them: 10 s are not split into 1,000 tasks.
    for work, splits in ((100.0, _SPLITS), (10.0, _SPLITS[:-1])):
        for cores, tasks, size in product(
            axes.cores(100), axes.some(*splits), axes.sizes(_SMALL_SIZES)
        ):
            own = round(size / tasks) if axes.choice.split_data else size
            yield ScenarioCase(
                scenario=6, cores=cores, tasks=tasks, sleep=work / tasks, bytes_in=own
            )


_GRIDS: dict[int, Callable[[_Axes], Iterator[ScenarioCase]]] = {
    1: _first,
    2: _second,
    3: _third,
    4: _fourth,
    5: _fifth,
    6: _sixth,
}


# ---- Cases as workloads

SETUP = "setup.xml"
TIMES = "times"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimes:
    """The times and the body of tasks."""

    scale: float = 1.0
    """The factor of all times of tasks."""
    stddev: float = 0.0
    """Standard deviation in seconds, not scaled."""
    stddev_share: float = 0.0
    """The same as a share of the mean."""
    seed: int = 1
    body: str = SLEEP
    """See `gridbench.workload.body`."""

    def deviation(self, case: ScenarioCase) -> float:
        """Standard deviation of the case's times, seconds, not scaled."""
        return self.stddev + self.stddev_share * case.sleep

    def draw(self, case: ScenarioCase) -> Seconds:
        """The case's times, scaled, seconds, shape (tasks,)."""
        from gridbench.workload.workload import draw_task_times

        return self.scale * draw_task_times(case.tasks, case.sleep, self.deviation(case), self.seed)


def write_workload(case: ScenarioCase, times: TaskTimes, folder: Path) -> Path:
    """Write set-up file and list of times into `folder`, for `gridbench run` as well.

    Returns the set-up file. InputError if they cannot be written.
    """
    from gridbench.workload.workload import write_task_times

    path = folder / SETUP
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_setup_text(case), encoding="ascii")
    except OSError as error:
        raise InputError(
            f"cannot write the set-up of a case: {error.strerror}",
            file=path,
            remedy="make room, and run the same again: it resumes",
        ) from None
    write_task_times(
        folder / TIMES, case.tasks, case.sleep, times.deviation(case), times.seed, replace=True
    )
    return path


def setup_of(case: ScenarioCase) -> Setup:
    """The set-up of a case, without a file."""
    from gridbench.workload.workload import BYTES_PER_KB, Setup

    return Setup(
        path=Path(case.key),
        ntasks=case.tasks,
        nnodes=case.cores,
        input_file=TIMES,
        task_kb=case.bytes_in / BYTES_PER_KB,
        shared_kb=case.bytes_shared / BYTES_PER_KB,
        write_kb=case.bytes_out / BYTES_PER_KB,
    )


def _setup_text(case: ScenarioCase) -> str:
    setup = setup_of(case)
    values = "".join(f"<{name}> {value!s} </{name}>\n" for name, value in setup.to_dict().items())
    return f"<BenchmarkSetup>\n{values}</BenchmarkSetup>\n"
