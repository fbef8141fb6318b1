"""Running engines round by round, as often as was asked for, or until it is known who is faster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from gridbench.formats import about, spread
from gridbench.process.interrupt import Interrupt
from gridbench.run.runner import Verdict
from gridbench.statistics.claims import MOST, undecided
from gridbench.terminal import say


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often each engine runs."""

    number: int | None = 1
    """None: until it is known which of them is fastest."""
    limit: float = math.inf
    """Without a number: no round begins that would end later than so many seconds after the
    start, except for the first one."""
    accept_load: bool = False
    """Without a number: none begins after one in which other programs disturbed all runs."""

    @property
    def most(self) -> int:
        """How many there can be."""
        return self.number or MOST


def run_rounds(
    engines: Sequence[str],
    run: Callable[[str, int | None], Verdict],
    rounds: Rounds,
    *,
    interrupt: Interrupt,
    console: Console,
) -> list[Verdict]:
    """Run each engine in each round, rounds being numbered from 1 on; in the order in which they
    ran. `run` is given no number if there is one round only.

    Each round begins with another engine, so that none of them always runs first. An engine that
    has failed is not run again.
    """
    verdicts: list[Verdict] = []
    todo = list(engines)
    begun = time.monotonic()
    for number in range(1, rounds.most + 1):
        before = len(verdicts)
        round_begun = time.monotonic()
        first = (number - 1) % len(todo)
        for engine in (*todo[first:], *todo[:first]):
            verdicts.append(run(engine, number if rounds.most > 1 else None))
            if interrupt.came:
                return verdicts
        todo = _to_go_on(engines, verdicts, rounds)
        if not todo or number == rounds.most:
            break
        now = time.monotonic()
        if (
            rounds.number is None
            and rounds.accept_load
            and all(one.disturbed for one in verdicts[before:])
        ):
            say(console, "no further round: other programs use the machine")
            break
        if rounds.number is None and now - begun + now - round_begun > rounds.limit:
            say(
                console,
                f"no further round: it would end after the {about(rounds.limit)} of --limit;"
                f" {_so_far(todo, verdicts)}",
            )
            break
        say(console, f"round {number + 1}: {_so_far(todo, verdicts)}")
    return verdicts


def counting(verdicts: Sequence[Verdict], engine: str) -> list[float]:
    """The total times of the runs of an engine that count, seconds."""
    return [one.total for one in verdicts if one.engine == engine and one.record["valid"]]


def disturbed_only(verdicts: Sequence[Verdict], engine: str) -> list[float]:
    """The total times of the runs of an engine that count for nothing but that other programs
    disturbed them, seconds."""
    return [one.total for one in verdicts if one.engine == engine and one.only_disturbed]


def _to_go_on(engines: Sequence[str], verdicts: Sequence[Verdict], rounds: Rounds) -> list[str]:
    """The engines that another round is for."""
    failed = {one.engine for one in verdicts if one.exit_status}
    sound = [engine for engine in engines if engine not in failed]
    if rounds.number is not None:
        return sound
    return undecided({engine: counting(verdicts, engine) for engine in sound})


def _so_far(engines: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    told = []
    for engine in engines:
        totals = counting(verdicts, engine)
        told.append(f"{engine} {spread(totals) if totals else 'has no run that counts'}")
    return f"{', '.join(told)} so far"
