"""What advice says of the machine that tasks share: its processors, and its memory."""

from __future__ import annotations

from gridbench.advise.work import Work
from gridbench.formats import counted, plain, rough, size
from gridbench.model.observation import EnginePlace


def kind_told(work: Work) -> str:
    """What tasks do, after what says how many of them there are: `that compute with 4 threads`."""
    if not work.computes:
        return "that wait"
    threads = work.roofline.threads
    return "that compute" if threads == 1 else f"that compute with {threads:,} threads each"


def memory_told(work: Work) -> str:
    """How long the work takes at least, whatever the processors do; empty if nothing is known."""
    known = work.roofline
    if not known.bandwidth:
        return ""
    return (
        f"Its tasks move {size(known.traffic)} through memory, which moves {rate_told(work)} for"
        f" all processors together: {rough(known.traffic / known.bandwidth)} at least, however many"
        " run at once."
    )


def rate_told(work: Work) -> str:
    """The memory's bandwidth, in the units that sizes have."""
    return f"{size(work.roofline.bandwidth)}/s"


def machine_warnings(work: Work, place: EnginePlace, cores: int) -> list[str]:
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
            f"{work.cores_asked:,} cores were asked for, but of tasks that compute with"
            f" {known.threads:,} threads no more than {work.cores:,} at a time run at full speed"
            f" on the {here}: more of them would slow each other down."
        )
    elif work.cores_asked:
        found.append(
            f"{work.cores_asked:,} cores were asked for, but work that computes gets no more than"
            f" the {here}. If it waits instead, for files or other machines, give --task sleep;"
            " for workers elsewhere, a model of them by --from."
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
