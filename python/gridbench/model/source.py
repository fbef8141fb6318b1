"""The runs that a model is fitted to: of `gridbench run` and of `gridbench scenario`, and logs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gridbench.errors import InputError
from gridbench.model.from_log import observe_log
from gridbench.model.observation import Observation, Place, observe
from gridbench.model_kind import none_serves
from gridbench.run.recorder import RECORD
from gridbench.scenario.results import CASES, CaseResult, read_cases

REMEDY = (
    "run them again, those of an overloaded machine when it has nothing else to do; or give logs"
    " that have all of their tasks"
)
"""What helps if no run can serve."""


@dataclass(frozen=True, slots=True)
class Source:
    """What was found in some folders."""

    observations: tuple[Observation, ...]
    left_out: Counter[str]
    """Runs that cannot serve, by why."""

    def by_place(self) -> dict[Place, list[Observation]]:
        """Those of each engine, in each place, on its own."""
        found: dict[Place, list[Observation]] = {}
        for one in self.observations:
            found.setdefault(one.place, []).append(one)
        return found

    def none_serves(self) -> InputError:
        """What to raise if there are no observations."""
        return none_serves(self.left_out, "run", REMEDY)


def read_source(given: Sequence[Path], *, others: str = "") -> Source:
    """All runs in and below folders, and those of task logs; `others`: what else could have been
    given, for the message.

    InputError if there are none, or for a folder or log that is none or is damaged.
    """
    found: dict[Path, Observation | str] = {}
    for folder in given:
        if folder.is_file():
            found[folder.resolve()] = observe_log(folder)
            continue
        if not folder.is_dir():
            what = "is not a folder" if folder.exists() else "does not exist"
            raise InputError(what, file=folder, remedy="give folders of runs, or task logs")
        own: dict[Path, Observation | str] = {}
        scenarios = sorted(path.parent for path in folder.rglob(CASES))
        for scenario in scenarios:
            for case in read_cases(scenario):
                if case.folder is not None:
                    own[case.folder.resolve()] = _of_case(case, case.folder)
        for record in sorted(folder.rglob(RECORD)):
            place = record.parent
            # What lies in a scenario's folder and is not in its results was not finished.
            if not any(scenario in place.parents for scenario in scenarios):
                own[place.resolve()] = observe(place)
        if not own:
            raise InputError(
                "there are no runs in this folder",
                file=folder,
                remedy=f"give a folder of gridbench run or scenario{others}",
            )
        found |= own
    usable = tuple(one for one in found.values() if isinstance(one, Observation))
    return Source(usable, Counter(one for one in found.values() if isinstance(one, str)))


def _of_case(case: CaseResult, folder: Path) -> Observation | str:
    if case.status != "done":
        return f"{case.status}: {case.reason_kind}"
    if not (folder / RECORD).exists():
        return "only its figures were kept, and a model is fitted to stamps of tasks"
    one = observe(folder)
    if isinstance(one, str):
        return one
    place = replace(one.place, transport=case.transport, nodes=case.nodes, link_rate=case.link_rate)
    return replace(one, place=place, others=case.load.get("others", math.nan))
