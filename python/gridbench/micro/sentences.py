"""Sentences: who is ahead, who is not, what is unknown, and the method."""

from __future__ import annotations

import datetime
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gridbench.formats import amount, counted, times
from gridbench.machine.judgement import disturbed_count, no_claim, sentence
from gridbench.micro.record import Claim, Lead, MicroFigure, Results
from gridbench.micro.wording import (
    advantage,
    against_peer,
    has_value,
    indicated,
    ours,
    status_word,
    titled,
)
from gridbench.micro.workloads import C
from gridbench.statistics.claims import ENOUGH, busy_in, provisional

MAIN_ENGINE = "gridrpc-python"
"""The one that is compared in words, if it was measured: like all peers, it runs any Python
function."""
_AHEAD: dict[Claim, str] = {"faster": "ahead", "slower": "behind"}
FEW_RUNS = 6
"""With fewer no two values hold the median in 95 % of cases."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Figures that an engine has no value in, for one reason."""

    engine: str
    status: str
    why: str
    figures: tuple[str, ...]
    """Titles."""


def compared_engine(results: Results) -> str:
    """The engine of gridrpc that is compared in words: MAIN_ENGINE, unless others alone have peers.

    Of others it is the one that has a peer in most figures; variants, named after a comma, are
    the last to be taken.
    """
    counts = Counter(
        engine
        for figure in results.figures
        for engine, ratio in figure.ratios.items()
        if ours(engine) and ratio.to_peer is not None
    )
    if not counts or MAIN_ENGINE in counts:
        return MAIN_ENGINE
    return min(counts, key=lambda name: (", " in name, -counts[name], name))


def headline(results: Results) -> list[str]:
    """The outcome in a few sentences: who is ahead, or that nothing can be claimed, comes first."""
    if not results.figures:
        return ["Nothing was measured yet that makes a figure."]
    found = _comparison(results)
    runs = [e.runs for figure in results.figures for e in figure.entries if has_value(e)]
    if single := runs.count(1):
        found.append(
            f"{single:,} of {len(runs):,} values are of a single run, so their scatter is not"
            " known."
        )
    if known := targets(results):
        reached = sum(bool(lead.reached) for lead in known)
        missed = len(known) - reached
        judged = "" if len(known) == len(results.lead) else " that were measured"
        found.append(
            f"Of {counted(len(known), 'target')}{judged} {_number(reached)} reached"
            + (f", {_number(missed)} missed." if missed else ".")
        )
    return found


def targets(results: Results) -> tuple[Lead, ...]:
    """The targets that could be judged."""
    return tuple(lead for lead in results.lead if lead.reached is not None)


def not_judged(results: Results) -> list[Lead]:
    """Targets that could not be judged although their own value was measured."""
    measured = {
        (figure.id, entry.engine)
        for figure in results.figures
        for entry in figure.entries
        if has_value(entry)
    }
    return [lead for lead in results.lead if lead.why and (lead.figure, lead.engine) in measured]


def _comparison(results: Results) -> list[str]:
    """What is known of an engine of gridrpc against the best peers."""
    engine = compared_engine(results)
    compared = [
        (figure, ratio)
        for figure in results.figures
        if (ratio := figure.ratios.get(engine)) is not None and ratio.to_peer is not None
    ]
    if not compared:
        return [no_claim("in no figure an engine of gridrpc was measured beside a peer")]
    claims = Counter(ratio.claim for _, ratio in compared)
    every = Counter(indicated(figure, engine) for figure, _ in compared)
    good = [value[0] for pair in compared if (value := advantage(*pair)) is not None]
    median = f"; the median advantage is {times(statistics.median(good))}" if good else ""

    def describe(found: Counter[Claim]) -> str:
        return (
            f"{engine} is ahead of the best peer in {found['faster']} of"
            f" {counted(len(compared), 'figure')} and behind in {found['slower']}{median}"
        )

    why = _unproven(results)
    if not any(_undisturbed(figure, engine) for figure, _ in compared):
        return [provisional(describe(every), why)]
    further = every - claims
    parts = [f"{word} in {further[claim]} more" for claim, word in _AHEAD.items() if further[claim]]
    return [f"{describe(claims)}.", *([provisional(" and ".join(parts), why)] if parts else [])]


