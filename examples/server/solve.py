"""Solves a system of linear equations with dgesv of a server: `solve.py SERVER`."""

import sys

import numpy as np

import gridrpc

with gridrpc.Grid(servers=[sys.argv[1]]) as grid:
    a = np.array([[4.0, 1, 0], [1, 4, 1], [0, 1, 4]], order="F")
    b = np.array([[6.0], [12], [14]], order="F")
    pivots, info = grid.function("lapack/dgesv")(a, b)
    print("Python:", *(f"{x:.3f}" for x in b.ravel()))
    if info[0] != 0 or not np.allclose(b.ravel(), [1, 2, 3]):
        sys.exit("dgesv: the solution is wrong")
