"""What is measured on a data grid, whatever the product: parameters, and perhaps a mix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gridbench.datagrid.naming import label_shown
from gridbench.datagrid.parameters import BYTES_PER_KB, Parameters
from gridbench.formats import counted, size

Mix = Mapping[str, Any]
"""Shares of `read`, `overwrite`, `update`, `insert` and `scan`, which add up to 1; `keys`: how they
are drawn; `scan_length`: the most objects of a scan; `seed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A case without its engine, its loop and its repeat: as its record has it."""

    parameters: Parameters
    label: str = ""
    """Which part of a scenario: `read`, `update`, `insert`, `ycsb-a`; empty: a case of the user's
    own."""
    scenario: int | None = None
    scaled: Mapping[str, str] = field(default_factory=dict)
    """Parameters that are not the scenario's own, with what the scenario has."""
    mix: Mix | None = None
    """Each iteration then is one operation that is drawn from it."""

    @property
    def inserted_at_most(self) -> int:
        """Objects that all tasks insert; of a mix, more than chance will ever have it."""
        if self.mix is None:
            return self.parameters.inserted
        drawn, share = self.parameters.operations, float(self.mix["insert"])
        spread = math.sqrt(drawn * share * (1 - share))
        return min(drawn, math.ceil(drawn * share + 6 * spread))

    @property
    def at_most(self) -> int:
        """Objects that are there in the end, at most."""
        return self.parameters.stored + self.inserted_at_most

    @property
    def may_collide(self) -> bool:
        """Whether two tasks may change the same object at the same time."""
        if self.mix is None:
            return self.parameters.may_collide
        changes = self.mix["update"] + self.mix["overwrite"] > 0
        return bool(changes) and self.parameters.busy_clients > 1

    def told(self, *, members: int | None = None) -> str:
        """In words, on one line. `members`: those that there really are."""
        own = self.parameters
        parts = [
            "" if self.scenario is None else f"scenario {self.scenario}",
            label_shown(self.label),
            counted(own.mnodes if members is None else members, "member"),
            counted(own.nnodes, "client"),
            f"{counted(own.ntasks, 'task')} of {counted(own.operations_of_task, 'operation')}",
            size(own.object_bytes),
        ]
        return ", ".join(filter(None, parts))

    def scaled_told(self) -> list[str]:
        """What is not as the scenario has it: `NObjects is 250 in place of 1,000`."""
        values = self.parameters.to_dict()
        return [
            f"{name} is {_shown(name, values[name])} in place of {own}"
            for name, own in self.scaled.items()
        ]

    def cautions(self) -> list[str]:
        """What a user may not have meant, in whole sentences."""
        own = self.parameters
        found = []
        if own.ntasks < own.nnodes:
            found.append(
                f"NTasks is {own.ntasks:,} and NNodes {own.nnodes:,}: only"
                f" {counted(own.busy_clients, 'client')} will have a task."
            )
        if self.mix is None and 0 < own.nobjects < own.keys_of_iteration:
            found.append(
                f"NObjects is {own.nobjects:,}: an iteration, of {own.keys_of_iteration:,} objects,"
                " touches some of them more than once."
            )
        return found


def _shown(name: str, value: float) -> str:
    return size(value * BYTES_PER_KB) if name == "ObjectSize" else f"{value:,}"
