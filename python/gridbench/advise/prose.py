"""What advice says of the machine that tasks share: its processors, and its memory."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from gridbench.advise.advice import (
    COMPUTING,
    DIFFERENCES,
    GROUPS,
    LARGE,
    MEMORY,
    Advice,
    FromWhere,
    TaskCountPoint,
)
from gridbench.advise.profiled import Profiled
from gridbench.advise.uneven import Recorded
from gridbench.advise.work import DivisibleWork
from gridbench.formats import (
    age,
    as_given,
    counted,
    digits_apart,
    duration,
    longer,
    percent,
    plain,
    rough,
    size,
)
from gridbench.formats import between as ends_text
from gridbench.machine.judgement import disturbed_count, sentence
from gridbench.model.fit import PipelineFit
from gridbench.model.model import PipelineModel, TotalPrediction
from gridbench.model.observation import EnginePlace
from gridbench.statistics.claims import busy_in, marked


def kind_text(work: DivisibleWork) -> str:
    """What tasks do, after what says how many of them there are: `that compute with 4 threads`."""
    if not work.computes:
        return "that wait"
    threads = work.roofline.threads
    return "that compute" if threads == 1 else f"that compute with {threads:,} threads each"


def memory_text(work: DivisibleWork) -> str:
    """How long the work takes at least, whatever the processors do; empty if nothing is known."""
    known = work.roofline
    if not known.bandwidth:
        return ""
    return (
        f"Its tasks move {size(known.traffic)} through memory, which moves {rate_text(work)} for"
        f" all processors together: {rough(known.traffic / known.bandwidth)} at least, however many"
        " run at once."
    )


def rate_text(work: DivisibleWork) -> str:
    """The memory's bandwidth, in the units that sizes have."""
    return f"{size(work.roofline.bandwidth)}/s"


def machine_warnings(work: DivisibleWork, place: EnginePlace, cores: int) -> list[str]:
    """What must be known of a split on so many cores, by a model of the place."""
    known = work.roofline
    here = f"{counted(place.processors, 'processor')} of {place.host}"
    found = []
    if 0 < known.processors < known.threads:
        enough = "One task at a time keeps the machine busy. " if work.cores_asked else ""
        found.append(
            f"{enough}A task has {known.threads:,} threads, which share the {here}: it is taken to"
            f" last {plain(known.by_processors(1))} times as long as with a processor for each of"
            " them."
        )
    elif work.cores_asked and known.threads > 1:
        found.append(
            f"You requested {work.cores_asked:,} cores, but tasks that compute with"
            f" {known.threads:,} threads run at full speed only {work.cores:,} at a time on the"
            f" {here}: more would slow each other down."
        )
    elif work.cores_asked:
        found.append(
            f"You requested {work.cores_asked:,} cores, but work that computes cannot use more"
            f" than the {here}. If it waits instead, for files or other machines, give --task"
            " sleep; for workers elsewhere, a model of them by --from."
        )
    elif not work.computes and place.transport == "one host" and cores > place.processors:
        found.append(
            "All of this is for tasks that wait, as --task sleep says. Tasks that compute cannot"
            f" use more than the {here} at a time."
        )
    if known.threads > 1 and not known.processors:
        found.append(f"{own_processors(known.threads)}.")
    if known.bandwidth:
        found.append(
            "The bandwidth is that of data that is read and written in order. Data that is read"
            " here and there, or lies in the memory of another processor, comes more slowly."
        )
    return found


def own_processors(threads: int) -> str:
    """What is assumed of workers whose machines are not known, without a full stop."""
    return f"Each worker is taken to have {counted(threads, 'processor')}, one for each thread"


_CLOSE = 1.1
"""Ratio of two times up to which neither is the better one."""
_WORTH = 0.02
"""Part of the total from which on a change is worth a sentence."""


