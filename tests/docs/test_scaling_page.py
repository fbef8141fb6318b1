"""The figures of docs/scaling.md are those of the stored results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from statistics import median
from typing import Any

from blocks import ROOT

from gridbench.formats import amount, counted, interval

AREAS = json.loads((ROOT / "docs" / "benchmarks" / "hosts.json").read_text())["areas"]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## Speed\n")[1].split("\n## ")[0]
TEXT = " ".join(SECTION.split())


def row(area: str, what: str) -> dict[str, Any]:
    """A row of a table of docs/benchmarks/hosts.md, by all that it is named by."""
    (found,) = [one for one in AREAS[f"hosts/{area}"]["rows"] if one["what"] == what]
    return dict(found)


def values(area: str, what: str, column: str = "gridrpc") -> list[float]:
    """In seconds where they are times."""
    found = row(area, what)
    return [value * {"us": 1e-6}.get(found["unit"], 1) for value in found[column]["values"]]


def shown(some: list[float], unit: str = "s") -> str:
    """`24.1 µs (22.7–46.0)`."""
    middle = median(some)
    return f"{amount(middle, unit)} ({interval(min(some), max(some), unit, around=middle)})"


def ratio(area: str, what: str) -> str:
    """`0.43 (0.35–0.83)`, to the limit or else to the peer."""
    ratios = row(area, what)["ratios"]
    some = ratios.get("limit") or ratios["peer"]
    return f"{median(some):.2f} ({min(some):.2f}–{max(some):.2f})"


CALLS = [
    ("blocking null call from C, over TCP", "null", "null call over TCP", "bare ping-pong"),
    ("the same over TLS", "null", "null call over TLS", "bare ping-pong over TLS"),
    ("argument of 1 MB over TCP, no link between", "argument", "1 MB over TCP, loopback",
     "bare TCP"),
    ("10 MB", "argument", "10 MB over TCP, loopback", "bare TCP"),
    ("100 MB", "argument", "100 MB over TCP, loopback", "bare TCP"),
    ("1 GB", "argument", "1 GB over TCP, loopback", "bare TCP"),
    ("1 MB over TLS", "argument", "1 MB over TLS, loopback", "OpenSSL, same cipher"),
    ("10 MB", "argument", "10 MB over TLS, loopback", "OpenSSL, same cipher"),
    ("100 MB", "argument", "100 MB over TLS, loopback", "OpenSSL, same cipher"),
    ("1 GB", "argument", "1 GB over TLS, loopback", "OpenSSL, same cipher"),
    ("from nothing to 16 workers on 8 hosts at work, by ssh", "start",
     "from nothing to all at work", "8 parallel `ssh true`"),
]  # fmt: skip
FAR = [
    ("0.1 to 100 MB at 1 Gbit/s, TCP or TLS", "1 Gbit/s", 100_000),
    ("100 bytes to 100 MB at 100 Mbit/s, 10 ms each way", "100 Mbit/s, 10 ms each way", 100),
    ("100 bytes to 1 MB at 1 Mbit/s, 80 ms each way", "1 Mbit/s, 80 ms each way", 100),
]


def calls_table() -> Iterator[str]:
    for text, area, what, beside in CALLS:
        limit = amount(median(values(area, what, "limit")), "s")
        yield (
            f"| {text} | {shown(values(area, what))} | {beside}: {limit} | {ratio(area, what)} |"
        )
    for text, link, least in FAR:
        ratios = [
            median(one["ratios"]["limit"])
            for one in AREAS["hosts/distance"]["rows"]
            if one["what"].endswith(f", {link}") and one["ratios"]
            and int(one["what"].split()[0].replace(",", "")) >= least
        ]  # fmt: skip
        ends = dict.fromkeys(f"{end:.2f}" for end in (min(ratios), max(ratios)))
        yield f"| arguments of {text} | | bare TCP | {' to '.join(ends)} |"
    first = shown(values("start", "the first time, with copying"))
    yield f"| the first time, with copying the program | {first} | | |"
    rate = values("map", "calls per second by map over TLS")
    low, high = (f"{value / 1e6:.0f}" for value in (min(rate), max(rate)))
    yield (
        f"| `map` of a native function to 4 hosts over TLS"
        f" | {median(rate) / 1e6:.0f} million calls/s ({low}–{high}) | | |"
    )


def workers_table() -> Iterator[str]:
    for count in (100, 1_000, 5_000):
        named = f"{count:,} workers"
        # Calls to 100 workers are what the others are compared with.
        compared, column = (named, "gridrpc") if count > 100 else ("1,000 workers", "peer")
        calls = [
            values("many", f"{what}, {compared}", column)
            for what in ("a call, 256 under way", "a call alone")
        ]
        memory = median(values("many", f"memory of each of {named}, agents and spawners included"))
        cells = [
            f"{count:,}",
            shown(values("many", f"start, {named}")),
            shown(values("many", f"close, {named}")),
            f"{memory:.2f} MB",
            *map(shown, calls),
        ]
        yield f"| {' | '.join(cells)} |"


PEERS = ("ray", "dask", "mpi")


def engines_table() -> Iterator[str]:
    for text, what in (
        ("null call", "null call"),
        ("argument of 100 MB", "100 MB argument"),
        ("100 MB to all hosts", "100 MB to all 4 hosts"),
        ("1,000 tasks of 0.1 s, ideal 6.25 s", "1,000 tasks of 0.1 s"),
    ):
        cells = [values("peers", f"{what}; peer: ray")]
        cells += [values("peers", f"{what}; peer: {peer}", "peer") for peer in PEERS]
        yield f"| {text} | {' | '.join(map(shown, cells))} |"


def test_tables_are_those_of_the_kept_results() -> None:
    lines = SECTION.splitlines()
    made = [*calls_table(), *workers_table(), *engines_table()]
    assert len(made) == 23
    assert not [line for line in made if line not in lines]


def test_what_is_reported_of_shared_data_is_what_was_kept() -> None:
    alone = shown(values("shared", "to one host; limit: bare TCP"))
    eight = shown(values("shared", "to 8 hosts; limit: to one host"))
    times = ratio("shared", "to 8 hosts; limit: to one host")
    star = amount(median(values("shared", "the same; peer: a star of plain TCP", "peer")), "s")
    ray = amount(median(values("shared", "the same; peer: ray", "peer")), "s")
    assert f"takes {alone} to one host behind a link of 1 Gbit/s" in TEXT
    assert f"and {eight} to eight of them" in TEXT
    assert f"{times} times as long" in TEXT
    assert f"as a star of plain TCP it takes {star}, with Ray {ray}." in TEXT


def test_rounds_are_counted() -> None:
    rounds = [len(values("peers", f"null call; peer: {peer}")) for peer in PEERS]
    assert re.search(rf"in {counted(min(rounds), 'round')} of each engine", TEXT)


def test_how_often_processes_go_to_sleep_is_what_was_kept() -> None:
    names = ("client", "agent", "spawner", "worker")
    what = "times that the {} goes to sleep for a call over TCP"
    times = sum(median(values("null", what.format(name))) for name in names)
    assert f"together go to sleep {times:.1f} times." in TEXT
