"""Many clients: figures and findings of records made by hand, the document, and the rules."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import cycle, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from rich.console import Console

import gridrpc
from clients_cases import HEADER, QUIET, call_of, case_of, sample_of, steady, write_folder
from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.linpack.client import (
    CallFailed,
    CallTimes,
    ClientOrder,
    LinpackClient,
    LinpackConnection,
)
from gridbench.linpack.clients_document import document_of
from gridbench.linpack.clients_experiment import ClientsExperiment
from gridbench.linpack.options import ClientsParameters
from gridbench.linpack.paper import call_seconds, findings, paper_cells
from gridbench.linpack.record import (
    ClientsCase,
    ClientsCell,
    ServedCall,
    Spread,
    cells_of,
    growth_of,
    is_flat,
)
from gridbench.linpack.servers import AuditLog, with_enqueue
from gridbench.pages.document import markdown
from gridbench.pages.render import page
from gridbench.pages.terminal import print_document
from gridbench.results.table import measures_of
from gridbench.statistics.interval import Interval
from judging import DISTURBED, judged, outcomes
from running import REPOSITORY

if TYPE_CHECKING:
    from gridbench_testbed.services.gridrpc_server import GridrpcServer

OPERATIONS = 2 / 3 * 600**3 + 2 * 600**2  # 144.72 million
BYTES = 8 * 600**2 + 20 * 600


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-9)


def spread(largest: float, least: float, mean: float) -> Spread:
    return Spread(near(largest), near(least), near(mean))  # type: ignore[arg-type]


# ---- Figures


def test_figures_of_two_calls_worked_out_by_hand() -> None:
    # Of 1 s and 4 s: each waits for 10 % and runs for 80 %, so that a fifth is communication.
    cell = ClientsCell([case_of([call_of(0, 0.0, 1.0), call_of(0, 10.0, 4.0)])])
    assert cell.performance == spread(OPERATIONS, OPERATIONS / 4, OPERATIONS * 5 / 8)
    assert cell.response == spread(0.08, 0.02, 0.05)
    assert cell.wait == spread(0.32, 0.08, 0.2)
    assert cell.throughput == spread(BYTES / 0.2, BYTES / 0.8, BYTES * (5 + 1.25) / 2)
    assert cell.in_progress == near(5 / 60)
    assert (cell.utilisation, cell.load_average) == (0.5, 2.0)
    assert cell.server_share == near(0.4)


def test_calls_that_ended_otherwise_are_counted_and_have_no_figures() -> None:
    calls = [
        call_of(0, 0.0, 1.0),
        call_of(1, 0.0, 9.0, ending="error", why="the worker was lost"),
        ServedCall(client=2, submit=1.0, ending="lost", why="no result after 300 s"),
        call_of(3, 0.0, 1.0, ending="wrong"),
    ]
    cell = ClientsCell([case_of(calls)])
    assert [cell.ended(one) for one in ("ok", "error", "lost", "wrong")] == [1, 1, 1, 1]
    assert cell.performance == spread(OPERATIONS, OPERATIONS, OPERATIONS)
    # The lost call is not in progress forever: when it ended is not known.
    assert cell.in_progress == near((1 + 9 + 1) / 60)
    assert math.isnan(calls[2].seconds)
    assert math.isnan(calls[2].wait)


def test_the_deviation_of_clients_is_from_the_mean_of_their_means() -> None:
    # 1, 1 and 4 times as fast: the mean is 2, and the third is twice as fast.
    calls = [call_of(0, 0.0, 4.0), call_of(1, 0.0, 4.0), call_of(2, 0.0, 1.0)]
    assert ClientsCell([case_of([*calls, call_of(2, 9.0, 1.0)])]).deviation == near(1.0)
    assert math.isnan(ClientsCell([case_of(calls[:1])]).deviation)


def test_samples_count_by_their_length_while_clients_begin_calls() -> None:
    samples = (
        replace(sample_of(5.0, busy=1.0), seconds=5.0),
        replace(sample_of(6.0, busy=0.4), seconds=1.0),
        sample_of(65.0, busy=0.0),
    )
    cell = ClientsCell([case_of([call_of(0, 0.0, 1.0)], samples=samples)])
    assert cell.utilisation == near((5 * 1.0 + 0.4) / 6)
    assert math.isnan(ClientsCell([case_of([call_of(0, 0.0, 1.0)], samples=())]).utilisation)


def test_disturbed_rounds_are_left_out_where_others_are_not() -> None:
    quiet, busy = case_of([call_of(0, 0.0, 1.0)]), case_of([call_of(0, 0.0, 2.0)], repeat=1)
    busy = replace(busy, load=DISTURBED)
    (cell,) = cells_of([quiet, busy])
    assert cell.cases == [quiet]
    assert cell.valid
    (cell,) = cells_of([busy])
    assert cell.cases == [busy]
    assert not cell.valid


def test_memory_is_judged_in_long_cases_only() -> None:
    def soak(seconds: float, grown: int) -> ClientsCase:
        samples = [replace(sample_of(5.0 * n), memory=(40 << 20) + n * grown) for n in range(100)]
        return case_of([call_of(0, 0.0, 1.0)], seconds=seconds, samples=tuple(samples))

    assert growth_of(soak(60.0, 0)) is None
    assert is_flat(soak(60.0, 0)) is None
    assert growth_of(soak(600.0, 0)) == Interval(0.0, 0.0, 0.0)
    growth = growth_of(soak(600.0, 1 << 20))
    assert growth is not None
    # From the second of nine parts, which begins with sample 11, to the last: 88 MB.
    assert growth.value == near(88 << 20)
    assert growth.high - growth.low < 1
    assert is_flat(soak(600.0, 1 << 16)) is True
    assert is_flat(soak(600.0, 1 << 20)) is False


def test_memory_that_goes_up_and_down_does_not_grow() -> None:
    sizes = [(100 + 80 * math.sin(n / 5)) * (1 << 20) for n in range(120)]
    samples = [replace(sample_of(5.0 * n), memory=round(size)) for n, size in enumerate(sizes)]
    case = case_of([call_of(0, 0.0, 1.0)], seconds=600.0, samples=tuple(samples))
    assert is_flat(case) is True
    growth = growth_of(case)
    assert growth is not None
    assert growth.low < 0 < growth.high


# ---- When the server accepted a call


def test_the_time_of_the_audit_log_is_within_the_client_s_stamps() -> None:
    call = replace(call_of(0, 1.0, 1.0), enqueue=None)  # the function runs from 1.1 s on
    assert with_enqueue(call, 1.05).enqueue == 1.05
    assert with_enqueue(call, 0.95).enqueue == 1.0
    assert with_enqueue(call, 1.15).enqueue == 1.1
    assert with_enqueue(call, None).enqueue is None
    assert with_enqueue(replace(call, dequeue=None), 1.05).enqueue is None


def test_entries_of_the_audit_log_are_found_by_their_traces(tmp_path: Path) -> None:
    file = tmp_path / "state" / "audit.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps({"event": "end", "trace": "early"}) + "\n")
    audit = AuditLog(cast("GridrpcServer", SimpleNamespace(folder=tmp_path)))
    now = datetime.now(UTC).isoformat()
    start = time.monotonic()
    entries: list[dict[str, object]] = [
        {"event": "connect", "time": now},
        {"event": "end", "time": now, "seconds": 0.25, "outcome": "ok", "trace": "one"},
        {"event": "end", "time": now, "seconds": 0.25, "outcome": "ok"},
        {"event": "end", "time": now, "seconds": 0.75, "outcome": "ok", "trace": "two"},
    ]
    with file.open("a") as log:
        log.writelines(json.dumps(one) + "\n" for one in entries)
        log.write('{"event":"end","trace":"half')
    accepted, error = audit.accepted(start, {"one", "two"})
    assert set(accepted) == {"one", "two"}
    assert accepted["one"] - accepted["two"] == pytest.approx(0.5, abs=1e-5)
    assert -0.5 < accepted["one"] < 0
    assert 0 <= error < 0.1


# ---- A client


class FakeConnection(LinpackConnection):
    """Calls that take `seconds` and end in the given ways."""

    def __init__(self, endings: Sequence[object], seconds: float = 0.0) -> None:
        super().__init__(np.eye(2), np.full(2, 0.5))
        self._endings = cycle(endings)
        self._seconds = seconds

    def call(self, timeout: float) -> CallTimes:
        assert timeout == 300.0
        time.sleep(self._seconds)
        ending = next(self._endings)
        if isinstance(ending, Exception):
            raise ending
        self.x[...] = ending
        return CallTimes(0.0, 0.0, clock_error=0.25, trace="00-1-2-00")


def client_of(remote: FakeConnection, step: float, probability: float = 1.0) -> LinpackClient:
    order = ClientOrder(
        client=3, server="gridrpc", address="", step=step, phase=0.0, probability=probability,
        seed="1", timeout=300.0,
    )  # fmt: skip
    return LinpackClient(order, remote)


def test_a_client_says_how_each_call_ended() -> None:
    endings = [0.5, 0.6, gridrpc.WorkerLost("gone"), CallFailed("refused"), TimeoutError()]
    start = time.monotonic()
    calls = client_of(FakeConnection(endings), 0.01).run(start, start + 1.0)[:5]
    assert [call["ending"] for call in calls] == ["ok", "wrong", "error", "error", "lost"]
    reported = ["", "", "gone", "refused", "no result after 300 s"]
    assert [call.get("why", "") for call in calls] == reported
    assert ["complete" in call for call in calls] == [True, True, True, True, False]
    assert ["dequeue" in call for call in calls] == [True, True, False, False, False]
    assert {call["client"] for call in calls} == {3}
    assert (calls[0]["clock_error"], calls[0]["trace"]) == (0.25, "00-1-2-00")


def test_steps_that_come_during_a_call_are_left_out() -> None:
    start = time.monotonic()
    calls = client_of(FakeConnection([0.5], seconds=0.25), 0.1).run(start, start + 0.8)
    # At 0, 0.3 and 0.6 s, or later where the machine is busy, but at a step in any case.
    assert 1 <= len(calls) <= 3
    assert calls[0]["submit"] < 0.25
    gaps = [b["submit"] - a["submit"] for a, b in pairwise(calls)]
    assert all(gap > 0.25 for gap in gaps)


def test_a_client_calls_with_its_probability() -> None:
    start = time.monotonic()
    calls = client_of(FakeConnection([0.5]), 0.001, probability=0.25).run(start, start + 0.5)
    assert len(calls) < 250


# ---- The paper


def test_the_published_tables_are_complete() -> None:
    known = paper_cells()
    policies, orders, clients = (sorted({key[part] for key in known}) for part in range(3))
    assert (policies, orders, clients) == (["all", "one"], [600, 1000, 1400], [1, 4, 8, 12, 16])
    assert len(known) == 2 * 3 * 5
    cell = known["all", 1400, 16]
    assert cell.performance == spread(35.27e6, 17.80e6, 23.25e6)
    assert cell.wait == Spread(0.89, 0.03, 0.06)
    assert cell.throughput == spread(0.48e6, 0.21e6, 0.28e6)
    assert (cell.utilisation, cell.load_average, cell.calls) == (1.0, 30.29, 200)


def test_the_paper_s_call_of_one_client() -> None:
    # 144.72 million operations at 71.16 Mflop/s.
    assert call_seconds(600) == near(144.72 / 71.16)
    with pytest.raises(InputError, match="no time for n = 700"):
        call_seconds(700)
    with pytest.raises(InputError, match="cannot be scaled"):
        ClientsExperiment(ClientsParameters(sizes=(600, 700), steps=("scaled",)))


# ---- Findings


def measured(*, few: float, many: float, rounds: int = 2, **more: object) -> list[ClientsCase]:
    """All cores are so many times as fast as one core, with up to 4 clients and from 8 on."""
    return list(_measured(few, many, rounds, more))


def _measured(
    few: float, many: float, rounds: int, more: dict[str, object]
) -> Iterator[ClientsCase]:
    for repeat in range(rounds):
        for n in (1000, 1400):
            for clients in (1, 4, 8, 16):
                one = 80.0 / clients
                own = {"repeat": repeat, **more}
                yield steady("one", n, clients, one, **own)  # type: ignore[arg-type]
                ratio = few if clients <= 4 else many
                yield steady("all", n, clients, one * ratio, **own)  # type: ignore[arg-type]


def verdicts(cases: list[ClientsCase]) -> list[str]:
    return [one.holds for one in findings(cases, "paper")]


def test_what_the_paper_found_can_hold() -> None:
    found = findings(measured(few=1.5, many=0.95), "paper")
    assert [one.holds for one in found] == ["yes", "yes", "yes", "not decided", "yes"]
    few, many, line, load, library = (one.figures for one in found)
    assert few.startswith("all cores / one core, with up to 4 clients: 1.50× in 2 rounds; paper ")
    assert many.startswith("one core / all cores, from 8 clients on: 1.05× in 2 rounds; paper ")
    assert line.startswith("one core / all cores, with 8 clients: 1.05× in 2 rounds; paper ")
    # Calls of less than 1 s at steps of 5 s do not load a server.
    assert load.startswith("not tested: at most ")
    assert library.startswith("all cores / one core, from 8 clients on: 0.950× in 2 rounds; paper ")


def test_what_the_paper_found_can_be_wrong() -> None:
    found = findings(measured(few=1.0, many=1.2), "paper")
    assert [one.holds for one in found] == ["no", "no", "no", "not decided", "yes"]
    assert verdicts(measured(few=1.5, many=0.8))[-1] == "no"


def test_one_round_or_disturbed_ones_decide_nothing() -> None:
    undecided = ["not decided"] * 5
    assert verdicts(measured(few=1.5, many=0.95, rounds=1)) == undecided
    busy = [replace(one, load=DISTURBED) for one in measured(few=1.5, many=0.95)]
    found = findings(busy, "paper")
    assert [one.holds for one in found] == undecided
    assert "1.50× in 2 rounds, disturbed; paper" in found[0].figures
    assert verdicts([]) == undecided
    # Rounds that contradict each other.
    mixed = measured(few=1.5, many=0.9, rounds=1)
    mixed += [replace(one, repeat=1) for one in measured(few=1.5, many=1.1, rounds=1)]
    assert verdicts(mixed)[1] == "not decided"


def test_the_ratio_of_the_paper_is_of_the_same_cases() -> None:
    found = findings(measured(few=1.5, many=0.95), "paper")[2].figures
    # Table 2 by table 3, with 8 clients: 46.48 / 45.85 for n = 1000, 50.11 / 48.27 for n = 1400.
    assert found.endswith(f"paper {math.sqrt(46.48 / 45.85 * 50.11 / 48.27):.2f}×")


def test_the_server_holds_up_if_it_answers_all_calls_under_load() -> None:
    # A call of 16 clients takes 4 of 5 s: 12.8 of them are in progress at a time, while they begin.
    slow = OPERATIONS / 4 / 1e9
    loaded = steady("all", 600, 16, slow)
    (found,) = (one for one in findings([loaded], "paper") if "load of 16" in one.claim)
    assert found.holds == "yes"
    assert found.figures.startswith("all of 192 calls were answered, with up to 13 in progress")
    assert found.figures.endswith("paper: load average up to 30")
    bad = replace(loaded.calls[0], ending="lost", complete=None)
    for failing, reported in (
        (replace(loaded, calls=(bad, *loaded.calls[1:])), "1 of 192 calls failed"),
        (replace(loaded, restarts=1), "the server ended 1 time;"),
    ):
        (found,) = (one for one in findings([failing], "paper") if "load of 16" in one.claim)
        assert found.holds == "no"
        assert found.figures.startswith(reported)


# ---- The document


def sweep() -> list[ClientsCase]:
    cases = [one for one in measured(few=1.5, many=0.95) if one.n == 1000 or one.clients == 8]
    cases += [
        replace(one, steps="scaled", step=0.05)
        for one in cases
        if (one.repeat, one.n) == (0, 1000) and one.clients in (1, 16)
    ]
    failed = case_of([call_of(0, 0.0, 1.0, ending="error", why="the worker was lost")], clients=12)
    samples = tuple(sample_of(6.0 * n) for n in range(1, 101))
    soak = case_of([call_of(0, 0.0, 1.0)], n=1000, clients=64, seconds=600.0, samples=samples)
    return [*cases, replace(failed, why="1 of 1 call failed: the worker was lost"), soak]


def printed(cases: list[ClientsCase], width: int = 220) -> str:
    out = io.StringIO()
    print_document(Console(file=out, width=width), document_of(HEADER, cases))
    return out.getvalue()


def test_the_document_says_all_of_it() -> None:
    found = document_of(HEADER, sweep())
    same_as_golden(f"{markdown(found)}\nIn a terminal:\n\n{printed(sweep())}", "linpack/clients.md")


def test_a_page_draws_curves_and_run_charts() -> None:
    found = document_of(HEADER, sweep())
    names = [chart.name for chart in found.charts]
    assert [one for one in names if one.startswith("performance-")] == [
        "performance-scaled-1000",
        "performance-paper-1000",
    ]
    assert sum(one.startswith("run-") for one in names) == 15
    assert "one core each, paper" in page(found)


def test_few_cases_make_a_document_too() -> None:
    alone = [steady("one", 600, 1, 4.0)]
    text = markdown(document_of(HEADER, alone))
    assert "12 calls in 1 case: all were answered, and none was lost." in text
    assert "Findings of the paper: 0 confirmed, 0 refuted, 5 not decided." in text
    failed = [case_of([], status="failed", why="the server ended", clients=4, samples=())]
    text = markdown(document_of(HEADER, failed))
    assert ", failed: the server ended." in text


def test_a_disturbed_document_is_provisional() -> None:
    busy = [replace(one, load=DISTURBED) for one in measured(few=1.5, many=0.95)]
    found = document_of(HEADER, busy)
    assert found.sentences[0].startswith(
        "Provisional: Calls that get all cores in turn are 1.50× as"
    )
    assert "Other programs disturbed 32 of 32 cases." in found.notices


# ---- Rows and rules


def test_the_table_of_results_has_the_means(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, [case_of([call_of(0, 0.0, 1.0), call_of(0, 10.0, 4.0)])])
    found = measures_of(folder)
    name = "n = 600, 1 client, one call at a time on all cores"
    assert found[name, "performance, mean"].values == (near(OPERATIONS * 5 / 8),)
    assert found[name, "performance, mean"].better == "more"
    assert found[name, "wait, mean"].values == (near(0.2),)


def folder_with(folder: Path, **changes: object) -> Path:
    cases = [steady("all", 600, 4, 4.0, repeat=repeat) for repeat in range(2)]
    changed = replace(cases[-1], **changes)  # type: ignore[arg-type]
    # Calls that do not run at a time.
    calls = [call_of(number % 4, 1.0 * number, 0.5) for number in range(12)]
    spaced = [replace(one, calls=tuple(calls)) for one in cases]
    changed = replace(changed, calls=changed.calls if "calls" in changes else tuple(calls))
    return write_folder(folder, [spaced[0], changed])


def test_results_that_keep_the_rules(tmp_path: Path) -> None:
    assert set(outcomes(folder_with(tmp_path, load=QUIET)).values()) == {"kept"}


@pytest.mark.parametrize(
    ("rule", "changes", "reported"),
    [
        ("complete", {"status": "failed", "why": "the server ended"}, "the server ended"),
        (
            "every call was answered",
            {"calls": (call_of(3, 0.0, 1.0, ending="lost", why="no result"),)},
            "client 3, lost no result",
        ),
        (
            "stamps are in order",
            {"calls": (call_of(0, 0.0, 1.0, enqueue=0.2), call_of(0, 2.0, 1.0))},
            "client 0",
        ),
        (
            "the policy was kept",
            {"calls": (call_of(0, 0.0, 1.0), call_of(1, 0.5, 1.0))},
            "2 calls ran at a time",
        ),
        ("repeated", {"load": DISTURBED}, "less than 2 undisturbed rounds"),
    ],
)
def test_results_that_break_a_rule(
    tmp_path: Path, rule: str, changes: dict[str, object], reported: str
) -> None:
    found = judged(folder_with(tmp_path, **changes))
    assert found[rule].outcome == "broken"
    assert reported in found[rule].told
    # A round that failed is no repeat either.
    broken = {rule, "repeated"} if rule == "complete" else {rule}
    assert {name for name, one in found.items() if one.outcome == "broken"} == broken


def test_the_figures_are_those_of_the_published_file() -> None:
    path = REPOSITORY / "python/gridbench/published/data/linpack-clients.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    assert sum(int(row["calls"]) for row in rows) == sum(
        one.calls for one in paper_cells().values()
    )
