"""The document about the weather ensemble, and its JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gridbench.ensemble.figures import (
    EnsembleCase,
    PublishedPair,
    cases_of,
    efficiency_curves,
    engine_curves,
    published_pairs,
)
from gridbench.ensemble.layouts import PUBLISHED_SAMPLES, clusters
from gridbench.ensemble.record import OURS, EnsembleRun
from gridbench.ensemble.simulation import farm_of, shortest_elapsed, simulated_elapsed
from gridbench.formats import (
    NOTHING,
    amount,
    as_given,
    counted,
    duration,
    fixed,
    percent,
    plain,
    size,
)
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed, disturbed_count, sentence
from gridbench.pages.document import (
    EVERYWHERE,
    Block,
    ChartChoice,
    Document,
    Paragraph,
    Section,
    TableBlock,
    definitions,
    subheading,
)
from gridbench.pages.table import Cell, Column, Table, cell_of, table_of
from gridbench.statistics.claims import busy_in, marked
from gridbench.statistics.interval import Interval

_NAMED = 5
"""Failed runs that a notice names."""
_SURE = 3
"""Repeats from which on a figure has a spread."""
_MONTH_PAIR, _LARGEST_PAIR = "ume 50 + presto3 50", "ume 50 + presto3 200"
_FEWEST = 10
"""Processors of the paper's smallest runs on a single cluster."""
_CLOSE = 0.05
"""Share by which a run differs at most from a simulation that explains it."""
_CALL_TARGET, _TARGET = 0.999, 0.99
"""Of T_r/T_c and of 5 T_r/T_e, with samples of 12 s."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the links and processors of a run allow."""

    scaled_links: float
    """Factor of times on the links."""
    cores: int
    """Of this machine."""

    def least(self, run: EnsembleRun) -> float:
        """Seconds that T_e cannot be below."""
        return shortest_elapsed(farm_of(run, self.scaled_links, self.cores))

    def most(self, run: EnsembleRun) -> float:
        """The efficiency that T_r and the links allow."""
        return run.efficiency * run.elapsed / self.least(run)

    def simulated(self, run: EnsembleRun) -> float:
        """T_e of the simulation, seconds."""
        return simulated_elapsed(farm_of(run, self.scaled_links, self.cores))

    def difference(self, case: EnsembleCase) -> float:
        """The share by which T_e is above that of the simulation."""
        return case.of(lambda run: run.elapsed / self.simulated(run) - 1).value


def document_of(header: Header, runs: Sequence[EnsembleRun]) -> Document:
    """The answer, the paper's tables beside ours, and charts."""
    cases, options = cases_of(runs), header.options
    bounds = _Bounds(_scaled_links(options), int(header.machine.get("cores_usable", 1)))
    ours = [one for one in cases if one.first.engine == OURS and one.as_in_paper]
    charts = [(name, one.chart()) for name, one in efficiency_curves(ours) if one.drawn]
    engines = engine_curves(cases)
    sections = [
        Section(
            "runs", "All runs", [TableBlock("Times and efficiency", runs_table(cases, bounds))]
        ),
        Section("paper", "Beside the paper", list(_paper(ours, options, bounds))),
    ]
    if any(one.first.request == "one by one" for one in cases):
        sections.append(Section("start", "Start-up", list(_starts(cases))))
    if len({one.first.engine for one in cases}) > 1:
        blocks: list[Block] = [Paragraph(_ENGINES)]
        blocks += [one.chart() for one in engines if one.drawn]
        table = TableBlock("Engines", engines_table(cases), media=EVERYWHERE)
        sections.append(Section("engines", "Beside other engines", [*blocks, table]))
    sections.append(Section("method", "How to read this", [_TERMS]))
    return Document(
        kind="gridbench ensemble",
        title="gridbench ensemble: a weather ensemble on clusters",
        heading="A weather ensemble on emulated clusters",
        subheading=subheading(header, counted(len(runs), "run")),
        sentences=headline(cases, runs),
        notices=[*notices(runs, options), *_beside_simulation(cases, bounds)],
        summary=[
            *([ChartChoice("Cluster", charts)] if charts else []),
            TableBlock("Efficiency", summary_table(cases, bounds), media=EVERYWHERE),
        ],
        sections=sections,
        header=header,
    )