def sentences(advice: Advice) -> list[str]:
    """What to do and why, a paragraph each; the most important first."""
    found = [
        _deadline(advice),
        _split(advice),
        _expected(advice),
        _where(advice),
        _limit(advice),
        memory_text(advice.work),
        _others(advice),
    ]
    found += [_shared(advice), _from_where(advice), _help(advice), _uneven(advice), advice.origin]
    reported = [text for text in found if text]
    model = advice.model
    if isinstance(model, PipelineModel) and model.disturbed:
        return marked(reported, busy_in(model.disturbed, model.fit.runs, "run"))
    return reported


def warnings(advice: Advice) -> list[str]:
    """Warnings about the advice."""
    found = [
        f"This is beyond what was measured, and may be far off: {text}."
        for text in advice.expected.extrapolated
    ]
    if isinstance(advice.model, Profiled):
        threads = advice.work.roofline.threads
        luck = ", apart from how the times of tasks fall out" if advice.work.uneven else ""
        return [
            *found,
            *([f"{own_processors(threads)}."] if threads > 1 else []),
            *advice.cautions,
            f"A profile gives no error: there is no interval{luck}.",
        ]
    return _of_runs(advice, advice.model, found)


def _of_runs(advice: Advice, model: PipelineModel, beyond: list[str]) -> list[str]:
    """What must be known of a model that was fitted to runs, and of the machine that they are
    from."""
    fit, found = model.fit, beyond
    if model.disturbed:
        count = disturbed_count(model.disturbed, fit.runs, "runs behind this")
        found = [sentence(count), *beyond]
    if parts := _together(fit):
        found.append(
            f"These runs cannot separate the costs of {_and(parts)}; only their sum is known. The"
            " interval of the expected time allows for that."
        )
    return [*found, *machine_warnings(advice.work, fit.place, advice.split.cores)]


def undetermined(fit: PipelineFit) -> list[str]:
    """Names of the terms that the runs do not tell by themselves."""
    return [one.term.name for one in fit.estimates if not one.determined]


def _together(fit: PipelineFit) -> list[str]:
    """The parts of the time that they belong to."""
    names = undetermined(fit)
    return [what for what, begins in GROUPS if any(name.startswith(begins) for name in names)]


