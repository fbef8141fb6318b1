"""Small results of micro benchmarks, made by hand, for the tests of what presents them."""

from __future__ import annotations

from gridbench.micro.record import (
    Claim,
    CurveAxis,
    CurveLine,
    FigureCurve,
    FigureEntry,
    FigureParameter,
    Lead,
    MicroFigure,
    Ratio,
    Results,
)


def entry(engine: str, median: float, *, disturbed: int = 0, note: str = "") -> FigureEntry:
    """Five runs around a median."""
    values = tuple(median * part for part in (0.9, 0.95, 1.0, 1.1, 1.2))
    return FigureEntry(
        engine=engine,
        median=median,
        low=values[0],
        high=values[-1],
        runs=5,
        values=values,
        disturbed_runs=disturbed,
        note=note,
        percentiles={"50": median, "99": 3 * median, "99.9": 9 * median},
    )


def ratio(value: float, claim: Claim, to_limit: float | None = None) -> Ratio:
    """With an interval of a tenth to both sides."""
    return Ratio(to_peer=value, low=value * 0.9, high=value * 1.1, to_limit=to_limit, claim=claim)


def latency() -> MicroFigure:
    """gridrpc is ahead; an engine failed, one cannot."""
    return MicroFigure(
        id="null_call",
        workload="null calls",
        title="a call that does nothing",
        unit="us",
        better="less",
        entries=(
            entry("ray", 2700),
            entry("process-pool", 250, disturbed=2),
            entry("gridrpc-python", 12.5),
            FigureEntry(engine="dask", status="failed", why="no first task in 180 s"),
            FigureEntry(engine="hyperqueue", status="cannot", why="reports once a second"),
        ),
        limits=(entry("ping_pong_unix", 10),),
        noise=1.08,
        best_peer="process-pool",
        ratios={
            "gridrpc-python": ratio(0.05, "faster", 1.25),
            "ray": ratio(10.8, "slower", 270),
            "process-pool": ratio(1, "no difference", 25),
        },
    )


def rate() -> MicroFigure:
    """A peer is ahead."""
    return MicroFigure(
        id="map_rate",
        workload="null calls",
        title="null calls per second by map",
        unit="calls/s",
        better="more",
        entries=(
            entry("gridrpc-python", 800_000, note="chunk 100"),
            entry("process-pool", 1_600_000, note="chunk 1000"),
            entry("ray", 900),
        ),
        noise=1.05,
        best_peer="process-pool",
        ratios={"gridrpc-python": ratio(0.5, "slower")},
    )


def arrays(name: str, size: float, ours: float, peer: float) -> MicroFigure:
    """No difference can be claimed."""
    return MicroFigure(
        id=f"argument_{name}",
        workload="arguments",
        title=f"an array as argument, {name}",
        unit="ms",
        better="less",
        parameter=FigureParameter(name="bytes", value=size),
        entries=(entry("gridrpc-python", ours), entry("ray", peer)),
        best_peer="ray",
        ratios={"gridrpc-python": ratio(ours / peer, "no difference")},
    )


def curve() -> FigureCurve:
    """Two engines over array sizes."""
    return FigureCurve(
        id="argument",
        title="an array as argument",
        x=CurveAxis(name="size", unit="bytes"),
        y=CurveAxis(name="time", unit="ms"),
        log=True,
        lines=(
            CurveLine(
                engine="gridrpc-python", x=(1e4, 1e8), y=(0.02, 24), low=(0.01, 20), high=(0.03, 30)
            ),
            CurveLine(engine="ray", x=(1e4, 1e8), y=(2.5, 23)),
        ),
    )


def made(**changes: object) -> Results:
    """All of the above, with bounds that were reached, missed and not measured."""
    fields: dict[str, object] = {
        "machine": {"host": "bench", "processor": "A processor", "cores": 2, "memory": 24 * 10**9},
        "versions": {"python": "3.11.7", "ray": "2.60.0"},
        "options": {"sizes": "quick", "seed": 7},
        "started": "2031-05-04T10:30:00+0200",
        "ended": "2031-05-04T11:15:00+0200",
        "figures": (
            latency(),
            rate(),
            arrays("100MB", 1e8, 24, 23),
            arrays("10KB", 1e4, 0.02, 0.021),
        ),
        "curves": (curve(),),
        "lead": (
            Lead(
                what="null call",
                figure="null_call",
                engine="gridrpc-python",
                against="best peer: process-pool",
                bound=0.125,
                sense="<=",
                value=0.05,
                reached=True,
            ),
            Lead(
                what="map by the single submits of the fastest",
                figure="map_rate",
                engine="gridrpc-python",
                against="process-pool",
                of="null_call",
                bound=150,
                sense=">=",
                value=91,
                reached=False,
            ),
            Lead(
                what="native calls per second",
                figure="native_rate",
                engine="gridrpc-native",
                bound=3_000_000,
                sense=">=",
                why="there is no C compiler",
            ),
            Lead(
                what="null call, in itself",
                figure="null_call",
                engine="gridrpc-python",
                bound=20,
                sense="<=",
                value=12.5,
                reached=True,
            ),
        ),
    }
    return Results(**(fields | changes))  # type: ignore[arg-type]
