"""What a portfolio of options is worth in many scenarios of the market: a task farm.

    python portfolio.py [--scenarios N] [--workers N] [--module portfolio.so]

The market data, a few megabytes, are the same in all calls. They lie in arrays from
`gridrpc.empty`, which all workers of this machine see as they are: what a call moves is the
scenario. Some scenarios are computed once more with NumPy; status 1 tells that they differ.
"""

from __future__ import annotations

import argparse
import math
import sys
from itertools import repeat
from pathlib import Path

import numpy as np

import gridrpc

PATHS, STEPS = 4_000, 52
OPTIONS, UNDERLYINGS = 24, 6
RATE = 0.03

#: Scenarios with a name: factor of all prices, shift of volatilities, shift of the interest rate.
STRESS = {
    "today": (1.0, 0.0, 0.0),
    "crash": (0.7, 0.25, -0.01),
    "rates up": (0.95, 0.02, 0.02),
    "calm": (1.05, -0.05, 0.0),
}


def shared(array: np.ndarray) -> np.ndarray:
    """A copy in memory that all workers of this machine see."""
    copy = gridrpc.empty_like(array)
    copy[...] = array
    return copy


class Market:
    """A made-up portfolio of calls, half of them Asian, and the market that it depends on."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.spot = rng.uniform(50, 150, UNDERLYINGS)
        self.volatility = rng.uniform(0.15, 0.4, UNDERLYINGS)
        self.asian = np.arange(OPTIONS, dtype=np.int32) % 2
        self.underlying = rng.integers(0, UNDERLYINGS, OPTIONS, dtype=np.int32)
        self.strike = self.spot[self.underlying] * rng.uniform(0.8, 1.2, OPTIONS)
        self.maturity = rng.uniform(0.25, 2.0, OPTIONS)
        self.quantity = rng.integers(-50, 100, OPTIONS).astype(float)
        self.normals = shared(rng.standard_normal((PATHS, STEPS)))

    def arguments(self) -> tuple[object, ...]:
        """What is the same in all calls of `revalue`."""
        return (
            self.asian, self.underlying, self.strike, self.maturity, self.spot, self.volatility,
            RATE, self.normals,
        )  # fmt: skip

    def values_with_numpy(
        self, spot_factor: float, volatility_shift: float, rate_shift: float
    ) -> np.ndarray:
        """What `revalue` computes, for comparison."""
        spot = self.spot[self.underlying] * spot_factor
        sigma = self.volatility[self.underlying] + volatility_shift
        rate = RATE + rate_shift
        discount = np.exp(-rate * self.maturity)
        deviation = sigma * np.sqrt(self.maturity)
        d = (np.log(spot / self.strike) + rate * self.maturity) / deviation + deviation / 2
        cumulated = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
        values = spot * cumulated(d) - self.strike * discount * cumulated(d - deviation)
        for i in np.flatnonzero(self.asian):
            step = self.maturity[i] / STEPS
            moves = (rate - sigma[i] ** 2 / 2) * step + sigma[i] * np.sqrt(step) * self.normals
            mean = spot[i] * np.exp(moves.cumsum(axis=1)).mean(axis=1)
            values[i] = discount[i] * np.maximum(mean - self.strike[i], 0).mean()
        return values


def scenarios(count: int, seed: int) -> np.ndarray:
    """Random scenarios, one a row."""
    rng = np.random.default_rng(seed)
    shifts = rng.multivariate_normal(
        [0, 0, 0], [[0.01, -0.001, 0], [-0.001, 0.0004, 0], [0, 0, 1e-6]], count
    )
    return np.column_stack([np.exp(shifts[:, 0]), np.maximum(shifts[:, 1], -0.1), shifts[:, 2]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", type=int, default=200)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--module", default=Path(__file__).with_name("portfolio.so"))
    arguments = parser.parse_args()
    market = Market(seed=1)
    drawn = scenarios(arguments.scenarios, seed=2)
    with gridrpc.Grid(arguments.workers, worker="native", modules=[arguments.module]) as grid:
        revalue = grid.function("portfolio/revalue")

        # A few calls of different kinds: as they end. `options`, `paths` and so on follow from
        # the arrays.
        calls = {
            revalue.submit(*market.arguments(), *shifts): name for name, shifts in STRESS.items()
        }
        worth = {}
        for call in gridrpc.as_completed(calls):
            worth[calls[call]] = float(market.quantity @ call.result())
        moved = max(call.profile.bytes_in for call in calls)

        # Many of one kind: `map` keeps a bounded number of them under way.
        same = [repeat(argument) for argument in market.arguments()]
        values = np.array(list(grid.map(revalue, *same, *drawn.T.tolist())))

    for name in STRESS:
        print(f"{name:10} {worth[name]:10.2f}  {worth[name] - worth['today']:+10.2f}")
    losses = worth["today"] - values @ market.quantity
    print(f"value at risk, 95 %, of {len(drawn)} scenarios: {np.quantile(losses, 0.95):.2f}")
    print(f"market data: {market.normals.nbytes:,} bytes; moved with a call: {moved:,}")

    checked = [(drawn[i], values[i]) for i in range(0, len(drawn), max(1, len(drawn) // 3))]
    off = max(
        np.abs(market.values_with_numpy(*shifts) / found - 1).max() for shifts, found in checked
    )
    print(f"NumPy's values differ by {off:.0e} at most")
    return int(off > 1e-9)


if __name__ == "__main__":
    sys.exit(main())
