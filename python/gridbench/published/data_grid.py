"""The preliminary figures of a data grid, from the slides about the benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.published.printed import Printed, table


@dataclass(frozen=True, slots=True)
class DataGridSlides:
    """Of Coherence on 8 data nodes. They are not recomputed: nothing follows from them."""

    update_per_mb: Printed
    """Seconds of 100 updates for each MB of an object; 10 clients."""
    update_constant: Printed
    """Seconds of 100 updates beside that."""
    unloaded: Printed
    """Seconds of 1,000 operations on objects of 1 KB; 1 or 10 clients."""

    def update_time(self, size: float) -> float:
        """Seconds of 100 updates of objects of so many MB."""
        return self.update_per_mb.value * size + self.update_constant.value


FIT_OPERATIONS, UNLOADED_OPERATIONS = 100, 1000
"""Operations of the tasks that the figures are of."""


def data_grid_slides() -> DataGridSlides:
    """As they are printed."""
    found = {row["key"]: Printed(row["value"]) for row in table("data-grid")}
    return DataGridSlides(
        update_per_mb=found["update_time_per_mb"],
        update_constant=found["update_time_offset"],
        unloaded=found["unloaded_time"],
    )
