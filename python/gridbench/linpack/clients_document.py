"""The document about many clients: the paper's tables beside ours, its findings, run charts."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gridbench.formats import NOTHING, Scale, counted, fixed, percent, scale, size, times
from gridbench.jsonl_store import Header
from gridbench.linpack.paper import (
    comparison_table,
    findings,
    findings_table,
    paper_cells,
    policies_compared,
)
from gridbench.linpack.record import (
    POLICIES,
    SERVERS,
    ClientsCase,
    ClientsCell,
    CorePolicy,
    ServedCall,
    Spread,
    StepKind,
    cells_of,
    growth_of,
    is_flat,
    mean_of,
)
from gridbench.machine.judgement import disturbed, sentence
from gridbench.pages.chart import Chart, figure
from gridbench.pages.colours import SERIES
from gridbench.pages.curves import Curve, Line, Place, Point
from gridbench.pages.document import (
    EVERYWHERE,
    WRITTEN,
    ChartChoice,
    Definitions,
    Document,
    Section,
    TableBlock,
)
from gridbench.pages.table import Column, Table, table_of
from gridbench.statistics.claims import marked
from gridbench.statistics.interval import Interval

_WIDE = 210
"""Characters of a line that a terminal needs to show all columns."""
_STEPS: dict[StepKind, str] = {"scaled": ", scaled step", "paper": ""}
_MOST_CHARTS = 16
_MOST_CALLS = 300
"""Calls that a run chart draws."""


def document_of(header: Header, cases: Sequence[ClientsCase]) -> Document:
    """The findings, the tables of all cases, and how they were measured."""
    every_cell = cells_of(cases)
    cells = [cell for cell in every_cell if cell.server == "gridrpc"]
    ours = [one for one in cases if one.server == "gridrpc"]
    kinds = [kind for kind in _STEPS if any(one.steps == kind for one in ours)]
    return Document(
        kind="gridbench linpack clients",
        title="gridbench linpack clients: a server that many clients call",
        heading="A Linpack server that many clients call",
        subheading=f"{header.machine.get('host', '')} · {header.started[:16].replace('T', ' ')}",
        sentences=_sentences(cases, ours, kinds),
        notices=_notices(cases),
        summary=[
            *_choice("Order and step", _curves(cells)),
            *(
                TableBlock(
                    f"Findings of the paper{_STEPS[kind]}",
                    findings_table(findings(ours, kind)),
                    media=EVERYWHERE,
                )
                for kind in kinds
            ),
        ],
        sections=[
            Section("tables", "All cases", list(_tables(cells)), short="Cases"),
            *(
                [Section("servers", "Other servers", [_servers_table(every_cell)])]
                if len(every_cell) > len(cells)
                else []
            ),
            Section("runs", "Run charts", _choice("Case", _run_charts(every_cell)), short="Runs"),
            Section("method", "How it was measured", [Definitions(_TERMS)], short="Method"),
        ],
        header=header,
    )


# ---- Sentences


def _sentences(
    cases: Sequence[ClientsCase], ours: Sequence[ClientsCase], kinds: Sequence[StepKind]
) -> list[str]:
    """The policies compared, the findings, and what became of the calls. `ours`: the cases of
    gridrpc's server."""
    found = []
    for kind in kinds:
        if text := policies_compared(ours, kind):
            at_step = "at the scaled step, " if kind == "scaled" else ""
            found.append(sentence(f"{at_step}{text}"))
    for kind in kinds:
        verdicts = Counter(one.holds for one in findings(ours, kind))
        found.append(
            f"Findings of the paper{_STEPS[kind]}: {verdicts['yes']} confirmed,"
            f" {verdicts['no']} refuted, {verdicts['not decided']} not decided."
        )
    found.append(_calls_text(cases))
    found += [_soak(one, growth) for one in cases if (growth := growth_of(one)) is not None]
    if cases and all(map(disturbed, cases)):
        return marked(found, "other programs disturbed all cases")
    return found


def _calls_text(cases: Sequence[ClientsCase]) -> str:
    all_cases = ClientsCell(cases)
    endings = {
        "with a wrong result": all_cases.ended("wrong"),
        "with an error": all_cases.ended("error"),
        "lost": all_cases.ended("lost"),
    }
    bad = [f"{count:,} {what}" for what, count in endings.items() if count]
    text = ", ".join(bad) if bad else "all were answered, and none was lost"
    return f"{counted(len(all_cases.calls), 'call')} in {counted(len(cases), 'case')}: {text}."