def _unproven(results: Results) -> str:
    """Why differences that can be seen are not claimed."""
    entries = [entry for figure in results.figures for entry in figure.entries]
    disturbed_runs, runs = sum(e.disturbed_runs for e in entries), sum(e.runs for e in entries)
    if disturbed_runs:
        return busy_in(disturbed_runs, runs, "measurement")
    return f"a claim takes {ENOUGH} undisturbed rounds that agree"


def _undisturbed(figure: MicroFigure, engine: str) -> bool:
    """Whether there are enough undisturbed runs of an engine and its best peer."""
    return enough_undisturbed(figure, engine, figure.best_peer or "")


def enough_undisturbed(figure: MicroFigure, *engines: str) -> bool:
    """Whether each of the engines has enough undisturbed runs for a claim."""
    runs = {e.engine: e.runs - e.disturbed_runs for e in figure.entries}
    return all(runs.get(engine, 0) >= ENOUGH for engine in engines)


def claims_something(results: Results) -> bool:
    """Whether other programs have left anything that can be claimed."""
    entries = [entry for figure in results.figures for entry in figure.entries]
    if not any(entry.disturbed_runs for entry in entries):
        return True
    if any(figure.best_peer for figure in results.figures):
        engine = compared_engine(results)
        return any(_undisturbed(figure, engine) for figure in results.figures if figure.best_peer)
    return any(entry.runs > entry.disturbed_runs for entry in entries)


def incomplete(results: Results) -> str:
    """How far the run came, if it was ended early; empty if it is complete or not known."""
    extent = results.extent
    if extent is None or extent.points >= extent.planned:
        return ""
    return (
        f"This run was ended early, in round {extent.round} of {extent.rounds}: "
        f"{extent.points:,} of {extent.planned:,} points are there. Figures are of fewer runs than "
        "they should be, and some are missing."
    )


def behind(results: Results) -> list[str]:
    """Where a peer is ahead of an engine of ours."""
    return list(_claims(results, "slower"))


def unproven(results: Results) -> list[str]:
    """Where the runs show a difference that they do not prove."""
    return list(_claims(results, ""))


def undecided(results: Results) -> list[str]:
    """Where neither the peer nor gridrpc is ahead."""
    return list(_claims(results, "no difference"))


