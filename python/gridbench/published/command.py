"""`gridbench published`: the published figures beside recomputed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.pages.markdown import markdown_page
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.published import predicted, recomputed
from gridbench.published.document import document_of
from gridbench.published.figures import PredictedTable, RecomputedTable
from gridbench.published.options import PublishedParameters

TABLES: dict[str, Callable[[], RecomputedTable | PredictedTable]] = {
    "5.5.1-1": recomputed.table_5_5_1_1,
    "5.5.2-1": recomputed.table_5_5_2_1,
    "5.5.3-1": recomputed.table_5_5_3_1,
    "5.5.4-1": recomputed.table_5_5_4_1,
    "5.5.4-2": recomputed.table_5_5_4_2,
    "5.5.4-3": recomputed.table_5_5_4_3,
    "5.5.4-4": recomputed.table_5_5_4_4,
    "5.5.5-1": recomputed.table_5_5_5_1,
    "5.5.5-2": recomputed.table_5_5_5_2,
    "5.5.6-1": recomputed.table_5_5_6_1,
    "5.5.6-2": recomputed.table_5_5_6_2,
    "5.5.6-3": recomputed.table_5_5_6_3,
    "5.5.6-4": recomputed.table_5_5_6_4,
    "text": recomputed.figures_in_text,
    "model-symphony": predicted.symphony_totals,
    "model-symphony-0kb": predicted.symphony_without_data,
    "model-symphony-more": predicted.symphony_checks,
    "model-ninfg": predicted.ninfg_totals,
    "model-ninfg-0kb": predicted.ninfg_without_data,
    "model-ninfg-more": predicted.ninfg_checks,
}


def chosen(names: Sequence[str]) -> list[RecomputedTable | PredictedTable]:
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


def show_published(parameters: PublishedParameters, printing: Printing) -> int:
    """Print the tables, or write their page. The exit status: 1 if a figure differs that should
    not."""
    tables = chosen(parameters.tables)
    document = document_of(tables)
    if parameters.out:
        write_file(parameters.out, markdown_page(document))
        printing.say(f"page: {parameters.out}")
    else:
        print_document(printing.tables(), document)
    printing.document(lambda: {"tables": [table.to_dict() for table in tables]})
    return 1 if any(map(_differs, tables)) else 0


def _differs(table: RecomputedTable | PredictedTable) -> bool:
    return isinstance(table, RecomputedTable) and any(
        figure.verdict == "differs" for figure in table.figures
    )
