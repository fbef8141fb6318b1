"""Calls functions of LAPACK on a grid, and compares what they compute with NumPy.

    python lapack.py [--order N] [--module lapack.so]

Prints for each function how far its results are off, in units of rounding errors, and how many
bytes its call moved. Ends with status 1 if one is off by too much.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gridrpc

#: Results may be off by so many rounding errors of a matrix of the same order.
TOLERATED = 100.0

rng = np.random.default_rng(1)


def matrix(rows: int, columns: int, dtype: type = float) -> np.ndarray:
    """A random matrix by columns, as Fortran has it, where calls need not copy it."""
    made = gridrpc.empty((rows, columns), dtype, order="F")
    made[...] = rng.standard_normal((rows, columns))
    if dtype is complex:
        made += 1j * rng.standard_normal((rows, columns))
    return made


def same_as(array: np.ndarray) -> np.ndarray:
    """A copy of it where calls need not copy it."""
    copy = gridrpc.empty_like(array)
    copy[...] = array
    return copy


def rounding_errors(found: np.ndarray, expected: np.ndarray) -> float:
    """How far one is from the other, in rounding errors of a matrix of that order."""
    off = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    return float(off / (np.finfo(float).eps * len(expected)))


def rows_after(pivots: np.ndarray, rows: int) -> np.ndarray:
    """Which row comes where, after the exchanges that pivots tell of; they count from 1."""
    order = np.arange(rows)
    for row, other in enumerate(pivots - 1):
        order[[row, other]] = order[[other, row]]
    return order


def dgemm(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    a, b, c = matrix(n // 2, n), matrix(n // 2, n + 1), matrix(n, n + 1)
    expected = 0.5 * a.T @ b - c
    # Lengths that are dimensions of arrays are left out: n, lda, ldb and ldc.
    call = grid.function("lapack/dgemm").submit("T", "N", n, n // 2, 0.5, a, b, -1.0, c)
    call.result()
    return call, rounding_errors(c, expected)


def dgesv(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    return _gesv(grid, "lapack/dgesv", matrix(n, n), matrix(n, 3))


def zgesv(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    return _gesv(grid, "lapack/zgesv", matrix(n, n, complex), matrix(n, 3, complex))


def _gesv(
    grid: gridrpc.Grid, name: str, a: np.ndarray, b: np.ndarray
) -> tuple[gridrpc.Call, float]:
    original = a.copy()
    expected = np.linalg.solve(a, b)
    call = grid.function(name).submit(a, b)
    ipiv, info = call.result()
    assert info[0] == 0
    lower, upper = np.tril(a, -1) + np.eye(len(a)), np.triu(a)
    factors = rounding_errors(lower @ upper, original[rows_after(ipiv, len(a))])
    # The solution is off by as much more as the matrix is close to a singular one.
    return call, max(factors, rounding_errors(b, expected) / np.linalg.cond(original))


def dgetrf(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    a = matrix(n, n // 2)
    original = a.copy()
    call = grid.function("lapack/dgetrf").submit(n, a)
    ipiv, info = call.result()
    assert info[0] == 0
    lower, upper = np.tril(a, -1) + np.eye(*a.shape), np.triu(a[: n // 2])
    return call, rounding_errors(lower @ upper, original[rows_after(ipiv, n)])


def dgetrs(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    a, b = matrix(n, n), matrix(n, 2)
    expected, condition = np.linalg.solve(a.T, b), np.linalg.cond(a)
    ipiv, _ = grid.function("lapack/dgetrf")(n, a)
    call = grid.function("lapack/dgetrs").submit("T", a, ipiv, b)
    assert call.result()[0] == 0
    return call, rounding_errors(b, expected) / condition


def dsyev(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    a = matrix(n, n)
    a += a.T.copy()
    original = a.copy()
    # `out=` has a result put into an array of the caller's.
    w = np.empty(n)
    call = grid.function("lapack/dsyev").submit("V", "U", a, lwork=34 * n, out={"w": w})
    assert call.result().info[0] == 0
    values = rounding_errors(w, np.linalg.eigvalsh(original))
    return call, max(values, rounding_errors(a @ np.diag(w) @ a.T, original))


def dgels(grid: gridrpc.Grid, n: int) -> tuple[gridrpc.Call, float]:
    a, b = matrix(n, n // 4), matrix(n, 2)
    expected, condition = np.linalg.lstsq(a, b)[0], np.linalg.cond(a)
    call = grid.function("lapack/dgels").submit("N", n, a, b, lwork=34 * n)
    assert call.result()[0] == 0
    return call, rounding_errors(b[: n // 4], expected) / condition


EXAMPLES: list[Callable[[gridrpc.Grid, int], tuple[gridrpc.Call, float]]] = [
    dgemm, dgesv, dgetrf, dgetrs, dsyev, dgels, zgesv,
]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--order", type=int, default=400, help="of the matrices")
    parser.add_argument("--module", default=Path(__file__).with_name("lapack.so"))
    arguments = parser.parse_args()
    worst = 0.0
    with gridrpc.Grid(workers=1, worker="native", modules=[arguments.module]) as grid:
        print("function  rounding errors     ms  bytes moved there  and back")
        for example in EXAMPLES:
            call, off = example(grid, arguments.order)
            profile = call.profile
            ms = 1e3 * (profile.calc_out - profile.calc_in)
            moved = f"{profile.bytes_in:>17}  {profile.bytes_out:>8}"
            print(f"{example.__name__:8}  {off:15.2f}  {ms:5.0f}  {moved}")
            worst = max(worst, off)
    return int(worst > TOLERATED)


if __name__ == "__main__":
    sys.exit(main())
