"""Measurements behind docs/measured.md: the six scenarios with gridrpc, a process pool and Ray.

    python -m benchmarks.pages.measured [RUNS]
    python -m benchmarks.pages.measured --tables [NAME.json]...

Results are in RUNS (runs/measured), where an interrupted call resumes. Their cases are copied to
docs/benchmarks/measured, with the errors of models that are fitted to them, and the tables of the
page are made again. `--tables` only makes the tables; the files are what `gridbench model --json`
has written, named like the folders of kept cases, such as native.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.pages.recipes import ROOT, gridbench, keep, run
from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.formats import NOTHING, percent, size
from gridbench.jsonl_store import latest, load_records
from gridbench.quantities import KB, MB
from gridbench.scenario.cases import ScenarioCell, cells_of
from gridbench.scenario.results import CASES, FORM, CaseResult, folders_of_results

PAGE = ROOT / "docs" / "measured.md"
KEPT = ROOT / "docs" / "benchmarks" / "measured"
ERRORS = "errors.json"

ENGINES = {
    "native": "gridrpc, native",
    "python": "gridrpc, Python",
    "pool": "process pool",
    "ray": "Ray",
}
"""By the names of their folders."""
COMPARED = ("native", "python", "pool")
"""Those that have run all cases."""
SIZES = (0, 10 * KB, 100 * KB, MB, 10 * MB)
"""Bytes."""
GRIDS = {
    "Input data (scenario 4)": (4, ((10, 10), (100, 100), (400, 400), (400, 1200))),
    "Output data (scenario 5)": (5, ((10, 10), (100, 100), (100, 300), (400, 1200))),
    "Shared data (scenario 1)": (1, ((10, 10), (100, 100), (400, 400))),
}
"""Scenario, and cores with tasks, by the heading of the table."""


@dataclass(frozen=True, slots=True)
class ComparedCase:
    """What is the same on all engines; bytes, and seconds of a task's sleep if it matters."""

    scenario: int
    cores: int
    tasks: int
    data: int = 0
    sleep: float | None = None

    def holds(self, result: CaseResult) -> bool:
        """Whether the result is one of it."""
        return (
            (self.scenario, self.cores, self.tasks) == (result.scenario, result.cores, result.tasks)
            and self.data == max(result.bytes_in, result.bytes_shared, result.bytes_out)
            and self.sleep in (None, result.sleep_s)
        )


BESIDE_RAY = {
    "no data": [ComparedCase(3, 100, tasks) for tasks in (1, 10, 100, 1000, 10_000)],
    "10 MB shared": [
        ComparedCase(1, cores, cores, 10 * MB) for cores in (1, 10, 50, 100, 200, 400)
    ],
    "10 MB to each": [
        ComparedCase(4, cores, 2 * cores, 10 * MB) for cores in (1, 10, 50, 100, 200, 400)
    ],
    "10 MB of each": [
        ComparedCase(5, cores, 2 * cores, 10 * MB) for cores in (1, 10, 50, 100, 200, 400)
    ],
    "1 MB in and out of each": [ComparedCase(2, 100, 200, MB, 1.0)],
}
"""Cases whose row is shown if Ray has run them, by their data in words."""


@dataclass(frozen=True, slots=True)
class EngineRecords:
    """All records that are kept of an engine, in the order in which they were written."""

    records: Sequence[CaseResult]

    @property
    def runs(self) -> Sequence[CaseResult]:
        """The last of each case and round."""
        return [
            result
            for scenario in range(1, 7)
            for result in latest(one for one in self.records if one.scenario == scenario)
        ]

    @property
    def counted(self) -> int:
        """Runs that were done undisturbed."""
        return sum(one.status == "done" for one in self.runs)

    def cells(self, case: ComparedCase) -> Iterator[ScenarioCell]:
        """Of the case, if a run of it counts: a cell for each way of splitting the work."""
        held = (one for one in self.records if case.holds(one))
        return (cell for cell in cells_of(latest(held)) if cell.counts)

    def cell(self, case: ComparedCase) -> ScenarioCell | None:
        """The only one of these; None if no run counts."""
        return next(self.cells(case), None)

    def overhead(self, case: ComparedCase) -> float | None:
        """Median over the runs that count, seconds; None if there are none."""
        found = self.cell(case)
        return None if found is None else found.overhead().value