def _soak(case: ClientsCase, growth: Interval) -> str:
    usual = size(statistics.median(one.memory for one in case.samples))
    ends = f"{_change(growth.low)} to {_change(growth.high)}"
    growing = "no growth" if is_flat(case) else "growth"
    return (
        f"{case.named()}: {growing} of the server's memory, by its trend"
        f" {_change(growth.value)} (95 %: {ends}), {usual} in the median."
    )


def _change(bytes_: float) -> str:
    """`+12 MB`."""
    return f"{'-' if bytes_ < 0 else '+'}{size(abs(bytes_))}"


def _notices(cases: Sequence[ClientsCase]) -> list[str]:
    found = [
        "The clients run on the machine of the server, and use its processors too; the paper's were"
        " on other machines."
    ]
    if busy := sum(map(disturbed, cases)):
        found.append(f"Other programs disturbed {busy:,} of {counted(len(cases), 'case')}.")
    found += [f"{one.named()}, {one.status}: {one.why}." for one in cases if one.status != "done"]
    if restarts := sum(one.restarts for one in cases):
        found.append(
            f"The server ended {counted(restarts, 'time')}, and its case was measured again."
        )
    ours = [one for one in cases if one.server == "gridrpc"]
    answered = [call for one in ours for call in one.calls if call.ending == "ok"]
    if unknown := sum(call.enqueue is None for call in answered):
        found.append(
            f"When the server accepted the call is not known of {unknown:,} of"
            f" {counted(len(answered), 'call')}: response and wait are of the others."
        )
    return found


_TERMS = [
    (
        "Clients",
        "Each is a process. At each step it calls the server with the given probability, and it"
        " leaves out the steps that come during a call. It begins at a random time within the first"
        " step. Both policies see the same steps.",
    ),
    (
        "Scaled step",
        "The step divided by the ratio of the paper's time of a call of one client to the one"
        " measured here, with one core for each call, so that a client loads the server as it did"
        " then.",
    ),
    (
        "Performance",
        "Of a call: (2/3 n³ + 2 n²) / T_call, from submit to complete, both by the client's clock.",
    ),
    (
        "Response",
        "From submit to enqueue, when the server accepted the call, by its audit log. Each call has"
        " a trace id, which the log has as well.",
    ),
    (
        "Wait",
        "From enqueue to dequeue, when the function started. It includes the transfer of the"
        " arguments, which the server accepts before they have arrived.",
    ),
    (
        "Throughput",
        "Of a call: (8 n² + 20 n) / T_comm, with T_comm = T_call − T_comp as in the paper's model:"
        " where a call waits for others, that is in T_comm.",
    ),
    (
        "Deviation",
        "The largest difference of a client's mean performance from that of all clients, by the"
        " latter: 0 if each has its fair share.",
    ),
    ("Processors", "Share of the processors that was busy while clients began calls."),
    (
        "Load",
        "Threads that ran or waited for a processor, mean over ten looks per second. The kernel's"
        " own average over a minute would still have the case before in it.",
    ),
    (
        "Relative to one client",
        "Mean performance and throughput, divided by those of one client with the same policy and"
        " order.",
    ),
]


# ---- Tables


def _tables(cells: Sequence[ClientsCell]) -> Iterator[TableBlock]:
    for kind, text in _STEPS.items():
        for policy, name in POLICIES.items():
            own = [cell for cell in cells if cell.key[:2] == (kind, policy)]
            if own:
                title = f"{name[0].upper()}{name[1:]}{text}"
                yield TableBlock(title, _cases_table(own), media=EVERYWHERE)
                yield TableBlock(
                    f"{title}: beside the paper",
                    comparison_table(own),
                    about="Ours / the paper's.",
                    media=WRITTEN,
                )


