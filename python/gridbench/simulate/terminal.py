"""Accounts of simulated runs in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.formats import as_given, bit_rate, compact_size, duration, percent, signed_percent
from gridbench.simulate.account import Account
from gridbench.simulate.comparison import SimulationComparison
from gridbench.simulate.profiles import SYSTEMS
from gridbench.simulate.simulation import SimulatedWorkload
from gridbench.simulate.sweep import Swept
from gridbench.simulate.systems import Level, System
from gridbench.terminal import new_table

_SHOWN_PART = 0.0005
"""Parts below this share of the total are left out."""


def heading(work: SimulatedWorkload) -> str:
    """What was asked for, in a line."""
    spread = f" +- {as_given(work.stddev, '')}" if work.stddev else ""
    parts = [
        f"{work.tasks:,} tasks of {as_given(work.sleep, '')}{spread} s on {work.cores:,} cores",
        f"input {compact_size(work.bytes_in)}",
        f"shared {compact_size(work.bytes_shared)}",
        f"output {compact_size(work.bytes_out)}",
    ]
    return ", ".join(parts)


def links(system: System) -> str:
    """Its links, in words."""
    return "one host" if system.one_host else f"links of {bit_rate(system.link)}"


def print_account(console: Console, one: Account) -> None:
    """One run."""
    console.print(Text(f"{one.system.title}, simulated", style="bold"))
    console.print(Text(f"{heading(one.work)}; {links(one.system)}"))
    table = new_table(words=("",), numbers=("",), header=False)
    for name, value in _figures(one):
        table.add_row(name, value)
    console.print(table)
    if one.parts:
        console.print(_parts(one))
    console.print(_uses(one))
    if one.gains:
        console.print(_gains(one))
    console.print(Text("Bottleneck: ", style="bold").append(Text(one.limit, style="not bold")))
    _print_notices(console, one.notices)


def _figures(one: Account) -> Iterable[tuple[str, str]]:
    yield "total", duration(one.total)
    yield "ideal", duration(one.ideal)
    yield "efficiency", percent(one.efficiency)
    yield "first task computing after", duration(one.first_start)
    yield "last worker computing after", duration(one.last_start)
    if one.pressure and one.pressure.most:
        yield "most bytes held by the manager", compact_size(one.pressure.most)
        if one.pressure.worst:
            yield "throttling reached", Level(one.pressure.worst).name.lower()
            yield "tasks paged to disk", f"{one.pressure.paged:,}"


def _parts(one: Account) -> Table:
    table = new_table(
        "Where the time goes, mean of the workers", words=("",), numbers=("time", "share")
    )
    for name, value in one.parts.items():
        if abs(value) > _SHOWN_PART * one.total:
            table.add_row(name, duration(value), percent(value / one.total))
    return table


def _uses(one: Account) -> Table:
    table = new_table("What was busy", words=("",), numbers=("busy", "of the time"))
    for use in one.uses:
        table.add_row(use.what, duration(use.busy), percent(use.share))
    return table


def _gains(one: Account) -> Table:
    table = new_table("What the total would be without", words=("",), numbers=("total", "saved"))
    for gain in one.gains:
        table.add_row(gain.without, duration(gain.total), duration(gain.saved))
    return table


def print_swept(console: Console, swept: Swept) -> None:
    """A table with a row for each value."""
    if not swept.accounts:
        return
    first = swept.accounts[0]
    console.print(Text(f"{first.system.title}, simulated", style="bold"))
    table = new_table(numbers=(swept.sweep.axis.name, *SWEEP_HEAD[:-1]))
    table.add_column(SWEEP_HEAD[-1])
    for row in sweep_rows(swept):
        table.add_row(*row)
    console.print(table)
    _print_notices(console, swept.accounts[-1].notices)


SWEEP_HEAD = ("tasks", "total", "ideal", "efficiency", "busiest", "what limits")


def sweep_rows(swept: Swept) -> list[tuple[str, ...]]:
    """A row for each value: that, and the columns of `SWEEP_HEAD`."""
    text = swept.sweep.axis.text
    return [
        (
            text(value),
            f"{one.work.tasks:,}",
            duration(one.total),
            duration(one.ideal),
            percent(one.efficiency),
            percent(one.uses[0].share) if one.uses else "-",
            one.limit,
        )
        for value, one in zip(swept.sweep.values, swept.accounts, strict=False)
    ]


def print_against(console: Console, found: SimulationComparison) -> None:
    """Real and simulated, side by side."""
    console.print(Text(found.title, style="bold"))
    console.print(Text(found.how))
    of_overhead = ("of the overhead",) if found.totals else ()
    table = new_table(words=("case",), numbers=("real", "simulated", "error", *of_overhead))
    for row in found.rows:
        cells = [row.what, duration(row.real), duration(row.simulated), signed_percent(row.error)]
        table.add_row(*cells, *([signed_percent(row.overhead_error)] if found.totals else []))
    console.print(table)
    for name, value in found.errors().items():
        console.print(Text(f"absolute error, {name}: {percent(value)}"))
    for line in found.left_out:
        console.print(Text(f"left out: {line}"))
    console.print()


def listing() -> str:
    """The built-in profiles, with what they are."""
    made = {name: make() for name, make in SYSTEMS.items()}
    width = max(map(len, made))
    return "\n".join(f"  {name:{width}}  {one.title}" for name, one in made.items())


def _print_notices(console: Console, notices: Sequence[str]) -> None:
    for notice in notices:
        console.print(Text(f"caution: {notice}", style="yellow"))