KeptRecords = Mapping[str, EngineRecords]


def read_kept(stored: Path = KEPT) -> KeptRecords:
    """Stored records of each engine. InputError if a file is damaged."""
    return {
        name: EngineRecords(
            [
                record
                for folder in folders_of_results(stored / name)
                for record in load_records(folder / CASES, FORM)[1]
            ]
        )
        for name in ENGINES
    }


def read_errors(stored: Path = KEPT) -> dict[str, Any]:
    """The errors of models, by the names of the engines; as `reduced` gives them."""
    path = stored / ERRORS
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def reduced(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of what `gridbench model --json` writes about one engine: how wrong the model is."""
    (model,) = document["models"]
    return {
        "engine": model["place"]["engine"],
        "cases": model["known"],
        "held_out": [{"what": one["what"], **one["errors"]} for one in model["held_out"]],
        "repeated": model["repeated"],
    }


def tables(stored: KeptRecords, errors: Mapping[str, Any]) -> dict[str, list[str]]:
    """The lines of each table of the page, by the heading that it stands under."""
    return {
        "Runs": list(runs_table(stored)),
        **{heading: list(grid_table(stored, *grid)) for heading, grid in GRIDS.items()},
        "Ray": list(ray_table(stored)),
        "Predictions of unseen runs": list(errors_table(stored, errors)),
    }


def runs_table(stored: KeptRecords) -> Iterator[str]:
    """How many runs there were, and what became of them."""
    yield "| engine | runs | counted | disturbed | skipped | failed | repeated | minutes |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for name, reported in ENGINES.items():
        engine = stored[name]
        runs = engine.runs
        numbers = [len(runs), engine.counted] + [
            sum(one.status == status for one in runs) for status in ("invalid", "skipped", "failed")
        ]
        measured = sum(one.status in ("done", "invalid") for one in engine.records)
        numbers += [
            measured - sum(one.status in ("done", "invalid") for one in runs),
            round(sum(one.took_s for one in engine.records) / 60),
        ]
        yield f"| {reported} | {' | '.join(f'{number:,}' for number in numbers)} |"


def grid_table(
    stored: KeptRecords, scenario: int, grids: Iterable[tuple[int, int]]
) -> Iterator[str]:
    """Overheads in milliseconds over the size of the data, for each grid and engine."""
    shown = " | ".join("none" if data == 0 else size(data) for data in SIZES)
    yield f"| cores, tasks | engine | {shown} |"
    yield f"|---|---|{'---:|' * len(SIZES)}"
    for cores, tasks in grids:
        for name in COMPARED:
            values = (
                stored[name].overhead(ComparedCase(scenario, cores, tasks, data)) for data in SIZES
            )
            first = f"{cores:,}, {tasks:,} " if name == COMPARED[0] else ""
            yield f"| {first}| {ENGINES[name]} | {' | '.join(map(milliseconds, values))} |"


def ray_table(stored: KeptRecords) -> Iterator[str]:
    """Overheads in seconds of the cases that Ray has run, beside those of gridrpc."""
    beside = ("ray", "python", "native")
    yield f"| cores, tasks | data | {' | '.join(ENGINES[name] for name in beside)} |"
    yield f"|---|---|{'---:|' * len(beside)}"
    for data, cases in BESIDE_RAY.items():
        for case in cases:
            values = [stored[name].overhead(case) for name in beside]
            if values[0] is not None:
                cells = " | ".join(map(seconds, values))
                long = "" if case.sleep is None else f" of {case.sleep:g} s"
                yield f"| {case.cores:,}, {case.tasks:,}{long} | {data} | {cells} |"


def errors_table(stored: KeptRecords, errors: Mapping[str, Any]) -> Iterator[str]:
    """How wrong models are about runs that they were not fitted to."""
    yield "| engine | held out | cases, with weighty overhead | overhead | total |"
    yield "|---|---|---:|---:|---:|"
    for name, reported in ENGINES.items():
        if name not in errors:
            continue
        found = errors[name]
        first = f"{reported}: {stored[name].counted:,} runs, {found['cases']:,} cases "
        for way in found["held_out"]:
            counts = f"{way['runs']:,}, {way['runs_with_weighty_overhead']:,}"
            pairs = " | ".join(both_percents(way, what) for what in ("overhead", "total"))
            yield f"| {first}| {way['what']} | {counts} | {pairs} |"
            first = ""
        if repeated := found["repeated"]:
            ends = f"{percent(repeated['median'])}, {percent(repeated['percentile_90'])}"
            who = f"each of {repeated['runs']:,} runs, by the others of its case"
            yield f"| | {who} | {NOTHING}, {repeated['cases']:,} | {ends} | |"


def both_percents(way: Mapping[str, Any], what: str) -> str:
    """Median and 90th percentile of errors."""
    ends = (way[f"{what}_median"], way[f"{what}_90th_percentile"])
    return ", ".join(NOTHING if end is None else percent(end) for end in ends)


def milliseconds(value: float | None) -> str:
    """A time in a cell."""
    return NOTHING if value is None else f"{value * 1e3:,.0f}"


def seconds(value: float | None) -> str:
    """The same, in seconds."""
    return NOTHING if value is None else f"{value:.2f}"


def with_tables(page: str, made: Mapping[str, Sequence[str]]) -> str:
    """The page with these tables in place of its own. InputError if one has no place."""
    lines: list[str] = []
    heading, waiting = "", dict(made)
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        if not line.startswith("|") or heading not in made:
            lines.append(line)
        else:
            lines += waiting.pop(heading, ())
    if waiting:
        raise InputError(
            f"has no table under the heading `{next(iter(waiting))}`",
            file=PAGE,
            remedy="write the heading, and a line that begins with | where the table is to stand",
        )
    return "\n".join(lines) + "\n"


SCENARIOS = ("6", "3", "2", "1", "4", "5")
CHOSEN = ("--time-scale", "0.01", "--sizes", "0,10KB,100KB,1MB,10MB")
MEASURED = {
    "native": ("gridrpc-native", "--rounds", "3", "--seed", "12"),
    "pool": ("process-pool", "--case-limit", "40"),
    "python": ("gridrpc-python", "--case-limit", "40", "--rounds", "2", "--seed", "6"),
}
"""Engines that run all scenarios, with their options, by the names of their folders."""
RAY = ("ray", "--case-limit", "40", "--limit", "140", "--seed", "5")


def measure(runs: Path) -> list[Path]:
    """Measure missing cases of the folder, and store them. Returns the models of its runs."""
    for name, (engine, *options) in MEASURED.items():
        run("scenario", *SCENARIOS, *CHOSEN, "--engine", engine, *options, "--out", runs / name)
    # Ray would take hours for all cases. With a limit for each scenario there are some of each.
    for scenario in SCENARIOS:
        folder = runs / "ray" / f"scenario-{scenario}"
        run("scenario", scenario, *CHOSEN, "--engine", *RAY, "--out", folder)
    models = []
    for name in ENGINES:
        for folder in sorted((runs / name).glob("scenario-*")):
            keep(folder / CASES, KEPT / name / folder.name / CASES)
        # Ray may have too few runs for a model; its predictions are left out then.
        ended = gridbench("model", runs / name, "--json", stdout=subprocess.PIPE)
        if ended.returncode == 0:
            models.append(runs / f"{name}.json")
            models[-1].write_text(ended.stdout, encoding="utf-8")
    return models


def write_tables(models: Iterable[Path]) -> None:
    """Keep the errors of the models, and write the page."""
    errors = read_errors()
    for path in models:
        errors[path.stem] = reduced(json.loads(path.read_text(encoding="utf-8")))
    errors = {name: errors[name] for name in ENGINES if name in errors}
    write_file(KEPT / ERRORS, json.dumps(errors, indent=1) + "\n")
    write_file(PAGE, with_tables(PAGE.read_text(encoding="utf-8"), tables(read_kept(), errors)))
    print(f"wrote {PAGE.relative_to(ROOT)}")


def main() -> None:
    """Measure, unless only the tables are wanted, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.measured",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="?", default=ROOT / "runs" / "measured")
    parser.add_argument("--tables", type=Path, nargs="*", metavar="NAME.json")
    chosen = parser.parse_args()
    write_tables(measure(chosen.runs) if chosen.tables is None else chosen.tables)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"bench-measured: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
