"""Area `starts`: how long engines take to start, in gridbench and in a plain script of ten lines.

An engine that were slower in gridbench than its users know it would be compared unfairly. So the
scripts in plain/ start each in its usual way, for as many workers, and have as many tasks done;
they import the engine before the clock starts, as gridbench does.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target
from benchmarks.starts.starting import LIMIT, in_a_script, in_gridbench
from gridbench.bench.series import Points
from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine
from gridbench.formats import as_given

_WORKERS = {Extent.TRIAL: 2, Extent.USUAL: 16, Extent.FULL: 16}
_SECONDS = 0.1
_ENDING = "-start.py"
_BOUND = 1.1
"""How many times the script's seconds an engine may take in gridbench."""


def engines() -> list[str]:
    """Those that have a script, by name."""
    folder = files(__name__) / "plain"
    return sorted(one.name.removesuffix(_ENDING) for one in folder.iterdir() if one.is_file())


def area(extent: Extent) -> Area:
    """Engines that are not installed are left out."""
    here = [name for name in engines() if _is_here(name)]
    return area_of(here, _WORKERS[extent], runs=None if extent is Extent.FULL else 3)


def area_of(names: Sequence[str], workers: int, *, runs: int | None) -> Area:
    """These engines, with so many workers and tasks."""
    cases = [
        AreaCase(
            _name(engine, way),
            function,
            {"engine": engine, "workers": workers, "seconds": _SECONDS} | more,
            python_of=engine,
            most_runs=runs,
            timeout=LIMIT,
        )
        for engine in names
        for way, function, more in (
            ("gridbench", in_gridbench, {"place": find_engine(engine).value}),
            ("script", in_a_script, {}),
        )
    ]

    def rows(points: Points) -> list[Row]:
        return [
            Row(
                engine,
                "s",
                points.of(_name(engine, "gridbench"), "seconds"),
                peer=points.of(_name(engine, "script"), "seconds"),
                target=Target(_BOUND, of_peer=True),
            )
            for engine in names
        ]

    title = (
        f"Engines in gridbench: from nothing until {workers} workers have done a task of"
        f" {as_given(_SECONDS)} each; peer: a plain script of ten lines"
    )
    return Area("starts", title, cases, rows)


def _is_here(engine: str) -> bool:
    own = environment(engine)
    return own is None or own.state().kind == "installed"


def _name(engine: str, way: str) -> str:
    return f"start of {engine}, {way}"
