"""Accounts of simulated runs in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.scenario.amounts import rate_text, size_text
from gridbench.simulate.account import Account
from gridbench.simulate.compared import Against
from gridbench.simulate.sweep import Swept
from gridbench.simulate.systems import SYSTEMS, System
from gridbench.simulate.throttling import Level
from gridbench.simulate.work import Work

_SHOWN_PART = 0.0005
"""Parts below this share of the total are left out."""


def heading(work: Work) -> str:
    """What was asked for, in a line."""
    spread = f" +- {work.stddev:g}" if work.stddev else ""
    parts = [
        f"{work.tasks:,} tasks of {work.sleep:g}{spread} s on {work.cores:,} cores",
        f"input {size_text(work.bytes_in)}",
        f"shared {size_text(work.bytes_shared)}",
        f"output {size_text(work.bytes_out)}",
    ]
    return ", ".join(parts)


def links(system: System) -> str:
    """Its links, in words."""
    return "one host" if system.one_host else f"links of {rate_text(system.link)}"


def print_account(console: Console, one: Account) -> None:
    """One run."""
    console.print(Text(f"{one.system.title}, simulated", style="bold"))
    console.print(Text(f"{heading(one.work)}; {links(one.system)}"))
    table = Table(show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, value in _figures(one):
        table.add_row(name, value)
    console.print(table)
    if one.parts:
        console.print(_parts(one))
    console.print(_uses(one))
    if one.gains:
        console.print(_gains(one))
    console.print(Text("What limits: ", style="bold").append(Text(one.limit, style="not bold")))
    _print_notices(console, one.notices)


def _figures(one: Account) -> Iterable[tuple[str, str]]:
    yield "total", seconds(one.total)
    yield "ideal", seconds(one.ideal)
    yield "efficiency", share(one.efficiency)
    yield "first task computing after", seconds(one.first_start)
    yield "last worker computing after", seconds(one.last_start)
    if one.pressure and one.pressure.most:
        yield "most bytes held by the manager", size_text(one.pressure.most)
        if one.pressure.worst:
            yield "throttling reached", Level(one.pressure.worst).name.lower()
            yield "tasks paged to disk", f"{one.pressure.paged:,}"


def _parts(one: Account) -> Table:
    table = Table(title="Where the time goes, mean of the workers", title_justify="left")
    table.add_column("")
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    for name, value in one.parts.items():
        if abs(value) > _SHOWN_PART * one.total:
            table.add_row(name, seconds(value), share(value / one.total))
    return table


def _uses(one: Account) -> Table:
    table = Table(title="What was busy", title_justify="left")
    table.add_column("")
    table.add_column("busy", justify="right")
    table.add_column("of the time", justify="right")
    for use in one.uses:
        table.add_row(use.what, seconds(use.busy), share(use.share))
    return table


def _gains(one: Account) -> Table:
    table = Table(title="What the total would be without", title_justify="left")
    table.add_column("")
    table.add_column("total", justify="right")
    table.add_column("saved", justify="right")
    for gain in one.gains:
        table.add_row(gain.without, seconds(gain.total), seconds(gain.saved))
    return table


def print_swept(console: Console, swept: Swept) -> None:
    """A table with a row for each value."""
    if not swept.accounts:
        return
    first = swept.accounts[0]
    console.print(Text(f"{first.system.title}, simulated", style="bold"))
    table = Table()
    table.add_column(swept.sweep.axis.name, justify="right")
    for name in SWEEP_HEAD[1:]:
        table.add_column(name, justify="left" if name == "what limits" else "right")
    for row in sweep_rows(swept):
        table.add_row(*row)
    console.print(table)
    _print_notices(console, swept.accounts[-1].notices)


SWEEP_HEAD = ("", "tasks", "total", "ideal", "efficiency", "busiest", "what limits")


def sweep_rows(swept: Swept) -> list[tuple[str, ...]]:
    """A row for each value, in the columns of `SWEEP_HEAD`."""
    text = swept.sweep.axis.text
    return [
        (
            text(value),
            f"{one.work.tasks:,}",
            seconds(one.total),
            seconds(one.ideal),
            share(one.efficiency),
            share(one.uses[0].share) if one.uses else "-",
            one.limit,
        )
        for value, one in zip(swept.sweep.values, swept.accounts, strict=False)
    ]


def print_against(console: Console, found: Against) -> None:
    """Real and simulated, side by side."""
    console.print(Text(found.title, style="bold"))
    console.print(Text(found.how))
    table = Table()
    table.add_column("case", overflow="fold")
    heads = ("real", "simulated", "error", "of the overhead")
    for head in heads if found.totals else heads[:-1]:
        table.add_column(head, justify="right")
    for row in found.rows:
        cells = [row.what, seconds(row.real), seconds(row.simulated), signed(row.error)]
        table.add_row(*cells, *([signed(row.overhead_error)] if found.totals else []))
    console.print(table)
    for name, value in found.errors().items():
        console.print(Text(f"absolute error, {name}: {value:.1%}"))
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
        console.print(Text(f"mind: {notice}", style="yellow"))


def seconds(value: float) -> str:
    """A time for people: hours of it stay seconds, as everything here is compared in them."""
    if math.isnan(value):
        return "-"
    if value and abs(value) < 0.1:
        return f"{value * 1e3:,.3g} ms"
    return f"{value:,.2f} s"


def share(value: float) -> str:
    """A part of something."""
    return "-" if math.isnan(value) else f"{value:.1%}"


def signed(value: float) -> str:
    """A relative error."""
    return "-" if math.isnan(value) else f"{value:+.1%}"
