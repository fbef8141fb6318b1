"""Cases on data grids as an `Experiment`: which cases there are, and how one is run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from gridbench.datagrid import presets
from gridbench.datagrid.cluster import DataGridCluster
from gridbench.datagrid.engine import DataGridEngine, find_engine
from gridbench.datagrid.figures import throughput, verdict
from gridbench.datagrid.options import (
    DataGridParameters,
    DataScenarioParameters,
    YcsbParameters,
)
from gridbench.datagrid.plan import (
    DataGridOrder,
    DataGridWork,
    WarmUpLimits,
    capacity,
    check_machine,
    check_members,
    machine_need,
    missing,
    need_of,
    plan_of,
    with_rate,
    without,
)
from gridbench.datagrid.record import FORM, TIMELINES, DataGridCase, write_timeline
from gridbench.datagrid.result_kind import DATA_GRIDS
from gridbench.datagrid.session import DataGridSession, open_session
from gridbench.datagrid.workload import DataGridWorkload, TaskParameters, read_setup
from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import as_given, counted, digits, size
from gridbench.jsonl_store import Header, RecordFile, load_records
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.run.machine import available_memory
from gridbench.terminal import new_table, say

DEFAULT_ENGINE = "embedded"
_OPTIONS = {
    "warm_up": "--warm",
    "processes": "--processes",
    "member_memory": "--member-memory",
    "backups": "--backups",
    "where": "the hosts",
}
"""How users give what the header of results has."""


def of_setup(setup: Path | None, parameters: DataGridParameters) -> DataGridExperiment:
    """One case: that of a set-up file or, without one, a small one for the first look."""
    workload = (
        presets.FIRST_LOOK if setup is None else DataGridWorkload(parameters=read_setup(setup))
    )
    name = "data" if setup is None else f"data-{setup.stem}"
    return _experiment(name, lambda _: [workload], parameters)


def of_scenarios(names: Sequence[str], parameters: DataScenarioParameters) -> DataGridExperiment:
    """The cases of scenarios; those that do not fit into the members are made smaller, if they are
    not available in full."""
    numbers = presets.parse_scenarios(names)

    def workloads(work: DataGridWork) -> list[DataGridWorkload]:
        def fits(own: TaskParameters) -> int:
            return min(
                capacity(own, one.manifest, work.parameters.backups, _memory(work, one, own))
                for one in work.engines
            )

        return [
            workload
            for number in numbers
            for workload in presets.scenario(
                number, parameters.scale, None if parameters.full else fits
            )
        ]

    name = f"data-scenario-{'-'.join(map(str, numbers))}"
    return _experiment(name, workloads, parameters.measuring)


def of_ycsb(names: Sequence[str], parameters: YcsbParameters) -> DataGridExperiment:
    """Core workloads of YCSB."""
    letters = presets.parse_ycsb(names)
    found = [
        one
        for letter in letters
        for one in presets.ycsb(letter, parameters.scale, records=parameters.records)
    ]
    return _experiment(f"data-ycsb-{''.join(letters)}", lambda _: found, parameters.measuring)


def _experiment(
    name: str,
    workloads: Callable[[DataGridWork], Sequence[DataGridWorkload]],
    parameters: DataGridParameters,
) -> DataGridExperiment:
    """`workloads` may depend on all other choices. InputError for what cannot be meant."""
    if parameters.no_warm and parameters.warm is not None:
        raise InputError("--warm and --no-warm contradict each other", remedy="choose one of them")
    warm_up = WarmUpLimits() if parameters.warm is None else WarmUpLimits.of(parameters.warm)
    work = DataGridWork(
        name=name,
        engines=parameters.engines or (find_engine(DEFAULT_ENGINE),),
        workloads=(),
        parameters=parameters,
        warm_up=None if parameters.no_warm else warm_up,
        available=available_memory(),
        where=parameters.hosts.where(),
    )
    work = replace(work, workloads=tuple(workloads(work)))
    check_memory(work)
    return DataGridExperiment(work)


def check_memory(work: DataGridWork) -> None:
    """InputError if a case does not fit into its members, or into this machine."""
    engines = {one.name: one.manifest for one in work.engines}
    backups = work.parameters.backups
    for one in plan_of(work).wanted:
        manifest, memory = engines[one.engine], work.memory_of(one.members)
        if manifest.members:
            check_members(one, manifest, backups, memory)
        if not work.elsewhere:
            check_machine(one, manifest, backups, memory, work.available)


def _memory(work: DataGridWork, engine: DataGridEngine, own: TaskParameters) -> int:
    """Bytes for data: of a member or, without members, of the client's process."""
    return work.memory_of(own.mnodes if engine.manifest.members else 1)


