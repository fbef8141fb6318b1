"""Run the cases of the chosen areas interleaved, print their tables and keep all values."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import (
    cluster_starts,
    cluster_tasks,
    data_operations,
    hosts_calls,
    hosts_exchange,
    hosts_peers,
    hosts_workers,
    libraries,
    linpack,
    maps,
    modules,
    server_clients,
    server_inference,
    server_latency,
    server_throughput,
    starts,
    sync_instants,
    sync_services,
)
from benchmarks.figures import Area, Extent, Row
from benchmarks.measuring import Watcher, measure
from benchmarks.table import markdown_of, print_area
from gridbench.atomic_write import replace_file, write_file
from gridbench.bench.points import DataPoint, Points, stands
from gridbench.engines.environments import ONE_THREAD
from gridbench.errors import InputError
from gridbench.formats import processors
from gridbench.machine.judgement import disturbed_count, sentence
from gridbench.machine.options import Policy
from gridbench.machine.quiet import settle
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt
from gridbench.progress import Steps
from gridbench.records import RecordError, from_record
from gridbench.results_folder import exclusive_file_lock, say_failed_before, unwritable
from gridbench.run.machine import machine_facts, versions
from gridbench.statistics.claims import ENOUGH
from gridbench.statistics.series import Series
from gridbench.terminal import say

AREAS: dict[str, Mapping[str, Callable[[Extent], Area]]] = {
    "grain": {"": maps.grain_area},
    "modules": {"": modules.area},
    "large": {"": maps.large_area},
    "libraries": {"": libraries.area},
    "journal": {"": maps.journal_area},
    "starts": {"": starts.area},
    "hosts": {
        "null": hosts_calls.null_area,
        "argument": hosts_calls.argument_area,
        "map": hosts_calls.map_area,
        "shared": hosts_peers.shared_area,
        "exchange": hosts_exchange.exchange_area,
        "peers": hosts_peers.peers_area,
        "start": hosts_workers.start_area,
        "many": hosts_workers.many_area,
        "distance": hosts_calls.distance_area,
        "cascade": hosts_exchange.cascade_area,
    },
    "cluster": {
        "start-workers": cluster_starts.start_area,
        "slurm-tasks": cluster_tasks.on_slurm,
        "gridengine-tasks": cluster_tasks.on_grid_engine,
        "jobs": cluster_tasks.jobs_area,
        "numbers": cluster_starts.numbers_area,
    },
    "sync": {
        "null": sync_instants.null_area,
        "hosts": sync_instants.hosts_area,
        "simultaneity": sync_instants.simultaneity_area,
        "files": sync_services.files_area,
        "gfarm": sync_services.gfarm_area,
        "redis": sync_services.redis_area,
    },
    "data": {
        "driver": data_operations.driver_area,
        "latency": data_operations.latency_area,
        "loading": data_operations.loading_area,
        "omission": data_operations.omission_area,
        "scenario-1": partial(data_operations.scenario_area, number=1),
        "scenario-2": partial(data_operations.scenario_area, number=2),
        "scenario-3": partial(data_operations.scenario_area, number=3),
    },
    "server": {
        "null": server_latency.null_area,
        "argument": server_latency.argument_area,
        "first": server_latency.first_area,
        "rate": server_throughput.rate_area,
        "inference": server_inference.area,
        "tasks": server_throughput.tasks_area,
        "idle": server_clients.idle_area,
        "soak": server_clients.soak_area,
        "restart": server_clients.restart_area,
        "lookup": server_latency.lookup_area,
    },
    "linpack": {
        "loopback": linpack.loopback_area,
        "model": linpack.model_area,
        "clients": linpack.clients_area,
        "servers": linpack.servers_area,
        "byte-order": linpack.byte_order_area,
    },
}
"""What makes each part of an area; the part of one without parts has no name."""

_TITLES = {
    "hosts": "Many machines",
    "cluster": "Workers that batch systems start",
    "sync": "Tasks that begin at one instant",
    "data": "Data grids",
    "server": "A server that many clients share",
    "linpack": "Remote Linpack",
}
"""Of pages with one area alone."""

RUNS = {Extent.TRIAL: 1, Extent.USUAL: 5, Extent.FULL: 7}


@dataclass(frozen=True, kw_only=True, slots=True)
class AreaRequest:
    """What the user asked for."""

    areas: Sequence[str]
    """Names; none: all."""
    cases: Sequence[str] = ()
    """Parts of areas that have several, by their names; none: all."""
    extent: Extent = Extent.USUAL
    runs: int | None = None
    out: Path | None = None
    markdown: Path | None = None
    fresh: bool = False
    """Forget what `out` holds of a call that was cut off."""
    retry_failed: bool = False
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)


def run_areas(request: AreaRequest) -> int:
    """Measure, print, keep. Returns the exit status: 1 if something could not be measured, 3 if
    other programs disturbed it, so that nothing can be claimed, and that was not accepted."""
    unknown = [name for name in request.areas if name not in AREAS]
    if unknown:
        raise InputError(
            f"there is no area `{unknown[0]}`", remedy=f"the areas are {', '.join(AREAS)}"
        )
    chosen = _chosen(request)
    with exclusive_file_lock(request.out, request.printing.progress()):
        return _run(request, chosen)


def _run(request: AreaRequest, chosen: Sequence[Area]) -> int:
    runs = request.runs or RUNS[request.extent]
    console, errors = request.printing.tables(), request.printing.progress()
    record: dict[str, Any] = {
        "machine": machine_facts(),
        "versions": versions(),
        "environment": ONE_THREAD,
        "extent": request.extent.value,
        "runs": runs,
        "measured": list(request.areas or AREAS),
        "areas": {},
        "complete": False,
    }
    points = Points() if request.fresh else _earlier(request, record, errors)
    mine = {case.name for area in chosen for case in area.cases}
    failed = [one for one in points.run if one.status != "ok" and one.workload in mine]
    say_failed_before(errors, [f"{one.workload}, round {one.round + 1}" for one in failed], "run")

    def whole() -> dict[str, Any]:
        return record | {"points": list(map(asdict, points.all))}

    def save() -> None:
        save_record(request.out, whole())

    page: list[str] = []
    settle(request.policy, errors)
    save()  # only now: a call that measures nothing leaves earlier results alone
    save_page(request.markdown, [_head(record, points)])
    missing, measured = False, list[Row]()
    with Interrupt() as interrupt:
        for number, area in enumerate(chosen):
            with Steps(errors, f"{area.name}: run") as steps:
                watcher = Watcher(steps, area, areas_left=len(chosen) - number - 1, save=save)
                measure(area, runs, points, check=interrupt.check, watcher=watcher)
            rows = area.rows(points)
            print_area(console, area.title, rows)
            page.append(markdown_of(area.title, rows))
            page += save_picture(request.markdown, area, points)
            record["areas"][area.name] = {"title": area.title, "rows": list(map(as_record, rows))}
            record["complete"] = not interrupt.came and number + 1 == len(chosen)
            save()
            save_page(request.markdown, [_head(record, points), *page])
            measured += rows
            missing |= any(row.problems for row in rows)
            if interrupt.came:
                stored = f"; --out {request.out} resumes" if request.out else ""
                say(console, f"stopped: what was measured stands above{stored}")
                break
    request.printing.document(whole)
    if interrupt.came:
        return interrupt.exit_status
    if count := _disturbed(record, points):
        say(console, sentence(count))
    if missing:
        return 1
    return request.policy.exit_status(claims=_claims(measured, points))


def _claims(rows: Sequence[Row], points: Points) -> bool:
    """Whether other programs have left anything that can be claimed."""
    if not points.disturbed:
        return True
    if any(row.peer for row in rows):
        return any(row.claimed for row in rows)
    return any(row.ours.undisturbed.values for row in rows)


def _disturbed(record: dict[str, Any], points: Points) -> str:
    processors = record["machine"].get("cores")
    return disturbed_count(len(points.disturbed), len(points.run), "runs", processors)


def _earlier(request: AreaRequest, record: dict[str, Any], console: Console) -> Points:
    """What the file has of a call that was cut off, if that was one like this one, without what is
    tried again.

    InputError for a file that is damaged or of something else, which would be lost.
    """
    out = request.out
    try:
        text = out.read_text(encoding="utf-8") if out else ""
        if not text:
            return Points()
        before = json.loads(text)
        if before["complete"]:
            return Points()
        every = [from_record(DataPoint, point) for point in before["points"]]
    except OSError:  # it is not there; or it cannot be written either, which is reported then
        return Points()
    except (ValueError, RecursionError, TypeError, KeyError, RecordError):
        raise InputError(
            "is no file of `python -m benchmarks`, or it is damaged",
            file=out,
            remedy="choose another --out, or add --fresh to replace it",
        ) from None
    points = Points(one for one in every if stands(one, retry_failed=request.retry_failed))
    count = len(points.run)
    if not count:
        return points
    if _likeness(before) != _likeness(record):
        say(console, f"{out}: is of another machine, version or extent: all is measured again")
        return Points()
    say(console, f"{out}: {count} runs of a call that was cut off are kept; --fresh forgets them")
    return points


def _likeness(record: dict[str, Any]) -> tuple[Any, ...]:
    """What calls have in common whose values may stand side by side."""
    machine = record.get("machine", {})
    facts = [machine.get(name) for name in ("host", "processor", "cores")]
    return (*facts, record.get("versions"), record.get("extent"))


def _chosen(request: AreaRequest) -> list[Area]:
    """The areas, or parts of them, in the order of the list above."""
    names = request.areas or AREAS
    makers = [one for name, own in AREAS.items() if name in names for one in own.items()]
    if request.cases:
        parts = dict.fromkeys(part for part, _ in makers if part)
        unknown = [name for name in request.cases if name not in parts]
        if unknown:
            known = f"the cases are {', '.join(parts)}" if parts else "these areas have no cases"
            raise InputError(f"there is no case `{unknown[0]}`", remedy=known)
        makers = [one for one in makers if one[0] in request.cases]
    return [make(request.extent) for _, make in makers]


def _head(record: dict[str, Any], points: Points) -> str:
    machine = record["machine"]
    title, again = "Measured by `python -m benchmarks`", "make bench"
    if len(record["measured"]) == 1:
        (area,) = record["measured"]
        title, again = _TITLES.get(area, title), f"make bench-{area}"
    lines = [
        f"Measured by `python -m benchmarks` on {machine.get('cores', '?')} processors "
        f"({machine.get('processor', '?')}), in {_rounds(record['runs'])} "
        f"({record['extent']}); `{again}` measures all of it again. Shown are medians with the "
        "smallest and the largest value; ratios are of values of the same round."
    ]
    if others := [point.load.get("others_cpu", 0.0) for point in points.run]:
        lines.append(
            f"Other work on the machine took {processors(statistics.median(others))} processors"
            f" during a run (median; from {processors(min(others))} to {processors(max(others))})."
        )
    if count := _disturbed(record, points):
        lines.append(
            f"{sentence(count)} No ratio to a peer is claimed from these, nor from fewer than"
            f" {ENOUGH} others, nor where they are on both sides of 1."
        )
    return f"# {title}\n\n{' '.join(lines)}\n"


def _rounds(number: int) -> str:
    return f"at most {number} rounds" if number > 1 else "one round"


def save_picture(page: Path | None, area: Area, points: Points) -> list[str]:
    """Write the area's picture beside the page; the text that shows it there, if there is one."""
    if page is None or area.picture is None:
        return []
    file = page.with_name(f"{page.stem}-{area.part or area.name}.svg")
    write_file(file, area.picture(points))
    return [f"![{area.title}]({file.name})\n"]


