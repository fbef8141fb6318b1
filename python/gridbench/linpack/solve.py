"""A client in Python: solves the same dense system again and again, here or on a server.

    python -m gridbench.linpack.solve WHERE ORDER CALLS SECONDS random|singular

WHERE is local, remote or remote+big-endian. solve.c is the same in C, without the last of them, and
says what is printed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from ctypes import CDLL, byref, c_int, c_void_p
from typing import Any, Literal

import numpy as np

import gridrpc

LIBRARY = "libopenblas.so.0"
"""The solver, for client and server alike."""
FUNCTION = "linpack/dgesv"
MOST = 500
"""Systems that are solved at most."""
Array = np.ndarray[Any, np.dtype[Any]]


class Solver(ABC):
    """Solves A x = b by `dgesv`."""

    def __init__(self, a: Array, b: Array) -> None:
        self.a = a
        self.b = b
        self.x = np.empty_like(b)
        self.info = 0
        """LAPACK's: above 0, the matrix is singular."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """How many solve."""

    @abstractmethod
    def solve(self) -> float:
        """Replace `x`, which is b, with the solution. The seconds in which the solver ran."""


class LocalSolver(Solver):
    """In this process."""

    def __init__(self, a: Array, b: Array) -> None:
        super().__init__(a, b)
        self._library = CDLL(LIBRARY)
        self._lu = np.empty_like(a)
        self._pivots = np.empty(len(b), np.int32)

    @property
    def threads(self) -> int:
        """Of OpenBLAS in this process."""
        return int(self._library.openblas_get_num_threads())

    def solve(self) -> float:
        """Solve with a copy of A, as the server does."""
        n, one, info = c_int(len(self.b)), c_int(1), c_int()
        lu, pivots, x = (c_void_p(array.ctypes.data) for array in (self._lu, self._pivots, self.x))
        began = time.perf_counter()
        self._lu[...] = self.a
        self._library.dgesv_(byref(n), byref(one), lu, byref(n), pivots, x, byref(n), byref(info))
        self.info = info.value
        return time.perf_counter() - began


class RemoteSolver(Solver):
    """On a server."""

    def __init__(self, grid: gridrpc.Grid, a: Array, b: Array, *, big_endian: bool = False) -> None:
        """`big_endian`: the matrix travels in that byte order."""
        super().__init__(_shared(a), b)
        self.x = _shared(b)
        self._sent = self.a.astype(">f8", order="F") if big_endian else self.a
        self._dgesv = grid.function(FUNCTION)
        self._threads = grid.function("linpack/threads")

    @property
    def threads(self) -> int:
        """Of OpenBLAS in the server's worker."""
        return int(self._threads()[0])

    def solve(self) -> float:
        """Call the server."""
        call = self.submit()
        self.take(call)
        return float(call.profile.calc_out - call.profile.calc_in)

    def submit(self) -> gridrpc.Call[Any]:
        """Begin a call."""
        n = len(self.b)
        # The interface has columns as rows: A is a[n][lda].
        call: gridrpc.Call[Any] = self._dgesv.submit(n, 1, self._sent.T, n, self.x.reshape(1, n), n)
        return call

    def take(self, call: gridrpc.Call[Any], timeout: float | None = None) -> None:
        """Wait for the solution. TimeoutError if it is not there after so many seconds."""
        _, info = call.result(timeout)
        self.info = int(info[0])


def residual(a: Array, b: Array, x: Array) -> float:
    """The largest of |b - A x|, in rounding errors of a system of this order."""
    left = np.abs(b - a @ x).max()
    size = np.abs(a).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    return float(left / (np.finfo(float).eps * size * len(b)))


def system(n: int, *, singular: bool = False) -> tuple[Array, Array]:
    """A matrix by columns, and a right-hand side."""
    random = np.random.default_rng(1)
    a = np.asfortranarray(random.uniform(-0.5, 0.5, (n, n)))
    return (np.zeros_like(a) if singular else a), random.uniform(-0.5, 0.5, n)


def measure(solver: Solver, calls: int, seconds: float) -> None:
    """Solve once, print the number of threads, and wait for a line. Then solve so often, and print
    each."""
    total, call = 0.0, -1
    while call < calls or (total < seconds and call < MOST):
        solver.x[...] = solver.b
        began = time.perf_counter()
        calculation = solver.solve()
        passed = time.perf_counter() - began
        if call < 0:
            print(json.dumps({"threads": solver.threads}), flush=True)
            if not sys.stdin.readline():
                sys.exit(1)
        else:
            total += passed
            wrong = 0.0 if solver.info else residual(solver.a, solver.b, solver.x)
            found = {"seconds": passed, "calculation": calculation}
            print(json.dumps({**found, "info": solver.info, "residual": wrong}), flush=True)
        call += 1


def main(where: str, n: str, calls: str, seconds: str, matrix: str) -> None:
    """Measure here, or on the server that GRIDRPC_SERVERS names."""
    a, b = system(int(n), singular=matrix == "singular")
    if where == "local":
        measure(LocalSolver(a, b), int(calls), float(seconds))
        return
    try:
        with gridrpc.Grid(servers=[os.environ["GRIDRPC_SERVERS"]], worker="native") as grid:
            solver = RemoteSolver(grid, a, b, big_endian=where != "remote")
            measure(solver, int(calls), float(seconds))
    except gridrpc.GridError as error:
        sys.exit(f"{FUNCTION}: {error}")


def _shared(array: Array) -> Array:
    """A copy in memory that calls need not copy."""
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous else "C"
    made: Array = gridrpc.empty(array.shape, array.dtype, order=order)
    made[...] = array
    return made


if __name__ == "__main__":
    main(*sys.argv[1:])
