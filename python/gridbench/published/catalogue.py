"""Which tables there are, and choosing some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gridbench.errors import InputError
from gridbench.published import (
    checks,
    output_data,
    predictions,
    shared_data,
    start_up,
    task_data,
    text,
    totals,
)
from gridbench.published.figures import Predicted, Reproduced

TABLES: dict[str, Callable[[], Reproduced | Predicted]] = {
    "5.5.1-1": shared_data.table_5_5_1_1,
    "5.5.2-1": task_data.table_5_5_2_1,
    "5.5.3-1": start_up.table_5_5_3_1,
    "5.5.4-1": task_data.table_5_5_4_1,
    "5.5.4-2": task_data.table_5_5_4_2,
    "5.5.4-3": task_data.table_5_5_4_3,
    "5.5.4-4": task_data.table_5_5_4_4,
    "5.5.5-1": output_data.table_5_5_5_1,
    "5.5.5-2": output_data.table_5_5_5_2,
    "5.5.6-1": totals.table_5_5_6_1,
    "5.5.6-2": totals.table_5_5_6_2,
    "5.5.6-3": totals.table_5_5_6_3,
    "5.5.6-4": totals.table_5_5_6_4,
    "text": text.figures_in_text,
    "model-symphony": predictions.symphony_totals,
    "model-symphony-0kb": checks.symphony_without_data,
    "model-symphony-more": checks.symphony_checks,
    "model-ninfg": predictions.ninfg_totals,
    "model-ninfg-0kb": checks.ninfg_without_data,
    "model-ninfg-more": checks.ninfg_checks,
}


def chosen(names: Sequence[str]) -> list[Reproduced | Predicted]:
    """The tables of these names, worked out; a name also stands for all that continue it, so that
    `5.5.4` are four. Without names, all.

    Raises InputError for a name that is none.
    """
    for name in names:
        if not any(_meant(table, name) for table in TABLES):
            raise InputError(
                f"there is no table `{name}`",
                remedy="the tables are " + ", ".join(TABLES) + "; 5.5.4 or model stand for several",
            )
    return [
        make()
        for table, make in TABLES.items()
        if not names or any(_meant(table, name) for name in names)
    ]


def _meant(table: str, name: str) -> bool:
    return table == name or table.startswith((f"{name}-", f"{name}."))