def answer_values(runs: Sequence[EnsembleRun]) -> dict[str, Any]:
    """The sentences, and the figures of each case."""
    cases = cases_of(runs)
    return {
        "sentences": headline(cases, runs),
        "cases": [
            {
                **one.first.planned_fields,
                "repeats": len(one.counting),
                "counts": one.counts,
                "run_time": one.of(lambda run: run.run_time).value,
                "call_time": one.of(lambda run: run.call_time).value,
                "transfer_time": one.of(lambda run: run.transfer_time).value,
                "elapsed": one.of(lambda run: run.elapsed).value,
                "start": one.of(lambda run: run.start).value,
                "call_efficiency": None if one.first.ahead else one.call_efficiency.value,
                "efficiency": one.efficiency.value,
            }
            for one in cases
        ],
    }


# ---- Sentences


def headline(cases: Sequence[EnsembleCase], runs: Sequence[EnsembleRun]) -> list[str]:
    """For each layout, the efficiency with most processors, and how sure that is."""
    if not cases:
        return ["Nothing was measured yet."]
    reported = []
    for layout in dict.fromkeys(one.first.layout for one in cases):
        own = [one for one in cases if one.first.layout == layout and one.is_together]
        for kind in dict.fromkeys((one.first.engine, one.first.ahead) for one in own):
            most = max(
                (one for one in own if (one.first.engine, one.first.ahead) == kind),
                key=lambda one: one.first.processors,
            )
            reported.append(_sentence(most))
    reported += _kept_by_pairs(cases)
    if all(one.counts for one in cases):
        return reported
    done = [one for one in runs if one.status == "done"]
    return marked(reported, busy_in(sum(map(disturbed, done)), len(done), "run"))


def _kept_by_pairs(cases: Sequence[EnsembleCase]) -> list[str]:
    """How much of the efficiency of 50 + 50 processors the largest two clusters keep."""
    months = {
        one.first.shares: one
        for one in cases
        if one.first.layout == "pairs" and one.first.grain == "month" and one.as_in_paper
    }
    published = {one.shares: one.efficiency for one in published_pairs()}
    if not {_MONTH_PAIR, _LARGEST_PAIR} <= months.keys():
        return []
    ours = months[_LARGEST_PAIR].efficiency.value / months[_MONTH_PAIR].efficiency.value
    theirs = published[_LARGEST_PAIR] / published[_MONTH_PAIR]
    return [
        f"{_LARGEST_PAIR} keeps {percent(ours)} of the efficiency of {_MONTH_PAIR}; in the paper it"
        f" kept {percent(theirs)}."
    ]


def _sentence(case: EnsembleCase) -> str:
    one, efficiency = case.first, case.efficiency
    who = "" if one.engine == OURS else f"{one.engine}: "
    repeats = len(case.counting)
    sure = (
        f"{percent(efficiency.low)} to {percent(efficiency.high)} in {repeats} rounds"
        if repeats >= _SURE
        else f"measured {'once' if repeats == 1 else 'twice'}, so its spread is not known"
    )
    calls = (
        f"with {counted(one.ahead, 'call')} ahead"
        if one.ahead
        else f"T_r/T_c is {percent(case.call_efficiency.value, 2)}"
    )
    return (
        f"{who}{one.shares}, {one.grain}: processors compute {percent(efficiency.value)} of the"
        f" elapsed time ({sure}); {calls}."
    )


def notices(runs: Sequence[EnsembleRun], options: dict[str, Any]) -> list[str]:
    """Limits of the answer."""
    done = [one for one in runs if one.status == "done"]
    reported = []
    if busy := disturbed_count(sum(map(disturbed, done)), len(done), "runs"):
        reported.append(sentence(busy))
    if options.get("model", "sleep") == "sleep":
        reported.append("Samples sleep: clusters share the processors of this machine.")
    scale = float(options.get("time_scale", 1.0))
    if scale != 1.0:
        links = (
            "Links are scaled as well, but not the client's own work for a call: it weighs"
            f" {plain(1 / scale)} times as much as in the paper's runs."
            if options.get("links") == "scaled"
            else f"Links are not: they carry {plain(1 / scale)} times as many bytes per second of"
            " computing, so efficiencies are lower than with the paper's times."
        )
        reported.append(
            f"Samples take {as_given(scale, '')} times as long as in the paper. {links}"
        )
    left = [f"{one.describe()}: {one.status}: {one.why}." for one in runs if one.status != "done"]
    more = [f"{len(left) - _NAMED} more were not measured."] if len(left) > _NAMED else []
    return [*reported, *left[:_NAMED], *more]


