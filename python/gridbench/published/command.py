"""`gridbench published`: the published figures beside recomputed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gridbench.atomic_write import write_file
from gridbench.errors import InputError
from gridbench.formats import NOTHING, fixed, percent, round_amount
from gridbench.model.profiles import SourcedFigure
from gridbench.pages.document import (
    EVERYWHERE,
    WRITTEN,
    Block,
    Bullets,
    Document,
    Medium,
    Paragraph,
    Section,
    TableBlock,
    markdown_page,
)
from gridbench.pages.table import Cell, Column, Table, table_of
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.published import predicted, recomputed
from gridbench.published.figures import (
    PredictedFigure,
    PredictedTable,
    RecomputedFigure,
    RecomputedTable,
    Verdict,
)
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


# ---- The document

_TERMINAL: frozenset[Medium] = frozenset({"terminal"})
_MORE_DIGITS = 1
"""Ours is shown with so many digits more than theirs, to show how it rounds."""
_VERDICTS: dict[Verdict, str] = {
    "agrees": "yes",
    "agrees within the inputs": "within inputs",
    "exception": "exception",
    "differs": "no",
}
_INTRODUCTION = (
    "The compute-grid benchmark comes from a report on grids in finance, and slides about it. This"
    " page shows their figures beside recomputed ones: figures that follow from others are"
    " recomputed from their inputs, and gridbench's model predicts the totals of two systems."
    " “gridbench published” shows the same in the terminal, and with “--out docs/published.md” it"
    " wrote this page.",
    "The last column says whether the recomputed figure, rounded as the printed one, is the same:"
    " “yes”; whether it would be for inputs that round to the printed ones: “within inputs”; or"
    " that it cannot be, for a reason given below: “exception”. 1 MB counts as 8 Mbit everywhere."
    " In some tables the sources take a KB for 1/1024 MB, in others for 1/1000 MB; each table says"
    " which.",
)


def document_of(tables: Sequence[RecomputedTable | PredictedTable]) -> Document:
    """The tables, each with how it came about above and notes below."""
    return Document(
        kind="gridbench published",
        title="gridbench published",
        heading="Published figures, recomputed",
        sentences=[*_sentences(tables)],
        summary=[Paragraph(text, WRITTEN) for text in _INTRODUCTION],
        sections=[
            Section(table.name, f"{table.name}: {table.title}", [*_blocks(table)])
            for table in tables
        ],
    )


def _sentences(tables: Sequence[RecomputedTable | PredictedTable]) -> Iterator[str]:
    """How many figures agree, and how far predictions are off."""
    verdicts = [
        figure.verdict
        for table in tables
        if isinstance(table, RecomputedTable)
        for figure in table.figures
    ]
    if verdicts:
        yield (
            f"{len(verdicts)} figures recomputed: {verdicts.count('agrees')} agree to their"
            f" rounding, {verdicts.count('agrees within the inputs')} within that of the inputs,"
            f" {verdicts.count('exception')} do not follow from the inputs (exceptions),"
            f" {verdicts.count('differs')} differ."
        )
    compared = [one for one in tables if isinstance(one, PredictedTable) and one.compared]
    for one in compared:
        yield f"{one.name}, {len(one.predictions)} totals of scenario 6: {notes(one)[0]}."
    if not verdicts and not compared:
        yield "Predicted beside measured times."


def _blocks(table: RecomputedTable | PredictedTable) -> Iterator[Block]:
    yield Paragraph(f"{table.name}: {table.title}", _TERMINAL)
    yield Paragraph(table.how, EVERYWHERE)
    if isinstance(table, PredictedTable):
        yield TableBlock("", prediction_table(table), media=EVERYWHERE)
        yield TableBlock("", parameter_table(table), media=EVERYWHERE)
    else:
        yield TableBlock("", figure_table(table), media=EVERYWHERE)
    if reported := notes(table):
        yield Bullets(reported, media=EVERYWHERE)


def figure_table(table: RecomputedTable) -> Table:
    """Theirs, ours, difference and verdict."""

    def digits(one: RecomputedFigure) -> int:
        return one.theirs.digits + _MORE_DIGITS

    columns: list[Column[RecomputedFigure]] = [
        Column("row", lambda one: one.row, words=True),
        Column("figure", lambda one: ", ".join(filter(None, [one.quantity, one.unit])), words=True),
        Column("theirs", lambda one: one.theirs.text),
        Column("ours", lambda one: fixed(one.ours.value, digits(one), grouped=False)),
        Column("difference", lambda one: _signed(one.difference, digits(one))),
        Column(
            "agrees",
            lambda one: Cell(
                _VERDICTS[one.verdict], style="bad" if one.verdict == "differs" else ""
            ),
        ),
    ]
    return table_of(columns, table.figures)


def prediction_table(table: PredictedTable) -> Table:
    """Measured, theirs if there are any, ours, with errors."""
    theirs = any(one.theirs is not None for one in table.predictions)

    def their_time(one: PredictedFigure) -> str:
        return NOTHING if one.theirs is None else fixed(one.theirs, 3, grouped=False)

    def their_error(one: PredictedFigure) -> str:
        return NOTHING if one.theirs is None else _percent(one.their_error)

    columns: list[Column[PredictedFigure]] = [
        Column("case", lambda one: one.row, words=True),
        Column("measured, s", lambda one: one.measured.text),
        Column("report, s", their_time, condition=theirs),
        Column("its error", their_error, condition=theirs),
        Column("ours, s", lambda one: fixed(one.ours, 3, grouped=False)),
        Column("our error", lambda one: _percent(one.error)),
    ]
    return table_of(columns, table.predictions)


def parameter_table(table: PredictedTable) -> Table:
    """Input of the model."""
    columns: list[Column[SourcedFigure]] = [
        Column("parameter", lambda given: given.name, words=True),
        Column("from", lambda given: given.source, words=True),
        Column("value", lambda given: round_amount(given.value, given.unit)),
    ]
    return table_of(columns, table.parameters)


def _signed(value: float, digits: int) -> str:
    return fixed(value, digits, signed=True, grouped=False)


def _percent(share: float) -> str:
    return f"{_signed(100 * share, 2)} %"


def notes(table: RecomputedTable | PredictedTable) -> list[str]:
    """What has to be known beside the table: exceptions, mean errors, other choices."""
    if isinstance(table, RecomputedTable):
        return [
            f"exception: {figure.row}, {figure.quantity}: {figure.exception}"
            for figure in table.figures
            if figure.verdict == "exception"
        ]
    if not table.comparable:
        return []
    ours = f"mean absolute error: ours {percent(table.mean_error, 2)}"
    if table.compared:
        ours += f", the report's {percent(table.their_mean_error, 2)}"
    others = [f"with {one.what}: {percent(one.mean_error, 2)}" for one in table.variants]
    return [ours, *others]