class DataGridExperiment(Experiment[DataGridOrder, DataGridCase]):
    """Cases of all workloads, data grids and loops."""

    kind = DATA_GRIDS
    form = FORM

    def __init__(self, work: DataGridWork) -> None:
        """InputError if there is no case that its data grid can have."""
        self.work = work
        self._plan = plan_of(work)
        self._session: DataGridSession | None = None
        self._cluster: tuple[Hashable, DataGridCluster] | None = None
        self._clusters = ExitStack()
        self._unusable: dict[str, InputError] = {}

    @property
    def name(self) -> str:
        """After the set-up file, the scenarios or the workloads."""
        return self.work.name

    def record(self) -> dict[str, Any]:
        """Options and hosts."""
        return self.work.record()

    def prepare(self, bench: Bench) -> None:
        """Build the engines that are not there, or not of these sources. InputError if none can be
        used."""
        for one, why in self._plan.skipped:
            say(bench.console, f"{one.describe()}: left out, as {why}")

        def notify(name: str, line: str) -> None:
            say(bench.console, f"{name}: {line}")

        engines = self.work.engines
        for engine in engines:
            try:
                engine.ensure(partial(notify, engine.name))
            except InputError as error:
                self._unusable[engine.name] = error
                if len(engines) > 1:
                    notify(engine.name, f"left out: {error}")
        if len(self._unusable) == len(engines):
            raise next(iter(self._unusable.values()))

    def open(self, folder: Path, header: Header, *, fresh: bool) -> RecordFile[DataGridCase]:
        """InputError also if it has cases of other options, or of an engine of the same name that
        is another one."""
        return open_folder(folder, header, self.work.engines, fresh=fresh)

    def batches(
        self, bench: Bench, records: Sequence[DataGridCase]
    ) -> Iterator[Sequence[DataGridOrder]]:
        """See `plan_of`."""
        del bench, records
        yield self._plan.wanted

    def missing(
        self, cases: Sequence[DataGridOrder], records: list[DataGridCase], policy: Policy
    ) -> Sequence[DataGridOrder]:
        """What was disturbed is measured again, unless that is accepted."""
        return missing(cases, records, accepted=policy.accept)

    def without(
        self, cases: Iterable[DataGridOrder], failed: Sequence[DataGridOrder]
    ) -> list[DataGridOrder]:
        """Open loops that need the rate of a failed closed one are left out with it, and so are
        the cases of engines that cannot be used."""
        return [one for one in without(cases, failed) if one.engine not in self._unusable]

    def finished(self, folder: Path) -> None:
        """InputError if an engine could not be used."""
        del folder
        if self._unusable:
            raise next(iter(self._unusable.values()))

    def ready(self, case: DataGridOrder, records: list[DataGridCase]) -> DataGridOrder | str:
        """With the rate of its open loop."""
        return with_rate(case, records) or "its closed loop was not measured"

    def group(self, case: DataGridOrder) -> Hashable:
        """The cluster of one engine may not start; others may."""
        return case.engine

    def run(self, case: DataGridOrder, bench: Bench) -> DataGridCase:
        """Run a case, on the cluster that runs if it is the right one and whole."""
        if self._session is None:
            self._session = bench.stack.enter_context(
                open_session(self.work, bench.interrupt.check, bench.console)
            )
            bench.stack.enter_context(self._clusters)
        if self._cluster is None or self._cluster[0] != case.cluster:
            self._end_cluster()
            if bench.steps is not None:
                bench.steps.note(f"starting {case.engine}")
            cluster = self._clusters.enter_context(self._session.cluster(case))
            self._cluster = case.cluster, cluster
        cluster = self._cluster[1]
        found = self._session.measure(case, cluster, bench.steps)
        if found.status != "done" or not cluster.whole:
            self._end_cluster()
        return found

    def _end_cluster(self) -> None:
        self._cluster = None
        self._clusters.close()

    def saved(self, record: DataGridCase, number: int, bench: Bench) -> None:
        """Write the timeline of the case."""
        name = f"{number:03}-{record.engine}.parquet"
        write_timeline(record, bench.folder / TIMELINES / name)

    def outcome(self, record: DataGridCase) -> str:
        """Throughput, and whether it is valid."""
        if record.status == "failed":
            return f"failed: {record.why.splitlines()[0]}"
        rate = f"{digits(throughput(record))} operations/s"
        kind, reasons = verdict(record)
        return rate if kind == "valid" else f"{rate}; {kind}: {'; '.join(reasons)}"

    def failed(self, record: DataGridCase) -> bool:
        """Also if data were wrong."""
        return verdict(record)[0] == "failed"


_REMEDY = (
    "give the same options, with which cases and data grids can be added; or choose another --out,"
    " or add --fresh to measure all of it again"
)