def _beside_simulation(cases: Sequence[EnsembleCase], bounds: _Bounds) -> list[str]:
    """How far runs are from their simulation."""
    if not cases:
        return []
    off = [one for one in cases if abs(bounds.difference(one)) > _CLOSE]
    if not off:
        return [f"The elapsed time of all runs is within {percent(_CLOSE, 0)} of their simulation."]
    most = max(off, key=lambda one: abs(bounds.difference(one)))
    largest = f"{percent(bounds.difference(most))} ({most.first.shares}, {most.first.grain})"
    return [
        f"The elapsed time of {len(off)} of {counted(len(cases), 'case')} is more than"
        f" {percent(_CLOSE, 0)} from their simulation, most of all {largest}."
    ]


# ---- Tables


def _percent_cell(value: Interval, digits: int = 1) -> Cell:
    note = f"{percent(value.low, digits)}–{percent(value.high, digits)}"
    return Cell(percent(value.value, digits), note if value.low < value.high else "")


def _call_efficiency(case: EnsembleCase) -> Cell:
    # A call that waits for its processor says nothing of the way.
    return Cell(NOTHING) if case.first.ahead else _percent_cell(case.call_efficiency, 2)


def _call_time(case: EnsembleCase) -> Interval | None:
    return None if case.first.ahead else case.of(lambda run: run.call_time)


def _work(case: EnsembleCase, value: Callable[[EnsembleRun], float]) -> Interval | None:
    """Processor time of a call, which older results do not have."""
    found = case.of(lambda run: value(run) / run.samples)
    return found if found.value else None


def _columns(cases: Sequence[EnsembleCase]) -> list[Column[EnsembleCase]]:
    engines = len({one.first.engine for one in cases}) > 1
    requests = len({one.first.request for one in cases}) > 1
    ahead = any(one.first.ahead for one in cases)
    return [
        Column("clusters", lambda case: case.first.shares, words=True),
        Column("forecast", lambda case: case.first.grain, words=True),
        Column("engine", lambda case: case.first.engine, condition=engines, words=True),
        Column("requests", lambda case: case.first.request, condition=requests, words=True),
        Column("ahead", lambda case: case.first.ahead, condition=ahead),
    ]


def summary_table(cases: Sequence[EnsembleCase], bounds: _Bounds) -> Table:
    """Efficiencies."""
    columns: list[Column[EnsembleCase]] = [
        *_columns(cases),
        Column("T_r/T_c", _call_efficiency),
        Column("efficiency", lambda case: _percent_cell(case.efficiency)),
        Column("at most", lambda case: percent(case.of(bounds.most).value)),
        Column("start-up", lambda case: case.of(lambda run: run.start), "s"),
    ]
    return table_of(columns, cases)


def runs_table(cases: Sequence[EnsembleCase], bounds: _Bounds) -> Table:
    """All times."""
    columns: list[Column[EnsembleCase]] = [
        *_columns(cases),
        Column("samples", lambda case: case.first.samples),
        Column("T_r", lambda case: case.of(lambda run: run.run_time), "s"),
        Column("T_c", _call_time, "s"),
        Column("T_rec", lambda case: case.of(lambda run: run.transfer_time), "s"),
        Column("T_e", lambda case: case.of(lambda run: run.elapsed), "s"),
        Column("at least", lambda case: case.of(bounds.least), "s"),
        Column("simulated", lambda case: case.of(bounds.simulated), "s"),
        Column("difference", lambda case: percent(bounds.difference(case))),
        Column("work", lambda case: _work(case, lambda run: run.processor_time), "s"),
        Column("of the client", lambda case: _work(case, lambda run: run.client_time), "s"),
        Column("memory", lambda case: size(case.of(lambda run: float(run.memory)).value)),
        Column("rounds", lambda case: len(case.counting)),
    ]
    return table_of(columns, cases)


def _scaled_links(options: dict[str, Any]) -> float:
    return float(options.get("time_scale", 1.0)) if options.get("links") == "scaled" else 1.0


def _paper(cases: Sequence[EnsembleCase], options: dict[str, Any], bounds: _Bounds) -> list[Block]:
    """The paper's tables and figures, one by one."""
    scale = float(options.get("time_scale", 1.0))
    blocks: list[Block] = [
        TableBlock(
            "Tables 1 and 2: clusters, and the network from the client",
            _clusters_table(),
            "Links here have this throughput for data, and this latency one way.",
        )
    ]
    pairs = {one.first.shares: one for one in cases if one.first.layout == "pairs"}
    months = {name: one for name, one in pairs.items() if one.first.grain == "month"}
    if months:
        blocks.append(
            TableBlock(
                "Table 3: two clusters at once, one-month forecasts",
                pairs_table(months, scale, bounds),
                "Below each figure, the paper's. Ours are divided by the time scale. `at most` is"
                " the share of the efficiency of 50 + 50 that the link of PRESTO3 allows.",
                media=EVERYWHERE,
            )
        )
    blocks.append(
        TableBlock(
            "Figures in the text",
            text_table(cases, scale),
            "Ours are divided by the time scale.",
            otherwise="None of the runs that the text has figures of were measured.",
            media=EVERYWHERE,
        )
    )
    return blocks