def gaps(figures: Iterable[MicroFigure]) -> list[Gap]:
    """What has no value, by engine and reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for figure in figures:
        for entry in (*figure.entries, *figure.limits):
            if not has_value(entry):
                key = (entry.engine, entry.status, entry.why)
                found.setdefault(key, []).append(titled(figure.title))
    return [Gap(*key, tuple(titles)) for key, titles in sorted(found.items())]


def reason(status: str, why: str) -> str:
    """`failed: no first task in 180 s`, on one line."""
    text = " ".join(why.split())
    return f"{status_word(status)}: {text}" if text else status_word(status)


def disturbed(results: Results) -> str:
    """How many values come from runs that other programs disturbed; empty if none does."""
    reported = _disturbed_values(results)
    return (
        sentence(f"{reported}; medians that rest on any of these have a star") if reported else ""
    )


def _disturbed_values(results: Results) -> str:
    """The same as a part of a sentence."""
    entries = [entry for figure in results.figures for entry in figure.entries]
    count, of = sum(e.disturbed_runs for e in entries), sum(e.runs for e in entries)
    return disturbed_count(count, of, "values", results.machine.get("cores"))


def fewest_runs(results: Results) -> int:
    """Of all that has a value; 0 without any."""
    counts = [e.runs for figure in results.figures for e in figure.entries if has_value(e)]
    return min(counts, default=0)


def machine_line(results: Results) -> str:
    """Processor, cores, memory, system in one line, as far as they are known."""
    machine = results.machine
    cores = machine.get("cores_usable") or machine.get("cores")
    memory = machine.get("memory")
    parts = [
        str(machine.get("processor") or ""),
        f"{cores} cores" if isinstance(cores, int) else "",
        f"{amount(memory, 'bytes')} of memory" if isinstance(memory, int) else "",
        str(machine.get("system") or ""),
    ]
    return ", ".join(part for part in parts if part)


def when(results: Results) -> str:
    """When the run was made."""
    times_of = [_moment(text) for text in (results.started, results.ended) if text]
    first, *rest = times_of
    # The day is said once, if it is the same.
    last = [text.removeprefix(first[: len("2031-05-04 ")]) for text in rest]
    return " to ".join([first.removesuffix(" UTC") if last else first, *last])


def _moment(text: str) -> str:
    """A time in UTC, for people; the text itself if it is not ISO 8601."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        return moment.strftime("%Y-%m-%d %H:%M")
    return moment.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def method(results: Results) -> list[str]:
    """How it was measured, in a few sentences that hold for all figures."""
    found = [
        "Every engine has its own environment and its own client process, and is set up as its "
        "manual recommends. Engines and workloads take turns in random order, round by round, so "
        "that a machine that is slow for a while is slow for all of them.",
        "Figures are medians over the rounds with their 95 % interval; percentiles come from the "
        "merged samples of all rounds. Ratios are medians of the ratios within a round.",
        *(
            ["With fewer than six rounds the interval reaches from the smallest to the largest."]
            if fewest_runs(results) < FEW_RUNS
            else []
        ),
        *_equals(results),
        *_harness(results),
        "Disturbed runs are repeated while time allows, and marked if they are disturbed again. "
        f"A claim needs {ENOUGH} undisturbed rounds, with the same engine ahead in each.",
    ]
    extent = results.extent
    if extent is not None and not incomplete(results):
        found.append(
            f"The run is complete: it has all {counted(extent.points, 'point')} of "
            f"{counted(extent.rounds, 'round')}."
        )
    options = ", ".join(f"{name} {value}" for name, value in sorted(results.options.items()))
    return [*found, f"Options of this run: {options}."] if options else found


def _harness(results: Results) -> list[str]:
    """How much of the times can be the benchmark's own, by the fastest call that it made."""
    calls = next((figure for figure in results.figures if figure.id == "null_call"), None)
    if calls is None:
        return []
    # Calls from C are made by a program of their own.
    values = {e.engine: e.median for e in calls.entries if has_value(e) and e.engine != C}
    known = {name: median for name, median in values.items() if median is not None}
    if not known:
        return []
    fastest = min(known, key=known.__getitem__)
    return [
        "The benchmark's own program, which makes the calls, is in the times of all engines alike. "
        f"For an empty call its share is below {amount(known[fastest], calls.unit)}, the "
        f"total for the fastest engine, {fastest}."
    ]


def _equals(results: Results) -> list[str]:
    noises = [figure.noise for figure in results.figures if figure.noise > 1]
    if not noises:
        return []
    return [
        "Two engines are measured twice in each round. By as much as these equals differ, "
        f"{times(statistics.median(noises))} in the median of the figures and "
        f"{times(max(noises))} at most, no engine is called ahead of another."
    ]


def _claims(results: Results, claim: Claim | Literal[""]) -> Iterable[str]:
    """A line for each ratio with a claim; without a claim, for those that are provisional."""
    for figure in results.figures:
        medians = {entry.engine: entry.median for entry in figure.entries}
        peer = figure.best_peer or ""
        for engine, ratio in sorted(figure.ratios.items()):
            if not ours(engine) or ratio.to_peer is None:
                continue
            shown = indicated(figure, engine)
            if (shown if shown == ratio.claim else "") == claim:
                values = (
                    f"{engine} {amount(medians.get(engine), figure.unit)}, "
                    f"{peer} {amount(medians.get(peer), figure.unit)}"
                )
                said = f" ({against_peer(figure, engine)})" if claim in ("slower", "") else ""
                yield f"{titled(figure.title)}: {values}{said}"


def _number(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"
