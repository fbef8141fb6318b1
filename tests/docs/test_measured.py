"""docs/measured.md has the tables and figures of the kept runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.pages import measured as made
from gridbench.errors import InputError
from gridbench.formats import percent
from gridbench.quantities import KB, MB
from gridbench.scenario.cases import ScenarioCell

KEPT = made.read_kept()
PAGE = made.PAGE.read_text(encoding="utf-8")
NATIVE, PYTHON, POOL = (KEPT[name] for name in made.COMPARED)
ALL = (NATIVE, PYTHON, POOL)
GB = 1024 * MB


def test_tables_are_those_of_the_kept_runs() -> None:
    tables = made.tables(KEPT, made.read_errors())
    assert made.with_tables(PAGE, tables) == PAGE
    shown = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert shown == [line for table in tables.values() for line in table]


def test_a_table_without_its_place_is_reported() -> None:
    tables = made.tables(KEPT, made.read_errors())
    with pytest.raises(InputError, match="no table under the heading `Ray`"):
        made.with_tables(PAGE.replace("## Ray\n", "## Others\n"), tables)


def cost(engine: made.EngineRecords, scenario: int, cores: int, tasks: int, data: int = 0) -> float:
    """The overhead of a case, seconds."""
    return cell(engine, made.ComparedCase(scenario, cores, tasks, data)).overhead().value


def more(engine: made.EngineRecords, scenario: int, cores: int, tasks: int, data: int) -> float:
    """What data costs beside none."""
    return cost(engine, scenario, cores, tasks, data) - cost(engine, scenario, cores, tasks)


def cell(engine: made.EngineRecords, case: made.ComparedCase) -> ScenarioCell:
    """Its runs; some have to count."""
    found = engine.cell(case)
    assert found is not None, case
    return found


def spread(found: ScenarioCell) -> str:
    """From the least to the largest overhead."""
    overheads = [one.overhead_s or 0.0 for one in found.results]
    return f"{min(overheads):.2f} to {max(overheads):.2f} s"


def efficiency(engine: made.EngineRecords, data: int, sleep: float) -> str:
    """Of 200 tasks on 100 cores."""
    return percent(cell(engine, made.ComparedCase(2, 100, 200, data, sleep)).efficiency().value, 0)


def soonest(engine: made.EngineRecords, seconds: float, data: int = 0) -> tuple[int, float]:
    """Into how many tasks that much work on 100 cores is split best, and seconds until its end."""
    cells = (
        one
        for tasks in (1, 10, 25, 50, 100, 200, 400, 1000)
        for one in engine.cells(made.ComparedCase(6, 100, tasks, data))
        if round(one.one.sleep_s * tasks, 9) == seconds
    )
    best = min(cells, key=lambda one: one.total().value)
    return best.one.tasks, best.total().value


def describe() -> Iterator[str]:
    """What the text says, with its figures made again."""
    started = [cost(engine, 4, 400, 400) for engine in ALL]
    yield (
        f"costs {started[0]:.2f} s with native workers, {started[1]:.2f} s with Python workers"
        f" and {started[2]:.2f} s with the pool"
    )
    small = max(
        more(NATIVE, 4, cores, tasks, data)
        for cores, tasks in made.GRIDS["Input data (scenario 4)"][1]
        for data in (10 * KB, 100 * KB)
    )
    yield f"input of up to 100 KB for each task costs {small * 1e3:.0f} ms at most"
    first, third = (more(NATIVE, 4, 400, tasks, 10 * MB) for tasks in (400, 1200))
    amount = 400 * 10 * MB / GB
    yield f"takes {first / amount:.2f} s for each GB in 400 inputs of 10 MB"
    yield f"cost {more(POOL, 4, 400, 400, 10 * MB) / amount:.2f} s for each GB"
    yield f"1,200 inputs cost {third:.2f} s, and 400 cost {first:.2f} s"

    filled = [more(engine, 5, 100, 100, 10 * MB) for engine in ALL]
    yield f"100 outputs of 10 MB cost {filled[0]:.2f} s more than no output"
    yield f"cost {filled[1]:.2f} s more, and with the pool {filled[2]:.2f} s more"
    blocks = max(
        cost(NATIVE, 5, 100, 300, data) - cost(NATIVE, 5, 100, 100, data)
        for data in (0, 10 * KB, 100 * KB, MB)
    )
    yield f"cost native workers {blocks * 1e3:.0f} ms more than one"
    once, thrice = (made.ComparedCase(5, 400, tasks, 10 * MB) for tasks in (400, 1200))
    yield f"cost native workers {spread(cell(NATIVE, once))} in different runs"
    yield f"1,200 outputs {spread(cell(NATIVE, thrice))}"

    native_shared, python_shared = (
        [more(engine, 1, 400, 400, data) for data in made.SIZES[1:]] for engine in ALL[:2]
    )
    yield f"costs native workers {max(native_shared) * 1e3:.0f} ms at most on 400 cores"
    yield f"costs {min(python_shared):.2f} to {max(python_shared):.2f} s on 400 cores"

    short, long, both = (
        [efficiency(engine, data, sleep) for engine in ALL]
        for data, sleep in ((0, 0.1), (0, 1.0), (100 * KB, 1.0))
    )
    yield f"{short[0]} with native workers, {short[1]} with Python workers and {short[2]} with"
    yield f"200 tasks of 1 s reach {long[0]}, {long[1]} and {long[2]}"
    yield f"these are {both[0]}, {both[1]} and {both[2]}"
    one, many = ([cost(engine, 3, 100, tasks) * 1e3 for engine in ALL] for tasks in (1, 10_000))
    yield f"one task costs {one[0]:.0f} ms and 10,000 tasks cost {many[0]:.0f} ms"
    yield f"which is {(many[0] - one[0]) / 9_999 * 1e3:.1f} µs for each further task"
    python, pool = (f"{one[at]:.0f} ms and {many[at]:.0f} ms" for at in (1, 2))
    yield f"cost {python}, with the pool {pool}"
    in_full = "{} with native workers, as {} with Python workers and as {} with the pool"
    for seconds, data, form in ((1.0, 0, in_full), (1.0, MB, "{}, {} and {}"), (0.1, 0, in_full)):
        best = [soonest(engine, seconds, data) for engine in ALL]
        yield "soonest as " + form.format(
            *(f"{tasks} tasks ({total * 1e3:.0f} ms)" for tasks, total in best)
        )

    model = made.read_errors()["native"]
    predicted, again = model["held_out"][0]["overhead_median"], model["repeated"]["median"]
    yield f"the overhead by {percent(predicted)} in the median"
    yield f"other runs of their cases by {percent(again)}"


@pytest.mark.parametrize("sentence", [*describe()])
def test_figures_in_the_text_are_those_of_the_kept_runs(sentence: str) -> None:
    assert sentence in " ".join(PAGE.split())


def test_the_pool_takes_longer_for_short_work_than_one_core() -> None:
    assert soonest(POOL, 0.1)[1] > 0.1
    assert "With the pool this is longer than one core would take" in " ".join(PAGE.split())
