"""Servers of gRPC and Ray Serve that solve dense systems, beside gridrpc's.

    python -m gridbench.linpack.peer_server grpc SOCKET WORKERS THREADS
    python -m gridbench.linpack.peer_server ray-serve PORT WORKERS THREADS

They solve as many systems at a time as they have WORKERS, each by OpenBLAS with THREADS threads.
The body of a request is the matrix, by columns, and the right-hand side; that of a reply is the
solution, the pivots, and REPLY_END. The servers run in the Python of their engine, which need not
have NumPy.
"""

from __future__ import annotations

import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from ctypes import CDLL, byref, c_double, c_int
from math import isqrt

LIBRARY = "libopenblas.so.0"
"""The solver, for all clients and servers."""
METHOD = "/linpack.Solver/dgesv"
REPLY_END = struct.Struct("<i4xdd")
"""LAPACK's `info`, and the times at which the solver started and returned (monotonic clock)."""
UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
"""Options of gRPC: its messages have 4 MB at most by default."""


def solve(body: bytes) -> bytes:
    """The reply to a request. ValueError for a body that is no system."""
    # The body has n^2 + n numbers.
    n = (isqrt(1 + len(body) // 2) - 1) // 2
    if n < 1 or len(body) != 8 * n * (n + 1):
        raise ValueError(f"{len(body)} bytes are no square matrix with a right-hand side")
    dequeue = time.monotonic()
    # Both are changed in place, so they are copies, as on gridrpc's server.
    a = (c_double * (n * n)).from_buffer_copy(body)
    b = (c_double * n).from_buffer_copy(body, 8 * n * n)
    pivots, order, one, info = (c_int * n)(), c_int(n), c_int(1), c_int()
    CDLL(LIBRARY).dgesv_(
        byref(order), byref(one), a, byref(order), pivots, b, byref(order), byref(info)
    )
    returned = time.monotonic()
    return bytes(b) + bytes(pivots) + REPLY_END.pack(info.value, dequeue, returned)


def require_threads(threads: int) -> None:
    """RuntimeError if OpenBLAS has another number of threads."""
    found = int(CDLL(LIBRARY).openblas_get_num_threads())
    if found != threads:
        raise RuntimeError(f"the solver has {found} threads, not {threads}")


def serve_grpc(address: str, workers: int, threads: int) -> None:
    """Serve over a Unix socket until SIGTERM."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    def answer(body: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return solve(body)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    require_threads(threads)
    server = grpc.server(ThreadPoolExecutor(workers), options=UNLIMITED)
    _, service, method = METHOD.split("/")
    # Without serialisers, messages are bytes.
    handlers = {method: grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    if not server.add_insecure_port(f"unix:{address}"):
        raise RuntimeError(f"gRPC cannot listen at {address}")
    server.start()
    _until_ended()
    server.stop(grace=None)


def serve_ray(port: str, workers: int, threads: int) -> None:
    """Serve over HTTP, with a process for each worker, until SIGTERM."""
    import importlib
    import tempfile

    # It sets what Ray reads when it is imported.
    importlib.import_module("gridbench.engines.ray_engine")
    import ray
    from ray import serve
    from starlette.requests import Request
    from starlette.responses import Response

    module = "gridbench.linpack.peer_server"
    variables = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}

    class Solver:
        def __init__(self) -> None:
            # Ray sends this class by value, and what it uses of this script as well.
            self._module = importlib.import_module(module)
            self._module.require_threads(threads)

        async def __call__(self, request: Request) -> Response:
            try:
                return Response(self._module.solve(await request.body()))
            except ValueError as error:
                return Response(str(error), status_code=400)

    deployment = serve.deployment(
        num_replicas=workers,
        max_ongoing_requests=1,
        ray_actor_options={"num_cpus": 1, "runtime_env": {"env_vars": variables}},
    )
    with tempfile.TemporaryDirectory(prefix="gb-ray-", ignore_cleanup_errors=True) as folder:
        # The controller and the proxy of Ray Serve need no processors.
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, _temp_dir=folder)
        try:
            serve.start(http_options={"host": "127.0.0.1", "port": int(port)})
            serve.run(deployment(Solver).bind(), name="linpack")
            _until_ended()
        finally:
            ray.shutdown()


def _until_ended() -> None:
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    # The reader takes this as the sign that calls are answered.
    print("ready", flush=True)
    over.wait()


if __name__ == "__main__":
    _serve: dict[str, Callable[[str, int, int], None]] = {
        "grpc": serve_grpc,
        "ray-serve": serve_ray,
    }
    _serve[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
