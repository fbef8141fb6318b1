"""The document about remote Linpack with one client, and its JSON."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridbench.formats import NOTHING, amount, counted, duration, percent, signed_percent, whole
from gridbench.jsonl_store import Header
from gridbench.linpack.model_kind import (
    COMMUNICATION,
    COMPUTATION,
    LinpackAnswer,
    LinpackSeries,
    SizeCase,
    series_of,
)
from gridbench.linpack.record import BIG_ENDIAN, LOCAL, LinpackCase, operations, transferred
from gridbench.machine.judgement import disturbed, disturbed_count, sentence
from gridbench.model.cost_model import TOTAL, CostModel
from gridbench.model.formula import times
from gridbench.model.held_out import EACH
from gridbench.pages.colours import SERIES
from gridbench.pages.curves import Curve, Line, Place, Point
from gridbench.pages.document import (
    EVERYWHERE,
    ChartChoice,
    Document,
    Paragraph,
    Section,
    TableBlock,
    definitions,
)
from gridbench.pages.table import Cell, Column, Table, cell_of, table_of
from gridbench.statistics.claims import busy_in, marked
from gridbench.statistics.crossing import Crossing
from gridbench.statistics.interval import Interval

_PREDICTED = "dash"
_STEPS = 24
"""Points of a line that a model draws."""
_NAMED = 5
"""Number of failed or skipped cases that a notice names."""
_NOT_COUNTED = "*"
"""Mark of a value whose repeats were all disturbed."""
_LIMITS = {
    "control group": "by a quota of processor time in a control group",
    "stopping": "by stopping it each time that it had used its share, as no control group with a"
    " quota could be made",
}


# ---- Sentences


def headline(answer: LinpackAnswer, records: Sequence[LinpackCase]) -> list[str]:
    """For each client, from which size on servers are faster."""
    if not answer.series:
        return ["Nothing was measured yet."]
    reported = [line for client in answer.clients if (line := _overtaken(answer, client))]
    if not reported:
        return ["Too few sizes were measured to say from which on a server is faster."]
    if all(case.counts for one in answer.series for case in one.cases):
        return reported
    done = [one for one in records if one.status == "done"]
    return marked(reported, busy_in(sum(map(disturbed, done)), len(done), "case"))


def _overtaken(answer: LinpackAnswer, client: str) -> str:
    """`Client in C: a server is faster from n = 250 over socket; undecided over tls, as times of
    repeats overlap.`"""
    places: dict[str, list[str]] = {}
    undecided = []
    for path in answer.paths:
        if found := answer.overtaking(client, path):
            if found.measured.certain:
                places.setdefault(_where(found.measured), []).append(path)
            else:
                undecided.append(path)
    faster = [f"{where} over {_listed(paths)}" for where, paths in places.items()]
    parts = [f"a server is faster {', '.join(faster)}"] if faster else []
    if undecided:
        parts.append(f"undecided over {_listed(undecided)}, as times of repeats overlap")
    return f"Client in {client}: {'; '.join(parts)}." if parts else ""


def _listed(paths: Sequence[str]) -> str:
    """`socket, tcp and tls`."""
    *others, last = paths
    return f"{', '.join(others)} and {last}" if others else last


def _where(found: Crossing) -> str:
    names = {"always": "at all sizes", "never": "at no size"}
    return names.get(found.kind) or found.describe(_size)


def _size(n: float) -> str:
    return f"n = {whole(n)}"


def notices(answer: LinpackAnswer, records: Sequence[LinpackCase]) -> list[str]:
    """Limits of the answer."""
    done = [one for one in records if one.status == "done"]
    reported = []
    if busy := disturbed_count(sum(map(disturbed, done)), len(done), "cases"):
        reported.append(sentence(busy))
    if "tcp" in answer.paths:
        reported.append(
            "Servers encrypt all TCP connections. Over tcp, the client calls an agent of its own on"
            " this machine instead, without encryption."
        )
    reported += [
        f"Slowed clients were limited {_LIMITS[limit]}."
        for limit in dict.fromkeys(one.limit for one in answer.series)
        if limit
    ]
    left = [
        f"{one.describe()}: {one.status}: {one.why}." for one in records if one.status != "done"
    ]
    more = [f"{len(left) - _NAMED} more were not measured."] if len(left) > _NAMED else []
    return [*reported, *left[:_NAMED], *more]


# ---- Tables


def overtaking_table(answer: LinpackAnswer) -> Table:
    """From which size on the server is faster: a row for each client, a column for each path."""

    def column(path: str) -> Callable[[str], Cell]:
        def cell(client: str) -> Cell:
            found = answer.overtaking(client, path)
            if found is None:
                return Cell(NOTHING)
            expected = f"predicted {found.predicted.describe(_size)}" if found.predicted else ""
            notes = [found.measured.spread(_size), expected]
            return Cell(found.measured.describe(_size), "; ".join(filter(None, notes)))

        return cell

    name = Column[str]("client", lambda client: client, words=True)
    return table_of(
        [name, *(Column(path, column(path)) for path in answer.paths)],
        answer.clients,
        style="overtaking",
    )


def sizes_table(
    series: Sequence[LinpackSeries], unit: str, value: Callable[[SizeCase], Interval | None]
) -> Table:
    """A value of each client and size, a column for each path."""
    found = {(one.who, case.n, one.path): case for one in series for case in one.cases}
    keys = list(dict.fromkeys((who, n) for who, n, _ in found))

    def column(path: str) -> Callable[[tuple[str, int]], Cell]:
        def cell(key: tuple[str, int]) -> Cell:
            case = found.get((*key, path))
            if case is None:
                return Cell(NOTHING)
            made = cell_of(value(case), unit)
            return made if case.counts else replace(made, text=f"{made.text}{_NOT_COUNTED}")

        return cell

    columns: list[Column[tuple[str, int]]] = [
        Column("client", lambda key: key[0], words=True),
        Column("n", lambda key: key[1]),
    ]
    paths = dict.fromkeys(one.path for one in series)
    return table_of([*columns, *(Column(path, column(path)) for path in paths)], keys)


def byte_orders_table(answer: LinpackAnswer) -> Table:
    """What it costs that the server converts the byte order, for each client, path and size."""
    known = {(one.who, one.path, case.n): case for one in answer.remote for case in one.cases}
    rows = [
        (who, path, plain, foreign)
        for (who, path, n), foreign in known.items()
        if path.endswith(BIG_ENDIAN)
        and (plain := known.get((who, path.removesuffix(BIG_ENDIAN), n)))
    ]

    def more(plain: SizeCase, foreign: SizeCase) -> float:
        return foreign.seconds.value - plain.seconds.value

    columns: list[Column[tuple[str, str, SizeCase, SizeCase]]] = [
        Column("client", lambda row: row[0], words=True),
        Column("path", lambda row: row[1].removesuffix(BIG_ENDIAN), words=True),
        Column("n", lambda row: row[2].n),
        Column("this byte order", lambda row: duration(row[2].seconds.value)),
        Column("big-endian", lambda row: duration(row[3].seconds.value)),
        Column("difference", lambda row: signed_percent(more(*row[2:]) / row[2].seconds.value)),
        Column(
            "conversion",
            lambda row: (
                amount(transferred(row[2].n) / more(*row[2:]), "bytes/s")
                if more(*row[2:]) > 0
                else NOTHING
            ),
        ),
    ]
    return table_of(columns, rows)


def models_table(answer: LinpackAnswer) -> Table:
    """The constants of each series, and how wrong they are about sizes held out."""

    def constant(part: str, name: str, *, rate: str = "") -> Callable[[CostModel], Cell]:
        return lambda model: _constant(model, part, name, rate)

    def errors(model: CostModel) -> str:
        way = next((one for one in model.held_out.get(TOTAL, ()) if one.what == EACH), None)
        if way is None:
            return NOTHING
        return f"{percent(way.typical)}, at most {percent(way.largest)}"

    columns: list[Column[CostModel]] = [
        Column("client, path", lambda model: model.name, words=True),
        Column("T_comm0", constant(COMMUNICATION, "start")),
        Column("B", constant(COMMUNICATION, "byte", rate="bytes/s")),
        Column("T_comp0", constant(COMPUTATION, "start")),
        Column("P_calc", constant(COMPUTATION, "operation", rate="flop/s")),
        Column("error, held out", errors),
    ]
    return table_of(columns, answer.models.values())


def _constant(model: CostModel, part: str, name: str, rate: str) -> Cell:
    """A cost with its interval, or the rate that it is the inverse of, in a unit."""
    one = next(each for each in model.estimates if (each.part, each.name) == (part, name))
    if one.value is None or (rate and not one.value):
        return Cell(NOTHING)
    low = one.value if one.low is None else one.low
    high = one.value if one.high is None else one.high
    if not one.value:
        return Cell("0 s", f"up to {amount(high, 's')}" if high else "")
    found = Interval(one.value, low, high)
    return cell_of(found.under(1.0) if rate else found, rate or "s")


def predictions_table(answer: LinpackAnswer) -> Table:
    """For each series and size, measured, predicted without that size, and the error."""
    rows: list[tuple[str, SizeCase, float]] = []
    for one in answer.series:
        model = answer.models.get(one.told)
        ways = model.held_out.get(TOTAL, ()) if model else ()
        for way in ways:
            if way.what == EACH:
                rows += [
                    (one.told, case, error)
                    for case, error in zip(one.cases, way.errors, strict=True)
                ]
    columns: list[Column[tuple[str, SizeCase, float]]] = [
        Column("client, path", lambda row: row[0], words=True),
        Column("n", lambda row: row[1].n),
        Column("measured", lambda row: duration(row[1].seconds.value)),
        Column("predicted", lambda row: duration(row[1].seconds.value * (1 + row[2]))),
        Column("error", lambda row: signed_percent(row[2])),
    ]
    return table_of(columns, rows)


# ---- Charts


def performance_curves(answer: LinpackAnswer) -> list[tuple[str, Curve]]:
    """For each client the performance over the size, of itself and of the server over each path,
    with what the models predict."""
    return [
        (
            client,
            _curve(
                answer,
                _lines(
                    answer,
                    answer.of(client),
                    lambda case: case.performance,
                    lambda parts, n: operations(n) / sum(parts.values()),
                ),
                name=f"performance-{number}",
                title=f"Performance over n, client in {client}",
                y_title="performance of a call",
                unit="flop/s",
            ),
        )
        for number, client in enumerate(answer.clients)
    ]


def throughput_curves(answer: LinpackAnswer) -> list[tuple[str, Curve]]:
    """For each client the throughput of its communication over the size."""
    return [
        (
            client,
            _curve(
                answer,
                _lines(
                    answer,
                    [one for one in answer.of(client) if not one.local],
                    lambda case: case.throughput,
                    lambda parts, n: transferred(n) / parts[COMMUNICATION],
                ),
                name=f"throughput-{number}",
                title=f"Throughput over n, client in {client}",
                y_title="throughput",
                unit="bytes/s",
            ),
        )
        for number, client in enumerate(answer.clients)
    ]


def _curve(
    answer: LinpackAnswer, lines: Sequence[Line], *, name: str, title: str, y_title: str, unit: str
) -> Curve:
    return Curve(
        id=name,
        title=title,
        about="",
        x_title="n",
        places=[_place(n) for n in answer.sizes],
        y_title=y_title,
        unit=unit,
        lines=lines,
    )


def _lines(
    answer: LinpackAnswer,
    series: Iterable[LinpackSeries],
    value: Callable[[SizeCase], Interval | None],
    predicted: Callable[[dict[str, float], float], float],
) -> list[Line]:
    """What was measured, and as dashes what the models predict of it by the parts of a time."""
    lines = []
    colours = dict(zip((LOCAL, *answer.paths), itertools.cycle(SERIES), strict=False))
    for one in series:
        points = [
            Point(_place(case.n), found, case.counts)
            for case in one.cases
            if (found := value(case)) is not None
        ]
        lines.append(Line(one.path, points, colour=colours[one.path]))
        model = answer.models.get(one.told)
        expected = []
        if model is not None:
            for n in map(float, np.geomspace(one.cases[0].n, one.cases[-1].n, _STEPS)):
                parts = times(model.formula, model.found, {"n": n})
                if parts[COMMUNICATION] or one.local:
                    at = predicted(parts, n)
                    expected.append(Point(_place(n), Interval(at, at, at), counts=True))
        name = f"{one.path}, predicted"
        lines.append(Line(name, expected, of=one.path, dash=_PREDICTED, in_legend=False))
    return lines


def _place(n: float) -> Place:
    return Place(n, whole(n))


# ---- The document

_TERMS = definitions(
    """
    n = Order of the matrix: n equations with n unknowns.
    local = The client solves the system itself, with the same library as the server.
    socket, tcp, tls = The server's Unix socket, TCP without encryption, and TLS, all on this
        machine.
    1gbit, 100mbit+10ms = TLS over a link of this rate, and of this rate and round-trip time.
    performance = 2/3 n^3 + 2 n^2 floating-point operations, divided by the time of the call.
    communication, computation = T_call = T_comm + T_comp. T_comp is the time in which the solver
        runs on the server; T_comm is the rest of the call.
    T_comm0, B = T_comm = T_comm0 + (8 n^2 + 20 n) / B: the bytes of matrix, right-hand side,
        solution and pivots.
    T_comp0, P_calc = T_comp = T_comp0 + (2/3 n^3 + 2 n^2) / P_calc.
    throughput = 8 n^2 + 20 n bytes, divided by T_comm.
    from = The server is faster at all measured sizes from this one on. Predictions reach up to
        twice the largest measured size.
    """
)


def document_of(header: Header, records: Sequence[LinpackCase]) -> Document:
    """The answer, performance, throughput and models."""
    answer = LinpackAnswer(series_of(records))
    performance = [(who, one.chart()) for who, one in performance_curves(answer) if one.drawn]
    throughput = [(who, one.chart()) for who, one in throughput_curves(answer) if one.drawn]
    star = f"{_NOT_COUNTED} Other programs disturbed all repeats."
    counts = all(case.counts for one in answer.series for case in one.cases)
    machine, threads = header.machine, counted(header.options.get("threads", 1), "thread")
    return Document(
        kind="gridbench linpack",
        title="gridbench linpack: here or on a server",
        heading="Linear systems, solved here or on a server",
        subheading=f"{machine.get('host', '')} · {threads} ·"
        f" {header.started[:16].replace('T', ' ')}",
        sentences=headline(answer, records),
        notices=notices(answer, records),
        summary=[
            *([ChartChoice("Client", performance)] if performance else []),
            TableBlock(
                "The sizes from which on a server is faster than the client itself",
                overtaking_table(answer),
                "Below each size: its range by the spread of the repeats, and what the models of"
                " both predict.",
                media=EVERYWHERE,
            ),
        ],
        sections=[
            Section(
                "performance",
                "Performance",
                [
                    Paragraph(
                        "Marks are medians, with bars from the smallest to the largest repeat;"
                        " dashed lines are predictions of the models. A slowed client stands for a"
                        " small machine: its calls are slowed as well, the server is not."
                    ),
                    TableBlock(
                        "Performance of a call",
                        sizes_table(answer.series, "flop/s", lambda case: case.performance),
                        folded=True,
                        notes_from=160,
                        media=EVERYWHERE,
                    ),
                    *([] if counts else [Paragraph(star)]),
                ],
            ),
            Section(
                "throughput",
                "Throughput of the communication",
                [
                    *([ChartChoice("Client", throughput)] if throughput else []),
                    TableBlock(
                        "Throughput",
                        sizes_table(answer.remote, "bytes/s", lambda case: case.throughput),
                        folded=True,
                    ),
                    *(
                        [
                            TableBlock(
                                "Conversion of the byte order",
                                byte_orders_table(answer),
                                "The matrix travels in big-endian order, and the server converts"
                                " it. The rate is that of the bytes over the additional time.",
                                media=EVERYWHERE,
                            )
                        ]
                        if any(path.endswith(BIG_ENDIAN) for path in answer.paths)
                        else []
                    ),
                ],
            ),
            Section(
                "models",
                "Models",
                [
                    TableBlock(
                        "Constants of each client and path",
                        models_table(answer),
                        "Fitted to the medians, with 95 % intervals over repeats. The error is that"
                        " of the predicted time of a size that the model was not fitted to: the"
                        " median, and the largest.",
                        otherwise="Too few sizes were measured for a model.",
                        media=EVERYWHERE,
                    ),
                    TableBlock(
                        "Each size, predicted by a model of all others",
                        predictions_table(answer),
                        folded=True,
                    ),
                ],
            ),
            Section("method", "How to read this", [_TERMS]),
        ],
        header=header,
    )


def answer_values(records: Sequence[LinpackCase]) -> dict[str, Any]:
    """Sentences, sizes from which on servers are faster, and models."""
    answer = LinpackAnswer(series_of(records))
    return {"sentences": headline(answer, records), **answer.values()}
