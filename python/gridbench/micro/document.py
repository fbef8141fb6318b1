"""The results of micro benchmarks as a `Document`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.jsonl_store import Header
from gridbench.micro import charts
from gridbench.micro.record import Results
from gridbench.micro.sentences import (
    behind,
    compared_engine,
    disturbed,
    headline,
    incomplete,
    machine_line,
    method,
    undecided,
    unproven,
    when,
)
from gridbench.micro.tables import (
    Family,
    against_each,
    families,
    gaps_table,
    matrix,
    percentiles,
    side_by_side,
    targets_table,
)
from gridbench.micro.wording import titled
from gridbench.pages.document import (
    EVERYWHERE,
    WRITTEN,
    Block,
    Bullets,
    Document,
    Medium,
    Paragraph,
    Section,
    SideBySide,
    TableBlock,
    definitions,
)
from gridbench.pages.table import Table, facts

_MARKDOWN: frozenset[Medium] = frozenset({"markdown"})
_TERMINAL: frozenset[Medium] = frozenset({"terminal"})
_TERMS = definitions(
    """
    engine, peer = What runs functions in other processes; a peer is any engine but gridrpc.
    median, interval = Of the values of all rounds; the interval holds the true median in 95 % of
        cases, if there are six rounds or more.
    best peer = The peer with the best median in the same figure.
    limit = What the machine does without an engine. An engine can be better than a limit that it
        does not have to use.
    noise = The factor between the medians of one engine that was measured twice in each round.
    no difference = The ratio is within the noise, or its interval holds 1.
    disturbed * = Other programs took a part of the processors during the run. It was repeated, as
        far as time allowed; a star says that disturbed runs remain in the median.
    METG = Minimum effective task granularity: the shortest task that keeps the workers busy for 50
        % or 90 % of the time.
    """
)


def document_of(results: Results) -> Document:
    """Who is ahead, the tables of all figures, targets, gaps and method."""
    engine = compared_engine(results)
    return Document(
        kind="gridbench micro",
        title="gridbench micro: engines side by side",
        heading="Engines side by side",
        subheading=" · ".join(filter(None, [machine_line(results), when(results)])),
        sentences=headline(results),
        notices=[text for text in (incomplete(results), disturbed(results)) if text],
        summary=[charts.against_best_peer(results)],
        sections=[
            Section(
                "each",
                f"{engine} against each engine",
                [
                    Paragraph(
                        "Advantage: 20× is a twentieth of the time or memory, or twenty times the"
                        " rate. Below 1 the other engine is ahead. In brackets: within the noise."
                        " With a question mark: provisional, as fewer than two undisturbed runs of"
                        " both are known.",
                        WRITTEN,
                    ),
                    TableBlock("", against_each(results), otherwise="No peer was measured."),
                ],
                "Each engine",
            ),
            Section(
                "ratios", "gridrpc against the limit", [charts.against_limits(results)], "Limit"
            ),
            *_claims("behind", "Where a peer is ahead", behind(results), "Nowhere in this run."),
            *_claims("unproven", "Provisional differences, not proven", unproven(results)),
            *_claims("undecided", "No difference", undecided(results)),
            *(_family(family) for family in families(results)),
            *_of_table(
                "targets",
                "Targets",
                "Targets and results",
                targets_table(results),
                EVERYWHERE,
            ),
            *_of_table("missing", "What could not be measured", "", gaps_table(results), WRITTEN),
            Section(
                "method",
                "How it was measured",
                [
                    *(Paragraph(sentence, WRITTEN) for sentence in method(results)),
                    Paragraph(
                        f"Machine: {machine_line(results)}. Measured {when(results)}.", _MARKDOWN
                    ),
                    TableBlock(
                        "Versions", facts(sorted(results.versions.items())), media=_MARKDOWN
                    ),
                    _TERMS,
                ],
                "Method",
            ),
        ],
        header=_header(results),
    )


def _claims(id: str, title: str, lines: Sequence[str], otherwise: str = "") -> Iterator[Section]:
    """A section with a line for each figure; without any, one with the other text or none."""
    if lines:
        listed = [Bullets(lines, media=WRITTEN), Bullets(lines, title, _TERMINAL)]
        yield Section(id, title, listed)
    elif otherwise:
        yield Section(id, title, [Paragraph(otherwise, WRITTEN)])


def _of_table(
    id: str, title: str, table_title: str, table: Table, media: frozenset[Medium]
) -> Iterator[Section]:
    """A section with a table, if that has rows."""
    if table.rows:
        yield Section(id, title, [TableBlock(table_title, table, media=media)])


def _family(family: Family) -> Section:
    """Charts on the page, and all values as tables."""
    lines = [one for made in family.figures if (one := charts.percentile_curve(made))]
    blocks: list[Block] = [
        *([Paragraph(family.about, WRITTEN)] if family.about else []),
        *lines,
        *map(charts.curve, family.curves),
        SideBySide([charts.bars(made) for made in family.figures]),
    ]
    for figures in side_by_side(family.figures):
        table, notes = matrix(figures)
        title = f"{family.title}, medians with their 95 % interval"
        blocks.append(TableBlock(title, table, media=EVERYWHERE))
        if notes.marks:
            blocks.append(Bullets(notes.lines(), media=EVERYWHERE))
    for made in family.figures:
        title = f"{titled(made.title)}, percentiles"
        blocks.append(TableBlock(title, percentiles(made), media=_MARKDOWN))
    return Section(family.name, family.title, blocks)


def _header(results: Results) -> Header:
    options = {name: value for name, value in results.options.items() if name != "seed"}
    return Header(
        machine=results.machine,
        versions=results.versions,
        options=options,
        started=results.started,
        seed=results.options.get("seed", 0),
    )