def _and(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def _split(advice: Advice) -> str:
    split, work = advice.split, advice.work
    each = duration(float(work.divided(split.tasks, split.cores).sleep.mean()))
    cores = counted(split.cores, work.unit)
    if split.cores < work.cores:
        cores = f"{split.cores:,} of the {counted(work.cores, work.unit)}"
    each += " on average" if work.uneven else " each"
    into = f"Divide the work into {counted(split.tasks, 'task')} of {each}"
    if isinstance(work.uneven, Recorded):
        into = f"Put its {work.uneven.pieces:,} tasks together to {split.tasks:,} of {each}"
        if split.tasks == work.uneven.pieces:
            into = f"Leave its {counted(split.tasks, 'task')} as they are, of {each}"
    return f"{into}, on {cores} of {advice.model.name}, as tasks {kind_text(work)}."


def _deadline(advice: Advice) -> str:
    """The answer to how many cores end it within a time."""
    requested, cores = advice.within, advice.work.cores
    if requested is None:
        return ""
    limit = as_given(requested.limit)
    if requested.likely is None:
        shortest, what = requested.shortest, advice.limit[0]
        return (
            f"With no number of cores up to {cores:,} does the work end within {limit}: divided at"
            f" its best, it is expected to take {rough(shortest.total)} on"
            f" {counted(shortest.cores, 'core')}, and the bottleneck then is {what}."
        )
    likely = counted(requested.likely.cores, "core")
    if isinstance(advice.model, Profiled):
        more = ""
        if requested.sure and requested.sure.cores > requested.likely.cores:
            more = f" On {requested.sure.cores:,} it does with 19 of 20 draws of task times."
        return f"From {likely} on, the work is expected to end within {limit}.{more}"
    if requested.sure is None:
        return (
            f"From {likely} on, the work ends within {limit} more likely than not; with no number"
            f" of cores up to {cores:,} do 19 of 20 runs."
        )
    more = ""
    if requested.likely.cores < requested.sure.cores:
        more = f" From {likely} on it does more likely than not."
    elif requested.likely.cores > 1:
        more = " With fewer it is expected to take longer."
    sure = counted(requested.sure.cores, "core")
    return f"To end within {limit}, take {sure}: with these, 19 of 20 runs do.{more}"


def _expected(advice: Advice) -> str:
    expected = advice.expected
    bounds = f" ({interval(advice)})" if expected.low < expected.high else ""
    one = "On one core" if advice.work.roofline.threads == 1 else "One task after the other,"
    return (
        f"It is expected to take {total_text(expected)}{bounds}. The work itself takes"
        f" {rough(expected.ideal)}: an efficiency of"
        f" {percent(expected.ideal / expected.total, 0)}. {one} it would take"
        f" {duration(advice.work.alone)}."
    )


def _where(advice: Advice) -> str:
    rest = [(what, part) for what, part in advice.parts if what not in (COMPUTING, MEMORY)]
    reported = [
        f"{what} {rough(part)}"
        for what, part in sorted(rest, key=lambda one: -one[1])
        if part >= _WORTH / 10 * advice.expected.total
    ]
    return f"Besides the work, the time goes into: {', '.join(reported)}." if reported else ""


def _limit(advice: Advice) -> str:
    what, part = advice.limit
    share = percent(part / advice.expected.total, 0)
    if what == COMPUTING:
        reported = f"The bottleneck is computation ({share} of the time)"
        work = advice.work
        if advice.split.cores == work.cores:
            if work.doubled().limited_by_memory(2 * work.cores):
                return f"{reported}; with twice as many {work.units} it would be memory bandwidth."
            return f"{reported}: use more {work.units}."
        return (
            f"{reported}."
            if advice.within
            else f"{reported}; more cores cost more than they bring."
        )
    if what == MEMORY:
        return (
            f"The bottleneck is memory bandwidth ({share} of the time): more processors of this"
            " machine would not help."
        )
    if what == DIFFERENCES:
        return f"The bottleneck is uneven tasks ({share} of the time): cores wait for the last one."
    return f"The bottleneck is {what} ({share} of the time)."


def _others(advice: Advice) -> str:
    """Other numbers of tasks, the worst of the small and of the large."""
    fewer = [point for point in advice.compared if point.tasks < advice.split.tasks]
    more = [point for point in advice.compared if point.tasks > advice.split.tasks]
    chosen = [*fewer[-2:], *more[:1], *more[-1:]]
    parts = [
        f"{counted(point.tasks, 'task')} {_beside(advice, point)}" for point in _unique(chosen)
    ]
    if not parts:
        return ""
    return f"On the same cores (fewer if there are fewer tasks), {'; '.join(parts)}."


def _beside(advice: Advice, point: TaskCountPoint) -> str:
    total, best = point.prediction.total, advice.expected.total
    if total < best * 0.995:
        return f"would take {rough(total)}, {percent(1 - total / best, 0)} less: too little to tell"
    if total <= best * 1.005:
        return f"would take as long ({rough(total)})"
    return f"would take {rough(total)}, {longer(total, best)}"


def _shared(advice: Advice) -> str:
    sharing = advice.sharing
    if sharing is None:
        return ""
    data = size(sharing.size)
    if sharing.shared is None:
        return (
            f"Whether the {data} that each task gets should be shared data is not known: no run"
            " had any."
        )
    shared, each = rough(sharing.shared), rough(sharing.with_tasks)
    better = sharing.shared < sharing.with_tasks * (1 - _WORTH)
    worse = sharing.with_tasks < sharing.shared * (1 - _WORTH)
    if sharing.is_shared:
        if worse:
            return f"Send the {data} of shared data with each task: {each} instead of {shared}."
        verdict = "is right" if better else "makes no difference"
        return f"Sending {data} as shared data {verdict}: {shared}; with each task {each}."
    if better:
        return (
            f"If the {data} that each task gets are the same for all, send them as shared data:"
            f" {shared} instead of {each}."
        )
    return f"Sending the {data} that each task gets as shared data would bring nothing: {shared}."


def _from_where(advice: Advice) -> str:
    """Whether shared data is better in a data grid, as far as that was measured."""
    found = advice.from_where
    if found is None:
        return ""
    data = size(found.size)
    if not found.grids:
        if found.size < LARGE:
            return ""
        return (
            f"Whether the {data} of shared data would be there sooner from a data grid was not"
            " measured: `gridbench data crossover` does it."
        )
    ways = [
        f"from {one.title} {rough(one.put_and_read)} ({rough(one.there_already)} if it is there"
        " already)"
        for one in found.grids
    ]
    tasks, cores = counted(found.tasks, "task"), counted(found.cores, "core")
    beyond = "; this is more than that, and may be far off" if found.beyond else ""
    return (
        f"Shared data of {data} for {tasks} on {cores}: through {found.engine}"
        f" {rough(found.through)}; {'; '.join(ways)}: {_verdict(found)}. It was measured on"
        f" {found.host} {age(time.time() - found.made)} ago, with up to {size(found.most_bytes)}"
        f" for {counted(found.most_readers, 'reader')}{beyond}."
    )


def _verdict(found: FromWhere) -> str:
    best = found.grids[0]
    if best.put_and_read * _CLOSE <= found.through:
        return f"take it from {best.title}"
    if best.put_and_read < found.through * _CLOSE:
        return "either will do"
    there = min(one.there_already for one in found.grids)
    unless = ", unless it is in the data grid anyway" if there * _CLOSE < found.through else ""
    return f"keep it as shared data{unless}"


def _help(advice: Advice) -> str:
    now = advice.expected.total
    reported = [
        f"{one.what} ({rough(one.total)}, {percent(1 - one.total / now, 0)} less)"
        for one in advice.helps
        if one.total < now * (1 - _WORTH)
    ]
    if not reported:
        return "No single change would make it much shorter."
    first, *rest = reported
    more = f" Next come {'; '.join(rest)}." if rest else ""
    return f"What would help most: {first}.{more}"


def _uneven(advice: Advice) -> str:
    """Assumptions about times that differ."""
    uneven, split = advice.work.uneven, advice.split
    if uneven is None:
        return ""
    deviation = percent(uneven.share, 0)
    if isinstance(uneven, Recorded):
        times = uneven.times(advice.work.seconds, split.tasks, 0)
        now = percent(float(times.std() / times.mean()), 0)
        together = (
            f"; put together in their order to {split.tasks:,}, by {now}"
            if split.tasks < uneven.pieces
            else ""
        )
        return (
            f"The {counted(uneven.pieces, 'task')} of {uneven.source} deviate by"
            f" {deviation}{together}. Data is taken to be the same for each of them."
        )
    kind = "" if uneven.distribution == "normal" else f" ({uneven.distribution})"
    drawn = f"Totals are means of {uneven.draws(split.tasks)} draws."
    if not uneven.pieces:
        return (
            f"Task times are taken to deviate by {deviation} of their mean{kind} however the work"
            f" is divided, as if what lies side by side in it were alike. {drawn}"
        )
    share = uneven.share * math.sqrt(split.tasks / uneven.pieces)
    return (
        f"The work is taken as {counted(uneven.pieces, 'piece')} whose times deviate by"
        f" {deviation}{kind}, each on its own: tasks of {plain(uneven.pieces / split.tasks)} pieces"
        f" deviate by about {percent(share, 0)}. {drawn}"
    )


def interval(advice: Advice) -> str:
    """Of the expected total, and how far to trust it."""
    model = advice.model
    if isinstance(model, PipelineModel) and model.disturbed:
        return f"{between(advice.expected)}: a guess, as other programs disturbed what it is from"
    return f"{between(advice.expected)} in 9 of 10 cases"


def total_text(prediction: TotalPrediction) -> str:
    """The total, with no fewer digits than the ends of its interval."""
    return rough(prediction.total, digits_apart(prediction.low, prediction.high))


def between(prediction: TotalPrediction) -> str:
    """The bounds of the total, if any are known."""
    return ends_text(prediction.low, prediction.high)


def _unique(points: list[TaskCountPoint]) -> list[TaskCountPoint]:
    return list({point.tasks: point for point in points}.values())