def _cases_table(cells: Sequence[ClientsCell]) -> Table:
    columns: list[Column[ClientsCell]] = [
        Column("n", lambda cell: cell.key[2]),
        Column("clients", lambda cell: cell.key[3]),
        Column("calls", lambda cell: len(cell.calls)),
        Column("failed", lambda cell: cell.ended("error", "wrong", "lost"), from_width=100),
        Column("Gflop/s, max / min / mean", lambda cell: _three(cell.performance, Scale(1e-9, ""))),
        Column("response", lambda cell: _times(cell.response), from_width=140),
        Column("wait", lambda cell: _times(cell.wait), from_width=110),
        Column("MB/s", lambda cell: _three(cell.throughput, Scale(1e-6, "")), from_width=_WIDE),
        Column("processors", lambda cell: percent(cell.utilisation)),
        Column("of the server", lambda cell: percent(cell.server_share), from_width=_WIDE),
        Column("load", lambda cell: fixed(cell.load_average, 2)),
        Column(
            "step",
            lambda cell: cell.cases[0].step,
            "s",
            condition=cells[0].key[0] == "scaled",
            from_width=_WIDE,
        ),
        Column("deviation", lambda cell: percent(cell.deviation), from_width=_WIDE),
        Column(
            "disturbed",
            lambda cell: f"{sum(map(disturbed, cell.cases))} of {len(cell.cases)}",
            from_width=_WIDE,
        ),
    ]
    return table_of(columns, cells)


def _servers_table(cells: Sequence[ClientsCell]) -> TableBlock:
    """All servers in the same cases."""
    ours = {cell.key: cell for cell in cells if cell.server == "gridrpc"}

    def ratio(cell: ClientsCell) -> str:
        """Of the mean performance to gridrpc's."""
        known = ours.get(cell.key)
        if known is None:
            return NOTHING
        value = mean_of(cell.performance) / mean_of(known.performance)
        return times(value) if math.isfinite(value) else NOTHING

    columns: list[Column[ClientsCell]] = [
        Column("server", lambda cell: SERVERS[cell.server]),
        Column("policy", lambda cell: _SHORT[cell.key[1]]),
        Column("step", lambda cell: cell.key[0]),
        Column("n", lambda cell: cell.key[2]),
        Column("clients", lambda cell: cell.key[3]),
        Column("calls", lambda cell: len(cell.calls)),
        Column("failed", lambda cell: cell.ended("error", "wrong", "lost")),
        Column("Gflop/s, max / min / mean", lambda cell: _three(cell.performance, Scale(1e-9, ""))),
        Column("by gridrpc's", ratio),
        Column("MB/s", lambda cell: _three(cell.throughput, Scale(1e-6, "")), from_width=_WIDE),
        Column("processors", lambda cell: percent(cell.utilisation)),
        Column("of the server", lambda cell: percent(cell.server_share), from_width=_WIDE),
    ]
    ordered = sorted(cells, key=lambda cell: (cell.key, list(SERVERS).index(cell.server)))
    return TableBlock(
        "All servers",
        table_of(columns, ordered),
        about="Mean performance of a call, also as a ratio to that of gridrpc's server.",
        media=EVERYWHERE,
    )


def _times(spread: Spread | None) -> str:
    return NOTHING if spread is None else _three(spread, scale(spread.mean, "s"))


def _three(spread: Spread | None, unit: Scale) -> str:
    """`12.1 / 8.00 / 10.2 ms`: largest, least and mean."""
    if spread is None:
        return NOTHING
    return unit.with_suffix(
        " / ".join(unit.bare(one) for one in (spread.largest, spread.least, spread.mean))
    )


# ---- Charts


def _choice(label: str, charts: Sequence[tuple[str, Chart]]) -> list[ChartChoice | Chart]:
    return [ChartChoice(label, charts)] if charts else []


def _curves(cells: Sequence[ClientsCell]) -> list[tuple[str, Chart]]:
    """Performance of a client over the number of clients, for each step and order."""
    found = []
    for kind, text in _STEPS.items():
        for n in sorted({cell.key[2] for cell in cells if cell.key[0] == kind}):
            own = [cell for cell in cells if (cell.key[0], cell.key[2]) == (kind, n)]
            curve = _curve(own, kind, n)
            if curve is not None and curve.drawn:
                found.append((f"n = {n:,}{text}", curve.chart()))
    return found


