"""What is said of a busy machine, in terminals, records and pages alike."""

from __future__ import annotations

from gridbench.formats import as_given, processors
from gridbench.machine.available import available_count
from gridbench.machine.busiest import Look
from gridbench.machine.load import Load
from gridbench.machine.rule import tolerated

DISTURBED = "disturbed"
"""What a measurement is called of which the rule says so."""
NOTHING = "Nothing can be claimed"
_LITTLE = 0.05  # processors; not told by itself


def busy(look: Look) -> str:
    """How much others use, and who they are."""
    return (
        f"other programs use {_of_all(look.load.others)}, and {processors(tolerated())} are"
        f" tolerated: {_who(look)}"
    )


def remedy(seconds: float = 0.0) -> str:
    """What to do about a busy machine, or about one that stayed so for so long."""
    waited = f"waited {as_given(seconds)}; " if seconds else ""
    return (
        f"{waited}stop the other programs, wait longer with --wait-for-quiet, or measure anyway"
        " with --accept-load for a provisional answer"
    )


def accepted(look: Look) -> str:
    """That it goes on, as the user wants."""
    return f"--accept-load: {busy(look)}. Results are provisional."


def disturbed(load: Load) -> str:
    """Why a measurement does not count; the figures stand behind the colon."""
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
        " machine that cannot all be told from other programs; these used"
        f" {processors(load.at_least)} to {_of_all(load.others)} meanwhile"
    )


def disturbed_count(disturbed: int, of: int, noun: str, cores: int | None = None) -> str:
    """How many measurements the rule does not let count; empty if all do."""
    if not disturbed:
        return ""
    return (
        f"other programs disturbed {disturbed:,} of {of:,} {noun}, as they used more than"
        f" {processors(tolerated(cores))} processors meanwhile"
    )


def sentence(text: str) -> str:
    """Where one of these stands by itself."""
    return f"{text[0].upper()}{text[1:]}."


def no_claim(why: str) -> str:
    """The sentence that stands where a claim would."""
    return f"{NOTHING}: {why}."


def _of_all(used: float) -> str:
    return f"{processors(used)} of {available_count()} processors"


def _who(look: Look) -> str:
    parts = [f"{one.name} (process {one.pid}) {processors(one.processors)}" for one in look.users]
    if _tells(look.load.stolen):
        parts.append(f"the hypervisor, for other machines {processors(look.load.stolen)}")
    if look.rest >= 0.02 or not parts:
        parts.append(f"the kernel, and processes that ended or use little {processors(look.rest)}")
    return ", ".join(parts)


def _tells(used: float) -> bool:
    return used >= _LITTLE
