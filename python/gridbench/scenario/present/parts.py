"""The folders of one report, those that answer the same question together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gridbench.jsonl_store import Header
from gridbench.scenario.cases import MeasuredCase, cells_of, engines_of
from gridbench.scenario.results import CaseResult, read_results


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder of results."""

    path: Path
    header: Header
    results: list[CaseResult]

    @property
    def scenario(self) -> int:
        """1 to 6."""
        return int(self.header.options.get("scenario", 1))

    @property
    def engines(self) -> list[str]:
        """Those that were measured."""
        return engines_of(self.results)


@dataclass(frozen=True, slots=True)
class Part:
    """Folders of one scenario, whose engines were measured in the same way on the same machine, so
    that they stand side by side as if they were of one folder."""

    folders: tuple[Folder, ...]
    name: str
    """The scenario's number, with where the results lie if other parts have the same one."""
    results: list[CaseResult]
    cells: list[MeasuredCase]

    @property
    def scenario(self) -> int:
        """1 to 6."""
        return self.folders[0].scenario

    @property
    def header(self) -> Header:
        """That of the first folder; the others differ in nothing that was chosen."""
        return self.folders[0].header

    @property
    def groups(self) -> list[list[CaseResult]]:
        """The results of each folder."""
        return [folder.results for folder in self.folders]


def parts_of(paths: Sequence[Path]) -> list[Part]:
    """All folders, in the order in which they are given. InputError if one cannot be read."""
    groups: list[list[Folder]] = []
    for path in paths:
        folder = Folder(path, *read_results(path))
        group = next((group for group in groups if _belongs(folder, group)), None)
        if group is None:
            groups.append([folder])
        else:
            group.append(folder)
    times = Counter(group[0].scenario for group in groups)
    return [_part(group, named=times[group[0].scenario] > 1) for group in groups]


def _belongs(folder: Folder, group: Sequence[Folder]) -> bool:
    """Whether the folder is like the others, and of other engines: an engine's results of two
    folders are no repetitions, as something may have been changed between them."""
    first = group[0].header
    return (
        folder.header.options == first.options
        and folder.header.machine == first.machine
        and not any(set(folder.engines) & set(other.engines) for other in group)
    )


def _part(group: Sequence[Folder], *, named: bool) -> Part:
    results = [result for folder in group for result in folder.results]
    number = str(group[0].scenario)
    where = ", ".join(str(folder.path) for folder in group)
    name = f"{number} ({where})" if named else number
    return Part(tuple(group), name, results, cells_of(results))