def open_folder(
    folder: Path, header: Header, engines: Sequence[DataGridEngine], *, fresh: bool
) -> RecordFile[DataGridCase]:
    """The cases of a folder, or an empty file if it has none or `fresh`.

    InputError if it cannot be used or is damaged, or if what it holds was measured with other
    options, on another machine, or with an engine of the same name that is another one.
    """
    path = folder / FORM.file
    if not fresh and path.is_file() and path.stat().st_size:
        before, cases = load_records(path, FORM)
        _refuse_other_options(path, before.options, header.options)
        _refuse_other_engines(path, cases, engines)
    return FORM.open(folder, header, fresh=fresh)


def _refuse_other_options(
    path: Path, before: Mapping[str, object], now: Mapping[str, object]
) -> None:
    names = [name for name in dict(now) | dict(before) if before.get(name) != now.get(name)]
    if names:
        text = "; ".join(
            f"{_OPTIONS.get(name, name)}: it was {_describe(name, before.get(name))},"
            f" and now is {_describe(name, now.get(name))}"
            for name in names
        )
        raise InputError(f"holds cases with other options: {text}", file=path, remedy=_REMEDY)


def _refuse_other_engines(
    path: Path, cases: Iterable[DataGridCase], engines: Iterable[DataGridEngine]
) -> None:
    known = {case.engine: case for case in cases}
    for engine in engines:
        case, now = known.get(engine.name), engine.manifest.stated
        if case is None or case.stated == now:
            continue
        if case.stated.get("version") != now["version"]:
            what = f"version {case.stated.get('version')} of {case.title}, and now it is"
            what += f" {now['version']}"
        else:
            what = f"{case.title} that was configured otherwise, as its engine.toml says"
        raise InputError(
            f"holds cases of {what}",
            file=path,
            remedy="choose another --out, or add --fresh to measure all of it again",
        )


def _describe(name: str, value: Any) -> str:
    """A value of the header in a user's words."""
    if name == "warm_up":
        return "none" if value is None else as_given(value["most"])
    if name == "where":
        return _where(value or {})
    if value is None:
        return "not given"
    return size(value) if name == "member_memory" else f"{value}"


def _where(value: Mapping[str, Any]) -> str:
    if value.get("emulated"):
        return f"{value['emulated']}, emulated on {value.get('nodes')} nodes"
    names = [*value.get("hosts", ()), *value.get("servers", ())]
    if value.get("grid"):
        names.append(value["grid"])
    return ", ".join(names) or "this machine"


def list_cases(work: DataGridWork, printing: Printing) -> None:
    """Print a row for each case, in the order in which they would be run: objects that there are in
    the end, what each member needs of the memory that it has, and all processes together. Below it
    stands what is not as the scenario has it; at the end, what may not be meant."""
    plan = plan_of(work)
    engines = {one.name: one for one in work.engines}
    rows = [_row(work, engines[one.engine], one) for one in plan.wanted]
    table = new_table()
    table.add_column("case", overflow="fold")
    for name in ("objects", "data", "each member", "in all"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["case"] if not row["repeat"] else f"{row['case']}, again",
            f"{row['objects']:,}",
            size(row["bytes"]),
            f"{size(row['member_needs'])} of {size(row['member_memory'])}"
            if row["member_memory"]
            else "",
            size(row["memory"]),
        )
        if not row["repeat"]:
            for note in row["notes"]:
                table.add_row(f"  {note}")
    console = printing.tables()
    console.print(table)
    skipped = [{"case": one.describe(), "why": why} for one, why in plan.skipped]
    for left_out in skipped:
        console.print("{case}: left out, as {why}".format(**left_out))
    clusters = sum(members > 0 for (_, members), _ in groupby(plan.wanted, attrgetter("cluster")))
    cautions = work.cautions()
    for one in cautions:
        console.print(one)
    console.print(f"{counted(len(rows), 'case')}, {counted(clusters, 'start')} of a cluster")
    printing.document(lambda: {"cases": rows, "skipped": skipped, "cautions": cautions})


def _row(work: DataGridWork, engine: DataGridEngine, wanted: DataGridOrder) -> dict[str, Any]:
    manifest, memory = engine.manifest, work.memory_of(wanted.members)
    workload = wanted.workload
    need = need_of(wanted, manifest, work.parameters.backups)
    return {
        "case": wanted.describe(),
        "engine": wanted.engine,
        "label": workload.label,
        "scenario": workload.scenario,
        "parameters": workload.parameters.to_dict(),
        "scaled": dict(workload.scaled),
        "mix": None if workload.mix is None else dict(workload.mix),
        "loop": wanted.loop,
        "rate": wanted.rate,
        "share": wanted.share,
        "repeat": wanted.repeat,
        "processes": wanted.processes,
        "objects": workload.at_most,
        "bytes": workload.at_most * workload.parameters.object_bytes,
        "member_needs": need.member,
        "member_memory": memory if wanted.members else 0,
        "memory": machine_need(wanted, manifest, work.parameters.backups, memory),
        "notes": workload.scaled_text(),
    }
