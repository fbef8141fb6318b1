"""Provisional answers: what measurements indicate that prove nothing, and why they prove nothing.

Every command says it by these functions, so that a reader, a page and a program know a provisional
answer by its first word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gridbench.formats import amount, counted, plain

PROVISIONAL = "Provisional"


def provisional(indication: str, why: str) -> str:
    """`Provisional: ray 1.1 s, loky 2.2 s (2 times); the machine was busy in 3 of 3 rounds.`"""
    return f"{PROVISIONAL}: {indication.removesuffix('.')}; {why.removesuffix('.')}."


def is_provisional(answer: str) -> bool:
    """Whether a sentence is a provisional answer."""
    return answer.startswith(f"{PROVISIONAL}:")


def answer_record(answer: str) -> dict[str, object]:
    """The answer of a command as its JSON has it."""
    return {"verdict": answer, "provisional": is_provisional(answer)}


def marked(sentences: Sequence[str], why: str) -> list[str]:
    """The same sentences as one provisional answer; nothing if there are none."""
    return [provisional(sentences[0], why), *sentences[1:]] if sentences else []


def in_order(seconds: Mapping[str, float]) -> str:
    """Names with their times, the shortest first, each with how many times the first it takes."""
    names = sorted(seconds, key=lambda name: seconds[name])
    least = seconds[names[0]]
    parts = [f"{names[0]} {amount(least, 's')}"]
    for name in names[1:]:
        ratio = f" ({plain(seconds[name] / least)} times)" if least > 0 else ""
        parts.append(f"{name} {amount(seconds[name], 's')}{ratio}")
    return ", ".join(parts)


def busy_in(disturbed: int, of: int, noun: str) -> str:
    """The reason when other programs disturb: `the machine was busy in 2 of 3 rounds`."""
    return f"the machine was busy in {disturbed:,} of {counted(of, noun)}"
