"""Draw an ensemble: its mean, its spread, the probability of low heights, and how spread grows.

python maps.py [ensemble.nc] [--day DAY] [--below METRES] [--out maps.html]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import xarray as xr
from plotly.subplots import make_subplots

#: Longitude and latitude of the tops of the model's mountains.
MOUNTAINS = ([88, 250, 292], [34, 42, -20])


def draw(data: xr.Dataset, day: float, below: float) -> go.Figure:
    """Three maps of one day, and the spread of all days."""
    height = data.height.sel(day=day, method="nearest")
    # Members that failed have no values: they do not count.
    low = (height < below).where(height.notnull()).mean("member") * 100
    days = data.height.std("member").weighted(np.cos(np.deg2rad(data.latitude)))
    spread = days.mean(("latitude", "longitude"))
    maps = (
        ("mean height, m", height.mean("member"), "Viridis"),
        ("spread (standard deviation), m", height.std("member"), "Oranges"),
        (f"probability of less than {below:g} m, %", low, "Blues"),
    )
    titles = [*(title for title, _, _ in maps), "mean spread of all days, m"]
    figure = make_subplots(
        2, 2, subplot_titles=titles, horizontal_spacing=0.2, vertical_spacing=0.2
    )
    for number, (_, field, colors) in enumerate(maps):
        row, column = number // 2 + 1, number % 2 + 1
        figure.add_contour(
            x=field.longitude, y=field.latitude, z=field.values, colorscale=colors,
            row=row, col=column,
            colorbar={"x": 0.41 + 0.6 * (column - 1), "y": 0.8 - 0.6 * (row - 1), "len": 0.44},
        )  # fmt: skip
        figure.add_scatter(
            x=MOUNTAINS[0], y=MOUNTAINS[1], mode="markers", row=row, col=column, showlegend=False,
            marker={"symbol": "triangle-up", "color": "black", "size": 9}, hovertext="mountain",
        )  # fmt: skip
    figure.add_scatter(
        x=data.day, y=spread.values, mode="lines", line_color="black", row=2, col=2,
        showlegend=False,
    )  # fmt: skip
    figure.update_xaxes(title_text="longitude", dtick=60)
    figure.update_yaxes(title_text="latitude", dtick=30)
    figure.update_xaxes(title_text="day", dtick=None, row=2, col=2)
    figure.update_yaxes(title_text="", dtick=None, rangemode="tozero", row=2, col=2)
    members = int(height.notnull().all(("latitude", "longitude")).sum())
    title = f"Height of the 500 hPa surface on day {float(height.day):g}, {members} members"
    return figure.update_layout(title=title, width=1240, height=820, template="simple_white")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", default=Path("ensemble.nc"))
    parser.add_argument("--day", type=float, default=10.0)
    parser.add_argument("--below", type=float, default=5400.0, help="height, m")
    parser.add_argument("--out", type=Path, default=Path("maps.html"))
    options = parser.parse_args()
    with xr.open_dataset(options.file) as data:
        draw(data, options.day, options.below).write_html(options.out)
    print(f"maps: {options.out}")


if __name__ == "__main__":
    main()
