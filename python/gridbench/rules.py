"""The rules that results have to keep before anything is claimed from them: see docs/rules.md.

Each benchmark gives its own as data: a `Rules` with the name RULES, in a module that its
result_kind.py names. `gridbench check` runs them. A rule recomputes what it judges, or reads it
from what the record holds; where the record does not say, the outcome is "not known".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from gridbench.formats import counted, named
from gridbench.jsonl_store import Header, ResultsForm, folder_of
from gridbench.machine.judgement import disturbed
from gridbench.statistics.claims import ENOUGH

if TYPE_CHECKING:
    from gridbench.jsonl_store import A

Outcome = Literal["kept", "broken", "not known"]
Seen = tuple[Outcome, str]
"""The outcome of a rule, and what was seen."""

S = TypeVar("S")

_FACTS = ("host", "processor", "cores")


@dataclass(frozen=True, slots=True)
class Measured(Generic[S]):
    """The results in a folder, as rules look at them."""

    folder: Path
    header: Header
    cases: tuple[S, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of a result."""

    rule: str
    outcome: Outcome
    told: str
    """What was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(Generic[S]):
    """The rules of one kind of results, and how to read what they judge."""

    key: str
    """What is judged, as `--json` names it: "runs"."""
    places: Callable[[Path], Sequence[Path]] = lambda source: [source]
    """Where that lies in a source; the source itself, unless a source can hold several."""
    read: Callable[[Path], S]
    """What lies there. InputError if it cannot be read."""
    each: Mapping[str, Callable[[S], Seen]]
    """The rules of one result by their names, in the order of docs/rules.md."""
    across: Mapping[str, Callable[[Sequence[S]], Seen]] = field(default_factory=dict)
    """Those of all results together."""

    def judge(self, result: S) -> list[Finding]:
        """What all rules say of one result."""
        return [Finding(rule, *look(result)) for rule, look in self.each.items()]

    def judge_together(self, results: Sequence[S]) -> list[Finding]:
        """What all rules say of results together."""
        return [Finding(rule, *look(results)) for rule, look in self.across.items()]


def broken_by(things: Sequence[str], why: str, stored: str) -> Seen:
    """Broken if there are any of these, which are named after `why`; else kept, with `kept`."""
    return ("broken", f"{why}: {named(things)}") if things else ("kept", stored)


def recorded(
    machine: Mapping[str, Any], versions: Mapping[str, str], without: Iterable[str] = ()
) -> Seen:
    """Whether the record has the machine and the versions; `without`: what else it lacks."""
    lacks = [f"the machine's {name}" for name in _FACTS if not machine.get(name)]
    lacks += [f"the version of {name}" for name in ("python", "gridrpc") if not versions.get(name)]
    lacks += without
    text = f"measured on {machine.get('host')}, gridrpc {versions.get('gridrpc')}"
    return broken_by(lacks, "the record lacks", text)


def undisturbed(
    measured: Sequence[tuple[str, Mapping[str, Any] | None]], noun: str, left_out: int
) -> Seen:
    """Whether other programs disturbed any of these, which figures are of.

    `measured`: what each is called, and what its record says of the load, as that of a run;
    `left_out`: how many more there are that figures are not of.
    """
    judgements = [(name, (load or {}).get("judgement")) for name, load in measured]
    busy = [name for name, judgement in judgements if judgement == "disturbed"]
    unknown = sum(judgement not in ("disturbed", "undisturbed") for _, judgement in judgements)
    if unknown and not busy:
        of = counted(len(measured), noun)
        return "not known", f"of {unknown:,} of {of} it is not known what other programs did"
    more = f"; {left_out:,} more do not count, and are left out" if left_out else ""
    why = "figures are of what other programs disturbed"
    return broken_by(busy, why, f"nothing disturbed {counted(len(measured), noun)}{more}")


def enough(times: Iterable[tuple[str, int]], noun: str) -> Seen:
    """Whether all of these were measured often enough for a claim; `times`: what each is called,
    and how many of what the noun names count."""
    found = list(times)
    few = [f"{name} {counted(count, noun)}" for name, count in found if count < ENOUGH]
    least = counted(min((count for _, count in found), default=0), noun)
    return broken_by(few, f"less than {ENOUGH} {noun}s", f"{least} of each at least")


# ---- Rules of all results that are records with a status, `why` and `load`

Rule = Callable[[Measured[Any]], Seen]


def _describe(record: Any) -> str:
    return str(record.describe())


def reader_of(form: ResultsForm[A]) -> Callable[[Path], Measured[A]]:
    """Reads all records of this form."""

    def read(source: Path) -> Measured[A]:
        header, records = form.read(source)
        return Measured(folder_of(source), header, tuple(records))

    return read


def all_complete(noun: str, name: Callable[[Any], str] = _describe) -> Rule:
    """No case failed. `noun`, `name`: what a case is called."""

    def look(found: Measured[Any]) -> Seen:
        if not any(one.status == "done" for one in found.cases):
            return "broken", "nothing was measured"
        failed = [f"{name(one)} ({one.why})" for one in found.cases if one.status == "failed"]
        skipped = sum(one.status == "skipped" for one in found.cases)
        left = f"; {skipped:,} skipped, with the reason" if skipped else ""
        ended = counted(len(found.cases) - skipped, noun)
        return broken_by(failed, "failed", f"{ended} came to their end{left}")

    return look


def all_quiet(noun: str, name: Callable[[Any], str] = _describe) -> Rule:
    """Other programs disturbed none of those that figures are of."""

    def look(found: Measured[Any]) -> Seen:
        done = [one for one in found.cases if one.status == "done"]
        sound = [one for one in done if not disturbed(one)]
        looked = [(name(one), one.load) for one in sound or done]
        return undisturbed(looked, noun, len(done) - len(looked))

    return look


def all_repeated(noun: str, name: Callable[[Any], str] = _describe) -> Rule:
    """Each case was measured often enough; `noun`: a repeat, `name`: what all of them have."""

    def look(found: Measured[Any]) -> Seen:
        done = [one for one in found.cases if one.status == "done"]
        sound = Counter(name(one) for one in done if not disturbed(one))
        return enough([(case, sound[case]) for case in dict.fromkeys(map(name, done))], noun)

    return look


def all_recorded(option: str = "", what: str = "") -> Rule:
    """The header has machine and versions, and this option, which messages call `what`."""

    def look(found: Measured[Any]) -> Seen:
        header = found.header
        lacks = [what] if option and not header.options.get(option) else []
        return recorded(header.machine, header.versions, lacks)

    return look