def _clusters_table() -> Table:
    return table_of(
        [
            Column("cluster", lambda one: one.name, words=True),
            Column("site", lambda one: one.site, words=True),
            Column("processors", lambda one: one.processors),
            Column("latency", lambda one: duration(one.delay)),
            Column("throughput", lambda one: amount(one.throughput, "bytes/s")),
        ],
        clusters().values(),
    )


def pairs_table(cases: dict[str, EnsembleCase], scale: float, bounds: _Bounds) -> Table:
    """The paper's table 3, with ours beside it."""
    base = cases.get(_MONTH_PAIR)
    published = published_pairs()
    known = next(one for one in published if one.shares == _MONTH_PAIR)

    def beside(theirs: str, own: str | None) -> Cell:
        return Cell(NOTHING if own is None else own, f"paper {theirs}")

    def time_of(
        theirs: Callable[[PublishedPair], float], ours: Callable[[EnsembleRun], float]
    ) -> Callable[[PublishedPair], Cell]:
        def cell(row: PublishedPair) -> Cell:
            case = cases.get(row.shares)
            own = None if case is None else duration(case.of(ours).value / scale)
            return beside(duration(theirs(row)), own)

        return cell

    def efficiency(row: PublishedPair) -> Cell:
        case = cases.get(row.shares)
        own = None if case is None else percent(case.efficiency.value)
        return beside(percent(row.efficiency), own)

    def relative(row: PublishedPair) -> Cell:
        case, own = cases.get(row.shares), None
        if case is not None and base is not None:
            own = percent(case.efficiency.value / base.efficiency.value)
        return beside(percent(row.efficiency / known.efficiency), own)

    def most(row: PublishedPair) -> str:
        case = cases.get(row.shares)
        if case is None or base is None:
            return NOTHING
        return percent(case.of(bounds.most).value / base.of(bounds.most).value)

    columns: list[Column[PublishedPair]] = [
        Column("clusters", lambda row: row.shares, words=True),
        Column("T_rec", time_of(lambda row: row.transfer, lambda run: run.transfer_time)),
        Column("T_c", time_of(lambda row: row.call, lambda run: run.call_time)),
        Column("T_e", time_of(lambda row: row.elapsed, lambda run: run.elapsed)),
        Column("5 T_r/T_e", efficiency),
        Column("of 50 + 50", relative),
        Column("at most", most),
    ]
    return table_of(columns, published)


def text_table(cases: Sequence[EnsembleCase], scale: float) -> Table:
    """Figures in the paper's text, and ours."""
    rows: list[tuple[str, str, str]] = []
    single = [one for one in cases if one.first.layout in ("presto3", "venus")]
    for one in single:
        run = one.first
        if run.samples != PUBLISHED_SAMPLES * run.processors or run.processors < _FEWEST:
            continue
        saturates = run.grain == "10-days" and run.processors >= 200
        reported = "below 80 %: the client saturates" if saturates else "80 % and more"
        if run.layout == "venus":
            reported = "3 to 5 % below PRESTO3"
        rows.append(
            (f"{run.shares}, {run.grain}: 5 T_r/T_e", reported, percent(one.efficiency.value))
        )
        rows.append(
            (
                f"{run.shares}, {run.grain}: T_r/T_c",
                "about 95 %",
                percent(one.call_efficiency.value, 2),
            )
        )
    for one in cases:
        run = one.first
        elapsed = duration(one.of(lambda run: run.elapsed).value / scale)
        start = duration(one.of(lambda run: run.start).value)
        if run.layout == "ninf-g" and run.grain == "100-days":
            rows.append(
                ("4 clusters, 50 samples of 100 days: T_e", "850 s (Ninf-G: 1,200 s)", elapsed)
            )
            rows.append(("4 clusters: start-up", "10 to 30 s (Ninf-G: 60 to 180 s)", start))
        if run.layout == "sc2003" and run.grain == "10-days":
            rows.append(("500 processors, 1,000 samples of 10 days: T_e", "about 150 s", elapsed))
            rows.append(("500 processors: start-up", NOTHING, start))
    return Table(["", "paper", "here"], rows, words=frozenset(["", "paper"]))


