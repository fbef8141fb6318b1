"""The rule by which a measurement counts as disturbed, and its messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, Protocol

from gridbench.formats import as_given, processors
from gridbench.machine.load import ClockReading, Load, LoadSample, reading, take_sample
from gridbench.machine.processors import available_count

Judgement = Literal["undisturbed", "disturbed", "not known"]

_LEAST = 0.15
_SHARE = 0.02


def tolerated(processors: int | None = None) -> float:
    """Limit on processors that others use during a measurement, of those available to us."""
    return max(_LEAST, _SHARE * (processors or available_count()))


def judged(load: Load) -> Judgement:
    """Whether this load disturbed a measurement on this machine."""
    if load.others <= tolerated():
        return "undisturbed"
    if load.apart and load.at_least <= tolerated():
        return "not known"
    return "disturbed"


def is_quiet(share: float, processors: int) -> bool:
    """Whether others' share of so many processors is tolerated, for records that have only that;
    False for NaN, not known."""
    return share * processors <= tolerated(processors)


class Judged(Protocol):
    """A record of a measurement."""

    @property
    def load(self) -> dict[str, Any] | None:
        """Load by other programs, as recorded by `Watch`."""


def disturbed(record: Judged) -> bool:
    """Whether other programs disturbed the measurement."""
    return (record.load or {}).get("judgement") == "disturbed"


DISTURBED = "disturbed"
"""Name of the judgement in messages."""
NOTHING = "Nothing can be claimed"
_LITTLE = 0.05  # processors; not reported separately


def busy(look: LoadSample) -> str:
    """Processors that others use, and the processes."""
    return (
        f"other programs use {_of_all(look.load.others)}, and {processors(tolerated())} are"
        f" tolerated: {_who(look)}"
    )


def remedy(seconds: float = 0.0) -> str:
    """Remedy for a busy machine, after a wait of some seconds."""
    waited = f"waited {as_given(seconds)}; " if seconds else ""
    return (
        f"{waited}stop the other programs, wait longer with --wait-for-quiet, or measure anyway"
        " with --accept-load for a provisional answer"
    )


def accepted(look: LoadSample) -> str:
    """The message that measuring starts on a busy machine."""
    return f"--accept-load: {busy(look)}. Results are provisional."


def disturbed_sentence(load: Load) -> str:
    """Why a measurement does not count, with figures after the colon."""
    stolen = (
        f", {processors(load.stolen)} of them taken by the hypervisor"
        if _tells(load.stolen)
        else ""
    )
    return (
        f"{DISTURBED}: other programs used {_of_all(load.others)} meanwhile{stolen}, and"
        f" {processors(tolerated())} are tolerated"
    )


def not_known(load: Load) -> str:
    """Why a measurement is not judged."""
    return (
        "whether it was disturbed is not known: servers or batch systems have workers on this"
        " machine that cannot all be distinguished from other programs; these used"
        f" {processors(load.at_least)} to {_of_all(load.others)} meanwhile"
    )


def disturbed_count(disturbed: int, of: int, noun: str, cores: int | None = None) -> str:
    """Number of disturbed measurements, as a message; empty if none is."""
    if not disturbed:
        return ""
    return (
        f"other programs disturbed {disturbed:,} of {of:,} {noun}, as they used more than"
        f" {processors(tolerated(cores))} processors meanwhile"
    )


def disturbance(records: Sequence[Judged], noun: str) -> str:
    """The same as a sentence of records with a `load`, by the processors in the first disturbed."""
    loads = [one.load or {} for one in records if disturbed(one)]
    cores = next((load["processors"] for load in loads if load.get("processors")), None)
    count = disturbed_count(len(loads), len(records), noun, cores)
    return sentence(count) if count else ""


def sentence(text: str) -> str:
    """A message as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def no_claim(why: str) -> str:
    """The sentence in place of a claim."""
    return f"{NOTHING}: {why}."


def _of_all(used: float) -> str:
    return f"{processors(used)} of {available_count()} processors"


def _who(look: LoadSample) -> str:
    parts = [f"{one.name} (process {one.pid}) {processors(one.processors)}" for one in look.users]
    if _tells(look.load.stolen):
        parts.append(f"the hypervisor, for other machines {processors(look.load.stolen)}")
    if look.rest >= 0.02 or not parts:
        parts.append(f"the kernel, and processes that ended or use little {processors(look.rest)}")
    return ", ".join(parts)


def _tells(used: float) -> bool:
    return used >= _LITTLE


_WATCH = 0.25  # seconds, before and after
_SHORT = 0.5  # seconds; shorter measurements are judged with the time before, as clocks are coarse


class Watch:
    """Takes clock readings before, during and after a measurement."""

    def __init__(self, family: int, began: ClockReading | None = None) -> None:
        """`family`: the process whose descendants are ours; `began`: an earlier reading, if any."""
        self._family = family
        self._first = began or reading(family)
        self._began: ClockReading | None = None
        self._ended: ClockReading | None = None
        self._after: Load | None = None

    def begin(self) -> None:
        """Begin the measurement, after enough time has been observed before it."""
        time.sleep(max(0.0, self._first.at + _WATCH - time.monotonic()))
        self._began = reading(self._family)

    def end(self) -> None:
        """End the measurement, while its processes still exist: some take their usage with them."""
        if self._began is not None and self._ended is None:
            self._ended = reading(self._family)

    def look_after(self) -> None:
        """Observe the machine after the measurement."""
        self._after = take_sample(_WATCH).load

    @property
    def load(self) -> Load | None:
        """The judged load; None if nothing was measured."""
        if self._began is None or self._ended is None:
            return None
        measured = self._ended.load_since(self._began)
        return measured if measured.seconds >= _SHORT else self._ended.load_since(self._first)

    @property
    def judgement(self) -> Judgement:
        """Whether others disturbed the measurement."""
        return "not known" if self.load is None else judged(self.load)

    @property
    def told(self) -> str:
        """Why it does not count or is not judged; empty if it counts."""
        if self.load is None or self.judgement == "undisturbed":
            return ""
        return (
            disturbed_sentence(self.load) if self.judgement == "disturbed" else not_known(self.load)
        )

    def record(self) -> dict[str, Any]:
        """All readings and the judgement; loads in processors."""
        before = self._began and self._began.load_since(self._first)
        measured = self._began and self._ended and self._ended.load_since(self._began)
        loads = {"before": before, "measured": measured, "judged": self.load, "after": self._after}
        return {
            "processors": available_count(),
            "tolerated": tolerated(),
            **{name: load and asdict(load) for name, load in loads.items()},
            "judgement": self.judgement,
            "told": self.told,
        }
