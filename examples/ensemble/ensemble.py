"""Forecast the weather with an ensemble of perturbed initial states, and write it as NetCDF.

    python ensemble.py [--members N] [--days N] [--perturbation M/S] [--out ensemble.nc] ...

A member whose model diverges or crashes is reported, and has NaN in the file.
"""

from __future__ import annotations

import argparse
import os
import sys
from itertools import repeat
from pathlib import Path

import numpy as np
import xarray as xr

import gridrpc

HERE = Path(__file__).parent
FRAMES_PER_DAY = 4


def failure_of(result: object) -> str:
    """Why a member has no complete forecast, or nothing."""
    if isinstance(result, Exception):
        return str(result).splitlines()[0]
    return bytes(result.message).decode().strip()


def heights_of(
    grid: gridrpc.Grid, truncation: int, states: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Heights by member, day, latitude and longitude, and the latitudes."""
    longitudes = 1 << (3 * truncation).bit_length()
    size = (truncation, states[0].shape[1]), (longitudes, longitudes // 2)
    calls = ((*size[0], one, *size[1]) for one in states)
    fields = list(grid.starmap("ensemble/heights", calls))
    return np.array([field.z.T for field in fields], dtype="float32"), fields[0].latitude


def forecast(grid: gridrpc.Grid, options: argparse.Namespace) -> xr.Dataset:
    """The forecasts of all members."""
    count, truncation, frames = options.members, options.truncation, options.days * FRAMES_PER_DAY
    perturbed = ((truncation, member, options.perturbation) for member in range(count))
    initial = list(grid.starmap("ensemble/initial_state", perturbed))
    results = list(
        grid.map(
            "ensemble/forecast",
            repeat(truncation), repeat(frames), repeat(options.settings), initial,
            return_exceptions=True, progress="members", journal=options.journal,
        )
    )  # fmt: skip
    missing = np.full(((truncation + 1) ** 2, frames), np.nan, order="F")
    states = [missing if isinstance(one, Exception) else one.states for one in results]
    height, latitude = heights_of(grid, truncation, states)
    days = np.arange(1, frames + 1) / FRAMES_PER_DAY
    longitude = np.arange(height.shape[3]) * 360 / height.shape[3]
    return xr.Dataset(
        {
            "height": (("member", "day", "latitude", "longitude"), height,
                       {"units": "m", "long_name": "height of the 500 hPa surface"}),
            "failure": ("member", [failure_of(one) for one in results]),
        },
        {
            "member": np.arange(count, dtype="int32"),
            "day": ("day", days, {"long_name": "days since the analysis"}),
            "latitude": ("latitude", latitude, {"units": "degrees_north"}),
            "longitude": ("longitude", longitude, {"units": "degrees_east"}),
        },
        {"title": f"ensemble of a barotropic model, T{truncation}", "Conventions": "CF-1.8"},
    )  # fmt: skip


def write(data: xr.Dataset, file: Path) -> None:
    """Write a file as a whole, or leave what is there as it is."""
    part = file.with_name(f"{file.name}.part")
    try:
        data.to_netcdf(part, engine="scipy")
        os.replace(part, file)
    except OSError as error:
        part.unlink(missing_ok=True)
        sys.exit(
            f"error: cannot write {file}: {error.strerror}; it needs {data.nbytes >> 20} MB:"
            " choose another place with --out"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=20, help="member 0 is not perturbed")
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--truncation", type=int, default=20, help="5 to 170")
    parser.add_argument("--perturbation", type=float, default=1.0, help="wind, m/s")
    parser.add_argument("--settings", type=Path, default=HERE / "settings.nml")
    parser.add_argument("--out", type=Path, default=Path("ensemble.nc"))
    parser.add_argument("--journal", type=Path, help="keeps results, so that a run can be resumed")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--module", type=Path, default=HERE / "ensemble.so")
    options = parser.parse_args()
    if min(options.members, options.days) < 1:
        parser.error("--members and --days have to be 1 or more")
    if not 5 <= options.truncation <= 170:
        parser.error("--truncation has to be from 5 to 170")
    if not options.module.exists():
        parser.error(f"--module {options.module}: there is no such file: run `make`")
    if not options.settings.is_file():
        parser.error(f"--settings {options.settings}: there is no such file")
    try:
        with gridrpc.Grid(options.workers, worker="native", modules=[options.module]) as grid:
            data = forecast(grid, options)
    except gridrpc.JournalError as error:
        sys.exit(f"error: {error}")
    for member, failure in enumerate(data.failure.values):
        if failure:
            print(f"member {member}: {failure}", file=sys.stderr)
    complete = int((data.failure == "").sum())
    print(f"{complete} of {options.members} members have forecasts of {options.days} days")
    write(data, options.out)
    return int(complete < options.members)


if __name__ == "__main__":
    sys.exit(main())
