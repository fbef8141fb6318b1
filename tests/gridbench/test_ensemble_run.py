"""Ensembles on two small clusters, one with a Slurm and one with a Grid Engine; and what programs
do on several clusters that are not perfect."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread

import numpy as np
import psutil
import pytest
from rich.console import Console

import linking
from gridbench.ensemble.experiment import EnsembleClusters, EnsembleExperiment
from gridbench.ensemble.farm import expected
from gridbench.ensemble.options import EnsembleParameters
from gridbench.ensemble.record import FORM, OURS
from gridbench.experiment import Bench
from gridbench.process.interrupt import Interrupt
from gridbench.schema import read_parameters
from gridbench_testbed.batch import gridengine, slurm
from gridbench_testbed.links.network import Network, network_of, port_of, run_ip
from gridrpc import Grid, StartError
from running import Run, until

WHY_NOT = linking.why_not() or slurm.why_not() or gridengine.why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
LIMIT = 60.0
ROOT = Path(__file__).parents[2]
GRIDRPC = Path(sys.prefix) / "bin" / "gridrpc"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    source = ROOT / "python/gridbench/ensemble/samples.idl"
    subprocess.run([GRIDRPC, "compile", source, "-o", folder], check=True)
    return folder / "ensemble_samples.so"


@pytest.fixture(scope="module")
def clusters() -> Iterator[EnsembleClusters]:
    processors = {"presto3": 2, "venus": 2}
    with EnsembleClusters(processors, batch="both", links="paper", time_scale=1.0) as running:
        yield running


def state_of(size: int = 3482) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)


# ---- The command


def test_two_clusters_with_batch_systems(gridbench: Run, tmp_path: Path) -> None:
    command = [
        "ensemble", "--layouts", "presto3,venus", "--processors", "2", "--time-scale", "0.01",
        "--requests", "together,one-by-one", "--accept-load", "--out", str(tmp_path / "runs"),
    ]  # fmt: skip
    ran = gridbench(*command)
    assert ran.returncode == 0, ran.stderr
    assert "processors compute" in ran.stdout
    header, runs = FORM.read(tmp_path / "runs")
    assert header.options["time_scale"] == 0.01
    assert {(one.layout, one.request) for one in runs} == {
        (layout, request)
        for layout in ("presto3", "venus")
        for request in ("together", "one by one")
    }
    for one in runs:
        assert (one.status, one.why, one.wrong) == ("done", "", 0)
        assert len(one.rows) == one.samples == 10
        assert {row.host for row in one.rows} == {one.layout}
        # A sample sleeps at least so long, and its result takes at least the latency.
        assert min(row.computed - row.started for row in one.rows) >= 0.119
        delay = {"presto3": 1.5e-3, "venus": 17.2e-3}[one.layout]
        assert min(row.ended - row.computed for row in one.rows) >= delay
        assert min(row.started - row.submitted for row in one.rows) >= delay
        assert one.start > 0
        assert one.memory > 0
        assert one.processor_time > one.client_time > 0
    values = json.loads(gridbench("report", "runs", "--json").stdout)["results"]
    assert {one["layout"] for one in values["cases"]} == {"presto3", "venus"}
    checked = gridbench("check", "runs")
    assert "calls for each processor" in checked.stdout
    # Nothing is run twice.
    assert gridbench(*command).returncode == 0
    assert len(FORM.read(tmp_path / "runs")[1]) == 4


def test_a_client_that_ends_fails_its_run(tmp_path: Path) -> None:
    given = {"processors": "2", "time_scale": "0.05", "batch": "none", "layouts": "ume"}
    experiment = EnsembleExperiment(read_parameters(EnsembleParameters, given))
    with Interrupt() as interrupt, ExitStack() as stack:
        bench = Bench(tmp_path, interrupt, Console(quiet=True), stack)
        experiment.prepare(bench)
        (case,) = next(iter(experiment.batches(bench, [])))

        def kill() -> None:
            until(lambda: clients_of(os.getpid()))
            os.kill(clients_of(os.getpid())[0], signal.SIGKILL)

        killer = Thread(target=kill)
        killer.start()
        failed = experiment.run(case, bench)
        killer.join()
        assert failed.status == "failed"
        assert "signal 9" in failed.why
        # The clusters continue.
        assert experiment.run(case, bench).status == "done"


def clients_of(parent: int) -> list[int]:
    found = []
    for one in psutil.Process(parent).children():
        with suppress(psutil.Error):
            if "gridbench.ensemble.farm" in one.cmdline():
                found.append(one.pid)
    return found


def test_the_model_computes(gridbench: Run, tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    folder = tmp_path / "model"
    shutil.copytree(ROOT / "examples/ensemble", folder)
    subprocess.run(
        ["make", "-C", folder, f"GRIDRPC={GRIDRPC}", "ensemble.so"], check=True, capture_output=True
    )
    ran = gridbench(
        "ensemble", "--layouts", "ume", "--processors", "2", "--samples", "2", "--model", "compute",
        "--module", str(folder / "ensemble.so"), "--batch-systems", "none", "--accept-load",
        "--out", str(tmp_path / "runs"),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (one,) = FORM.read(tmp_path / "runs")[1]
    assert len(one.rows) == 4
    assert one.wrong == 0


def test_engines_of_gridbench_run_in_the_namespaces(gridbench: Run, tmp_path: Path) -> None:
    ran = gridbench(
        "ensemble", "--layouts", "presto3", "--processors", "2", "--time-scale", "0.01",
        "--batch-systems", "none", "--engines", f"{OURS},gridrpc-python", "--ahead", "0,1",
        "--accept-load",
        "--out", str(tmp_path / "runs"),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "gridrpc-python" in ran.stdout
    found = FORM.read(tmp_path / "runs")[1]
    assert {(one.engine, one.ahead) for one in found} == {
        (engine, ahead) for engine in (OURS, "gridrpc-python") for ahead in (0, 1)
    }
    for one in found:
        assert one.status == "done", one.why
        assert min(row.ended - row.computed for row in one.rows) >= 1.5e-3


def test_an_engine_that_takes_no_namespaces_fails_alone(tmp_path: Path) -> None:
    given = {
        "processors": "1", "samples": "1", "time_scale": "0.001", "batch": "none",
        "layouts": "ume", "engines": f"process-pool,{OURS}",
    }  # fmt: skip
    experiment = EnsembleExperiment(read_parameters(EnsembleParameters, given))
    with Interrupt() as interrupt, ExitStack() as stack:
        bench = Bench(tmp_path, interrupt, Console(quiet=True), stack)
        experiment.prepare(bench)
        cases = next(iter(experiment.batches(bench, [])))
        found = {case.engine: experiment.run(case, bench) for case in cases}
    assert found["process-pool"].status == "failed"
    assert "cannot put its workers into network namespaces" in found["process-pool"].why
    assert found[OURS].status == "done"


# ---- Functions of the paper


def test_one_request_starts_all_workers_of_a_cluster(clusters: EnsembleClusters) -> None:
    shares = (("presto3", 2), ("venus", 2))
    assert len(clusters.servers(shares, "together", LIMIT)) == 2
    apart = clusters.servers(shares, "one by one", LIMIT)
    assert len(apart) == 4
    with Grid(servers=apart, worker="native") as grid:
        grid.wait_until_ready(LIMIT)
        assert [host.workers for host in grid.hosts()] == [1, 1, 1, 1]


def test_a_start_that_takes_too_long_is_given_up(clusters: EnsembleClusters, module: Path) -> None:
    # All of the cluster is taken: the job waits in the queue, and is cancelled.
    taken = clusters.servers((("presto3", 2),), "together", LIMIT)
    (late,) = clusters.servers((("presto3", 2),), "together", 2.0)
    late = late.replace("presto3-1", "late")
    other = clusters.servers((("venus", 2),), "together", LIMIT)
    with Grid(servers=taken, worker="native") as holder:
        holder.wait_until_ready(LIMIT)
        with Grid(servers=[late, *other], worker="native", modules=[module]) as grid:
            forecast = grid.function("ensemble_samples/forecast", server="late")
            state = state_of()
            with pytest.raises(StartError, match=r"has not started|queued"):
                forecast.submit(0.0, len(state), state, 8).result(LIMIT)
            anywhere = grid.function("ensemble_samples/forecast")
            result = anywhere.submit(0.0, len(state), state, 8).result(LIMIT)
            assert int(result.view("<u8")[0]) == expected(state)


def test_a_cut_link_is_noticed_by_heartbeats(module: Path) -> None:
    with Network(2, 1e9) as network:
        servers = [
            f"local://{name}?workers=1&heartbeat=1&start_timeout=20&reconnect_timeout=0"
            f"&prefix=nsenter%20--net={place}"
            for name, place in zip(("near", "far"), network.namespaces, strict=True)
        ]
        with Grid(servers=servers, worker="native", modules=[module]) as grid:
            grid.wait_until_ready(LIMIT)
            state = state_of()
            began = time.monotonic()
            calls = [
                grid.function("ensemble_samples/forecast").submit(2.5, len(state), state, 8)
                for _ in range(2)
            ]
            time.sleep(0.5)  # both are at work
            run_ip("ip", [f"link set dev {port_of(2)} down"], namespace=network.switch.name)
            results = [call.result(LIMIT) for call in calls]
            # Forecasts are idempotent: the one of the lost cluster has run on the other.
            assert {int(one.view("<u8")[0]) for one in results} == {expected(state)}
            assert {call.profile.host for call in calls} == {"near"}
            assert time.monotonic() - began >= 5.0


def test_an_object_keeps_what_samples_have_in_common(
    clusters: EnsembleClusters, module: Path
) -> None:
    servers = clusters.servers((("venus", 1),), "together", LIMIT)
    common = state_of(200_000)
    with Grid(servers=servers, worker="native", modules=[module]) as grid:
        forecasts = grid.object("ensemble_samples/Forecasts")
        forecasts.keep(len(common), common)
        for perturbation in (1, 2, 3):
            call = forecasts.run.submit(0.0, perturbation, 8)
            changed = common.copy()
            changed[0] = perturbation
            assert int(call.result(LIMIT).view("<u8")[0]) == expected(changed)
            assert call.profile.bytes_in < 1000


def test_interfaces_are_read_from_local_files(clusters: EnsembleClusters, module: Path) -> None:
    (url,) = clusters.servers((("venus", 1),), "together", LIMIT)
    # No worker is there, and none is requested until a call waits.
    elastic = url.replace("nodes=1", "nodes=0-1")
    with Grid(servers=[elastic], worker="native", modules=[module]) as grid:
        forecast = grid.function("ensemble_samples/forecast")
        with pytest.raises((TypeError, ValueError)):
            forecast.submit(0.0, 8, state_of(4), 8)
        assert [host.ready for host in grid.hosts()] == [0]


# ---- Links


def test_packets_are_delayed_in_both_directions() -> None:
    with Network(2, 1e9, 0.02) as network:
        assert network_of(network.namespaces[1])[:2] == (
            network.node_addresses[1], network.client_address,
        )  # fmt: skip
        for address in network.node_addresses:
            began = time.monotonic()
            # The refusal of a connection takes a round trip.
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((address, 9), timeout=LIMIT)
            assert time.monotonic() - began >= 0.04
