"""What came of it in sentences, and what has to be known before it is trusted."""

from __future__ import annotations

from collections.abc import Sequence

from gridbench.datagrid.crossover.answer import CrossoverAnswer, Pair
from gridbench.datagrid.crossover.record import SharingRecord
from gridbench.datagrid.crossover.tables import sized
from gridbench.formats import amount, counted, size
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed, disturbed_count, sentence
from gridbench.pages.document import subheading as line_of
from gridbench.provisional import busy_in, marked

_MOST = 5
"""Of measurements that were not made, told one by one."""


def headline(answer: CrossoverAnswer, found: Sequence[SharingRecord]) -> list[str]:
    """The outcome, the most important first: for each compute grid and data grid, the sizes from
    which on the data grid is faster. A provisional answer if all of `found` was disturbed."""
    if not answer.curves:
        return ["Nothing was measured yet."]
    if not answer.pairs:
        return ["There are times of one side alone, so there is nothing to compare them with."]
    told = [_sentence(pair) for pair in answer.pairs]
    done = [one for one in found if one.status == "done"]
    count = sum(map(disturbed, done))
    return (
        marked(told, busy_in(count, len(done), "measurement"))
        if count and count == len(done)
        else told
    )


def examples(answer: CrossoverAnswer) -> list[str]:
    """The times behind it, for the most readers and the largest size of all that were measured."""
    if not answer.readers:
        return []
    key = answer.readers[-1], answer.sizes[-1]
    told = [
        f"{curve.name} {amount(times[key].value, 's')}"
        for curve in answer.curves
        if key in (times := curve.times())
    ]
    if not told:
        return []
    return [f"{size(key[1])} for {counted(key[0], 'reader')}: {', '.join(told)}."]


def notices(answer: CrossoverAnswer, found: Sequence[SharingRecord]) -> list[str]:
    """What has to be known of the measurements."""
    done = [one for one in found if one.status == "done"]
    count = sum(map(disturbed, done))
    told = []
    if count:
        text = disturbed_count(count, len(done), "measurements")
        told.append(sentence(text))
    told += [
        f"{curve.first.title or curve.engine} is in the readers' own process: nothing travels, and"
        " nothing is shared between processes. What it takes is the least that a data grid could."
        for curve in answer.curves
        if curve.side == "data grid" and not curve.there and not curve.first.members
    ]
    several = [
        f"The lines of {pair.compute.name} and {pair.grid.name} cross more than once with"
        f" {counted(n, 'reader')}; the sentences name the place where the largest sizes begin."
        for pair in answer.pairs
        for n, crossing in pair.over_size.items()
        if crossing.several
    ]
    left = list(dict.fromkeys(_left_out(one) for one in found if one.status != "done"))
    more = len(left) - _MOST
    return [*told, *several, *left[:_MOST], *([f"{more} more were not made."] if more > 0 else [])]


def subheading(header: Header, answer: CrossoverAnswer) -> str:
    """What was measured, where and when."""
    sizes, readers = answer.sizes, answer.readers
    return line_of(
        header,
        f"{sized(min(sizes))} to {sized(max(sizes))}" if sizes else "",
        f"{min(readers)} to {max(readers)} readers" if readers else "",
        f"on {header.machine.get('host')}",
    )


def _sentence(pair: Pair) -> str:
    """`Ignite (put and read) is faster than shared data of ray: from 12 MB with 16 readers.`"""
    told = f"{pair.grid.name} is {{}} than shared data of {pair.compute.name}"
    known = pair.over_size
    if not known:
        return f"Of {pair.compute.name} and {pair.grid.name} too little was measured to compare."
    kinds = {one.kind for one in known.values()}
    readers = _counts(list(known))
    if kinds == {"never"}:
        return f"{told.format('never faster')} up to {_largest(pair)}, for {readers}."
    if kinds == {"always"}:
        return f"{told.format('faster')} at all sizes that were measured, for {readers}."
    parts = []
    for kind in ("from", "always", "up to", "never"):
        places: dict[str, list[int]] = {}
        for n, one in known.items():
            if one.kind == kind:
                places.setdefault(one.told(sized), []).append(n)
        parts += [f"{where} with {_counts(counts)}" for where, counts in places.items()]
    return f"{told.format('faster')}: {'; '.join(parts)}."


def _largest(pair: Pair) -> str:
    both = pair.compute.times().keys() & pair.grid.times().keys()
    return size(max(one for _, one in both))


def _counts(counts: Sequence[int]) -> str:
    if len(counts) == 1:
        return counted(counts[0], "reader")
    return f"{', '.join(map(str, counts[:-1]))} and {counts[-1]} readers"


def _left_out(one: SharingRecord) -> str:
    what = f"{one.title or one.engine}, {size(one.bytes)} for {counted(one.readers, 'reader')}"
    return f"{what}, was not measured: {one.why}."