def save_page(file: Path | None, parts: Sequence[str]) -> None:
    """Write the parts as one Markdown file, if there is one. InputError if that cannot be."""
    if file is not None:
        write_file(file, "\n".join(parts))


def as_record(row: Row) -> dict[str, Any]:
    """A row for the file."""
    return {
        "what": row.what,
        "unit": row.unit,
        "gridrpc": _values(row.ours),
        "peer": _values(row.peer),
        "limit": _values(row.limit),
        "ratio_to_peer": _number(row.ratio_to_peer),
        "ratio_to_limit": _number(row.ratio_to_limit),
        "ratios": row.ratios,
        "target": row.target
        and {
            "bound": row.target.bound,
            "at_least": row.target.at_least,
            "of_peer": row.target.of_peer,
            "of_limit": row.target.of_limit,
        },
        "reached": row.reached,
        "problems": row.problems,
    }


def _values(measured: Series | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {"median": _number(measured.median), "values": measured.values}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value  # JSON has no NaN


def save_record(file: Path | None, record: dict[str, Any]) -> None:
    """Write all as JSON, if there is a file to write to. InputError if that cannot be.

    Who is ended while it writes leaves the file as it was before.
    """
    if file is None:
        return
    try:
        replace_file(file, json.dumps(record, indent=1) + "\n")
    except OSError as error:
        raise unwritable(file, error) from error