def _starts(cases: Sequence[EnsembleCase]) -> list[Block]:
    """All handles in one request, beside one by one."""
    groups: dict[tuple[Any, ...], dict[str, EnsembleCase]] = {}
    for one in cases:
        if one.first.engine == OURS:
            key = one.first.key_without("repeat", "request")
            groups.setdefault(key, {})[one.first.request] = one

    def start(kind: str, group: dict[str, EnsembleCase]) -> Interval | None:
        case = group.get(kind)
        return None if case is None else case.of(lambda run: run.start)

    def ratio(group: dict[str, EnsembleCase]) -> str:
        together, apart = start("together", group), start("one by one", group)
        return fixed(apart.value / together.value, 1) if together and apart else NOTHING

    found = table_of(
        [
            Column("clusters", lambda group: next(iter(group.values())).first.shares, words=True),
            Column("in one request", lambda group: start("together", group), "s"),
            Column("one by one", lambda group: start("one by one", group), "s"),
            Column("times as long", ratio),
        ],
        [group for group in groups.values() if len(group) > 1],
    )
    about = (
        "Seconds until all workers were ready. In the paper, 50 handles took 4 times as long one by"
        " one, and creating 100 or more failed."
    )
    return [TableBlock("Start-up", found, about, media=EVERYWHERE)]


_ENGINES = (
    f"`{OURS}` is gridrpc with native workers from batch systems. All others are gridbench's"
    " drivers. Their workers start in the same namespaces, behind the same links, without a batch"
    " system. A sample is a sleep and a result of the same size for all."
)


def _same_run(case: EnsembleCase, cases: Sequence[EnsembleCase]) -> list[EnsembleCase]:
    """Those of all engines."""
    key = case.first.key_without("engine", "repeat")
    return [one for one in cases if one.first.key_without("engine", "repeat") == key]


def engines_table(cases: Sequence[EnsembleCase]) -> Table:
    """All engines, for each run."""
    columns: list[Column[EnsembleCase]] = [
        Column("engine", lambda case: case.first.engine, words=True),
        Column("clusters", lambda case: case.first.shares, words=True),
        Column("forecast", lambda case: case.first.grain, words=True),
        Column("T_r/T_c", _call_efficiency),
        Column("efficiency", lambda case: _percent_cell(case.efficiency)),
        Column("T_e", lambda case: cell_of(case.of(lambda run: run.elapsed), "s")),
        Column("start-up", lambda case: cell_of(case.of(lambda run: run.start), "s")),
        Column("memory", lambda case: size(case.of(lambda run: float(run.memory)).value)),
    ]
    compared = [one for one in cases if one.as_in_paper]
    ordered = sorted(
        (
            one
            for one in compared
            if len({each.first.engine for each in _same_run(one, compared)}) > 1
        ),
        key=lambda case: (case.first.shares, case.first.grain, -case.efficiency.value),
    )
    return table_of(columns, ordered)


_TERMS = definitions(
    f"""
    sample = A forecast of one member of the ensemble: one call.
    T_r = Mean time of a sample on its node, measured there.
    T_c = Mean time of a call at the client, from its begin until the result is there.
    T_rec = Mean time from the end of a sample until the client had its result.
    T_e = Elapsed time, from the first call to the last result, without start-up.
    efficiency = Samples of a processor times T_r, divided by T_e: 5 T_r/T_e where each processor
        runs five samples. With samples of 12 s, targets are {percent(_CALL_TARGET)} of T_r/T_c and
        {percent(_TARGET, 0)} of efficiency, with 200 processors behind 1 Gbit/s.
    at least = What T_e cannot be below, however samples are distributed: all results have to pass
        the links, and those of a round cannot before the round has ended.
    at most = The efficiency that this allows.
    simulated = T_e of a simulation of the run, with its T_r, its links, and its work for a call.
        `difference` is the share by which the run took longer.
    work = Processor time of this machine for a call: client, agents and workers. In a run with real
        clusters the client has only its own.
    ahead = Calls that wait for each processor, beside the one that it runs; 0 in the paper. A call
        that waits says nothing of the way, so T_c is not shown then.
    start-up = Time from the request for workers until all were ready, batch system included.
    memory = Of client, agents, workers and batch systems, shared pages counted once.
    """
)