def _curve(cells: Sequence[ClientsCell], kind: StepKind, n: int) -> Curve | None:
    """Relative to one client that has all cores, so that the policies can be compared."""
    alone = next((one for one in cells if one.key[1:] == ("all", n, 1)), None)
    if alone is None or alone.performance is None:
        return None
    clients = sorted({cell.key[3] for cell in cells})
    places = {count: Place(count, f"{count}") for count in clients}
    paper = paper_cells()
    lines = []
    for number, policy in enumerate(POLICIES):
        ours = [
            Point(places[cell.key[3]], _relative(cell.performance, alone.performance), cell.valid)
            for cell in cells
            if cell.key[1] == policy and cell.performance is not None
        ]
        lines.append(Line(_SHORT[policy], ours, colour=SERIES[number]))
        theirs = [
            Point(
                places[count],
                _relative(paper[policy, n, count].performance, paper["all", n, 1].performance),
                True,
            )
            for count in clients
            if (policy, n, count) in paper
        ]
        lines.append(
            Line(
                f"{_SHORT[policy]}, paper", theirs, of=_SHORT[policy], colour=SERIES[number],
                dash="dot",
            )
        )  # fmt: skip
    return Curve(
        id=f"performance-{kind}-{n}",
        title="Performance of a client",
        about="Mean of all calls, relative to one client that has all cores. Dotted: the paper's.",
        x_title="clients",
        places=list(places.values()),
        y_title="relative performance",
        unit="x",
        lines=lines,
    )


_SHORT: dict[CorePolicy, str] = {"all": "all cores", "one": "one core each"}


def _relative(spread: Spread, alone: Spread) -> Interval:
    value = spread.mean / alone.mean
    return Interval(value, value, value)


def _run_charts(cells: Sequence[ClientsCell]) -> list[tuple[str, Chart]]:
    """The first round of each case with the most clients, and then of others."""
    by_clients = sorted(cells, key=lambda cell: -cell.key[3])
    return [
        (cell.cases[0].describe(), _run_chart(cell.cases[0], f"run-{number}"))
        for number, cell in enumerate(by_clients[:_MOST_CHARTS])
    ]


def _run_chart(case: ClientsCase, name: str) -> Chart:
    """Processors and load over time, and below them a line for each call."""
    calls = [call for call in case.calls if call.complete is not None]
    calls = sorted(calls, key=lambda call: call.submit)[:_MOST_CALLS]
    cut = len(calls) < len(case.calls)
    at = [round(one.at, 3) for one in case.samples]
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": title, "x": at, "y": values,
            "yaxis": axis, "line": {"color": colour, "shape": "hv"}, "marker": {"size": 4},
        }
        for title, values, axis, colour in (
            ("processors busy, %", [round(100 * s.busy, 1) for s in case.samples], "y2", SERIES[0]),
            ("load", [round(s.runnable, 2) for s in case.samples], "y3", SERIES[1]),
        )
    ]  # fmt: skip
    for title, colour, ends in (
        ("waiting and transfer", "var(--soft)", lambda call: (call.submit, call.complete)),
        ("function running", SERIES[2], lambda call: (call.dequeue, call.returned)),
    ):
        x, y = _segments(calls, ends)
        traces.append(
            {
                "type": "scatter", "mode": "lines", "name": title, "x": x, "y": y,
                "line": {"color": colour, "width": 4}, "hoverinfo": "x+name",
            }
        )  # fmt: skip
    first = f", the first {counted(len(calls), 'call')}" if cut else ""
    end = max((call.complete or 0.0 for call in calls), default=case.seconds)
    return figure(
        traces,
        x={"title": "seconds after the start", "range": [0, 1.02 * end]},
        y={"title": "client", "domain": [0, 0.55], "range": [-1, case.clients]},
        layout={
            "yaxis2": {"title": {"text": "busy, %"}, "domain": [0.82, 1], "range": [0, 104]},
            "yaxis3": {"title": {"text": "load"}, "domain": [0.6, 0.78], "rangemode": "tozero"},
        },
        label=f"Run chart: {case.describe()}",
        name=name,
        title="Run chart",
        about=f"{case.describe()}{first}. A line is a call, from submit to complete.",
        height=560,
    )


def _segments(
    calls: Sequence[ServedCall], ends: Callable[[ServedCall], tuple[float | None, float | None]]
) -> tuple[list[float | None], list[int | None]]:
    """Lines from one time to another, at the height of their client."""
    x: list[float | None] = []
    y: list[int | None] = []
    for call in calls:
        begin, end = ends(call)
        if begin is not None and end is not None:
            x += [round(begin, 4), round(end, 4), None]
            y += [call.client, call.client, None]
    return x, y
