"""The Open Inference Protocol, by clients that others wrote, beside MLServer.

Both servers offer a function that doubles each number of a tensor. wrk posts JSON, ghz sends the
tensor's bytes by gRPC, and so do processes of tritonclient, by gRPC and by HTTP.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import (
    Area,
    AreaCase,
    Extent,
    PlannedRow,
    Target,
    Values,
    in_random_order,
    noise_row,
)
from benchmarks.programs import (
    FOLDER,
    NATIVE,
    find_program,
    missing_engine,
    missing_program,
    programs,
)
from benchmarks.server_clients import LOAD, Clients
from benchmarks.server_throughput import wrk
from gridbench.engines.environments import launch_of
from gridbench.formats import round_amount
from gridbench_testbed.daemons import free_ports
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_SIZES = (1024, 1024 * 1024)
_CLIENTS = 4
_SECONDS = {Extent.TRIAL: 0.3, Extent.USUAL: 3.0, Extent.FULL: 5.0}
_START = 240.0  # seconds that MLServer may take
_START_MLSERVER = "from mlserver.cli import main; main()"
_OURS, _PEER = "gridrpc", "MLServer"
PEERS = (_PEER,)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """Where a server offers the function."""

    http: str
    grpc: str
    model: str
    """Its name there."""
    path: str
    """The same in a URL."""


@contextmanager
def _gridrpc(folder: str) -> Iterator[_Endpoint]:
    module = Path(folder, "gridbench_server.so")
    with GridrpcServer([module], os.cpu_count() or 1, http=True) as server:
        path = "v2/models/gridbench_server/twice/infer"
        yield _Endpoint(server.http, server.http, "gridbench_server/twice", path)


@contextmanager
def _mlserver(folder: str) -> Iterator[_Endpoint]:
    """MLServer with its defaults, in which one process computes."""
    del folder
    launch = launch_of("mlserver")
    http, grpc, metrics = free_ports(3)
    settings = {
        "host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics,
        "debug": False,
    }  # fmt: skip
    with TemporaryDirectory(prefix="gb-", ignore_cleanup_errors=True) as place:
        Path(place, "settings.json").write_text(json.dumps(settings))
        Path(place, "model-settings.json").write_text(
            json.dumps({"name": "twice", "implementation": "mlserver_model.Twice"})
        )
        Path(place, "mlserver_model.py").write_bytes((FOLDER / "mlserver_model.py").read_bytes())
        with Path(place, "log").open("w+b") as log:
            started = subprocess.Popen(
                [*launch.command, "-c", _START_MLSERVER, "start", place], env=launch.variables,
                cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
            try:
                _wait_for(f"http://127.0.0.1:{http}/v2/models/twice/ready", started, Path(log.name))
                path = "v2/models/twice/infer"
                yield _Endpoint(f"127.0.0.1:{http}", f"127.0.0.1:{grpc}", "twice", path)
            finally:
                started.terminate()
                try:
                    started.wait(20.0)
                except subprocess.TimeoutExpired:
                    started.kill()
                    started.wait()


def _wait_for(url: str, started: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if started.poll() is not None or time.monotonic() > end:
                lines = log.read_text(errors="replace").splitlines()[-3:]
                raise RuntimeError(f"MLServer has not started: {' / '.join(lines)}") from None
            time.sleep(0.1)


_SERVERS = {_OURS: _gridrpc, _PEER: _mlserver}


def by_wrk(folder: str, system: str, seconds: float) -> Iterator[Values]:
    """Calls per second with a tensor in JSON, of each size; in random order."""
    with _SERVERS[system](folder) as server, TemporaryDirectory(prefix="gb-") as place:

        def rate(size: int) -> float:
            request = Path(place, str(size))
            request.write_text(json.dumps({"inputs": [_tensor(size)]}))
            return wrk(f"http://{server.http}/{server.path}", _CLIENTS, seconds, str(request))

        yield from in_random_order(_each(rate))


def by_ghz(folder: str, system: str, seconds: float) -> Iterator[Values]:
    """The same by gRPC."""
    with _SERVERS[system](folder) as server, TemporaryDirectory(prefix="gb-") as place:

        def rate(size: int) -> float:
            request = Path(place, str(size))
            message = _message(server.model, size)
            # ghz takes a file for a list of messages, each after its length, if it can.
            request.write_bytes(_varint(len(message)) + message)
            count = str(_CLIENTS)
            command = [
                find_program("ghz"), "--insecure", "--proto", str(NATIVE / "inference.proto"),
                "--call", "inference.GRPCInferenceService.ModelInfer", "-B", str(request),
                "-c", count, "--connections", count, "-z", f"{seconds}s", "--duration-stop", "wait",
                "-O", "json", server.grpc,
            ]  # fmt: skip
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                raise RuntimeError(f"ghz ended with {ran.returncode}: {ran.stderr.strip()[-300:]}")
            found = json.loads(ran.stdout)
            if bad := found.get("errorDistribution"):
                raise RuntimeError(f"calls of ghz failed: {' / '.join(bad)}"[:300])
            return float(found["count"] / (found["total"] * 1e-9))

        yield from in_random_order(_each(rate))


def by_triton(folder: str, system: str, seconds: float) -> Iterator[Values]:
    """The same by processes of tritonclient, by gRPC, and by HTTP with binary tensors.

    MLServer reads JSON only by HTTP (its issue 324), so it is sent that.
    """
    launch = launch_of("tritonclient")
    with _SERVERS[system](folder) as server:
        by_http = "json" if system == _PEER else "http"
        for kind, address in (("grpc", server.grpc), ("http", server.http)):

            def rate(size: int, kind: str = kind, address: str = address) -> float:
                form = by_http if kind == "http" else kind
                words = [form, address, str(seconds), server.model, str(size)]
                command = [*launch.command, LOAD, *words]
                with Clients([command] * _CLIENTS, launch.variables) as clients:
                    return clients.together().rate

            yield from in_random_order(_each(rate, f"{kind} "))


def _each(rate: Callable[[int], float], prefix: str = "") -> Mapping[str, Callable[[], float]]:
    steps: dict[str, Callable[[], float]] = {}
    for size in _SIZES:
        for again in ("", " again"):
            steps[f"{prefix}{size}{again}"] = lambda size=size: rate(size)  # type: ignore[misc]
    return steps


def _tensor(size: int) -> dict[str, object]:
    numbers = [float(number) for number in range(size // 8)]
    return {"name": "x", "datatype": "FP64", "shape": [len(numbers)], "data": numbers}


def _message(model: str, size: int) -> bytes:
    """A ModelInferRequest as inference.proto has it, serialised."""
    count = size // 8
    tensor = _field(1, b"x") + _field(2, b"FP64") + _field(3, _varint(count))
    numbers = struct.pack(f"<{count}d", *range(count))
    return _field(1, model.encode()) + _field(5, tensor) + _field(7, numbers)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


_TOOLS: dict[str, tuple[Callable[..., Iterator[Values]], dict[str, str]]] = {
    "wrk": (by_wrk, {"": "REST with JSON, wrk"}),
    "ghz": (by_ghz, {"": "gRPC, ghz"}),
    "tritonclient": (
        by_triton,
        {
            "http ": f"REST with binary tensors ({_PEER}: JSON, as it reads no others), "
            f"{_CLIENTS} processes of tritonclient",
            "grpc ": f"gRPC, {_CLIENTS} processes of tritonclient",
        },
    ),
}


def area(extent: Extent, peers: Sequence[str] = PEERS) -> Area:
    """All clients, of ours and of these peers."""
    folder, missing = programs()
    absent = {
        "wrk": missing_program("wrk"), "ghz": missing_program("ghz"),
        "tritonclient": missing_engine("tritonclient"),
    }  # fmt: skip
    cases = {
        (system, tool): AreaCase(
            f"{system}, called by {tool}",
            function,
            {"folder": folder, "system": system, "seconds": _SECONDS[extent]},
            missing=missing
            or absent[tool]
            or (missing_engine("mlserver") if system == _PEER else ""),
            timeout=300,
        )
        for tool, (function, _) in _TOOLS.items()
        for system in (_OURS, *peers)
    }
    rows = []
    for tool, (_, kinds) in _TOOLS.items():
        case, other = cases[_OURS, tool], cases.get((_PEER, tool))
        for prefix, what in kinds.items():
            for size in _SIZES:
                quantity, name = f"{prefix}{size}", f"{round_amount(size, 'bytes')} by {what}"
                ours = case[quantity]
                rows.append(noise_row(f"{name}, by itself", ours, case[f"{quantity} again"]))
                peer = None if other is None else other[quantity]
                target = Target(5.0, at_least=True, of_peer=True) if peer else None
                rows.append(PlannedRow(name, "/s", ours, peer=peer, target=target, digits=0))
    title = f"Open Inference Protocol, {_CLIENTS} clients; peer: MLServer with the same function"
    return Area("server/inference", title, list(cases.values()), rows)
