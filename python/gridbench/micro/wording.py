"""Words for one figure: comparisons with the best peer and the limit, and targets."""

from __future__ import annotations

from gridbench.formats import (
    NOTHING,
    amount,
    bound,
    digits,
    digits_to_judge,
    round_amount,
    times,
)
from gridbench.micro.record import Claim, FigureEntry, Lead, MicroFigure, Ratio, Results
from gridbench.statistics.claims import PROVISIONAL

OURS = "gridrpc"
BEST_PEER = "best peer"
_LIMITS = {
    "ping_pong_memory": "ping-pong, memory, spins",
    "ping_pong_unix": "ping-pong, Unix socket",
    "ping_pong_tcp": "ping-pong, TCP",
    "pickled_call_unix": "bare pickled call",
    "pickled_call_spin": "pickled call that spins",
    "windowed_echo": "windowed echo",
}
_STATUS = {"failed": "failed", "cannot": "cannot", "missing": "not run", "ok": "no value"}


def ours(engine: str) -> bool:
    """Whether it is gridrpc, in whatever variant."""
    return engine.startswith(OURS)


def has_value(entry: FigureEntry) -> bool:
    """Whether there is something to show."""
    return entry.status == "ok" and entry.median is not None


def against_peer(figure: MicroFigure, engine: str) -> str:
    """`16.9× faster`, `no difference`, or that it is the best peer itself."""
    if engine == figure.best_peer:
        return BEST_PEER
    ratio = figure.ratios.get(engine)
    if ratio is None or not ratio.to_peer:
        return NOTHING
    claim = indicated(figure, engine)
    if claim == "no difference":
        return claim
    better, worse = _words(figure)
    summary_text = f"{times(_above_one(ratio.to_peer))} {better if claim == 'faster' else worse}"
    return summary_text if ratio.claim == claim else f"{summary_text}, {PROVISIONAL.lower()}"


def indicated(figure: MicroFigure, engine: str) -> Claim:
    """What the runs say against the best peer, be it proven (`Ratio.claim`) or provisional: no
    difference only where the ratio is within the noise or its interval holds 1."""
    ratio = figure.ratios.get(engine)
    if ratio is None or not ratio.to_peer or engine == figure.best_peer:
        return "no difference"
    if ratio.claim != "no difference":
        return ratio.claim
    low, high = ratio.low or ratio.to_peer, ratio.high or ratio.to_peer
    if low <= 1 <= high or _above_one(ratio.to_peer) <= figure.noise:
        return "no difference"
    return "faster" if (ratio.to_peer < 1) == (figure.better == "less") else "slower"


def peer_interval(figure: MicroFigure, engine: str) -> str:
    """The 95 % interval of the factor that `against_peer` names; nothing if there is none."""
    ratio = figure.ratios.get(engine)
    if ratio is None or not ratio.to_peer or not ratio.low or not ratio.high:
        return ""
    low, high = ratio.low, ratio.high
    if indicated(figure, engine) != "no difference" and ratio.to_peer < 1:
        low, high = 1 / high, 1 / low
    return f"{digits(low)}–{digits(high)}"


def against_limit(figure: MicroFigure, engine: str) -> str:
    """`1.33×`, with the name of a limit that is not the first; a dash without one."""
    ratio = figure.ratios.get(engine)
    if ratio is None or ratio.to_limit is None:
        return NOTHING
    other = ratio.limit and ratio.limit != first_limit(figure)
    return f"{times(ratio.to_limit)} {label(ratio.limit)}" if other else times(ratio.to_limit)


def label(name: str) -> str:
    """The name of a limit as a reader sees it; names of engines stay as they are."""
    first, comma, rest = name.partition(", ")
    return _LIMITS.get(first, first.replace("_", " ")) + comma + rest


def titled(text: str) -> str:
    """As a heading: it begins with a capital letter."""
    return text[:1].upper() + text[1:]


def first_limit(figure: MicroFigure) -> str:
    """The name of the limit that ratios are to, unless they say otherwise; may be empty."""
    return figure.limits[0].engine if figure.limits else ""


def advantage(figure: MicroFigure, ratio: Ratio) -> tuple[float, float | None, float | None] | None:
    """How many times as good as the best peer, with its interval; above 1 is better."""
    if not ratio.to_peer:
        return None
    if figure.better == "more":
        return ratio.to_peer, ratio.low, ratio.high
    return (
        1 / ratio.to_peer,
        1 / ratio.high if ratio.high else None,
        1 / ratio.low if ratio.low else None,
    )


def status_word(status: str) -> str:
    """What stands where a value would."""
    return _STATUS[status]


def figure_by_id(results: Results, name: str) -> MicroFigure | None:
    """None if it was not measured."""
    return next((figure for figure in results.figures if figure.id == name), None)


def to_reach(results: Results, lead: Lead) -> str:
    """`≤ 1/8 × best peer`, `≥ 3.00 M/s`."""
    sense = "≤" if lead.sense == "<=" else "≥"
    if lead.against:
        return f"{sense} {bound(lead.bound)} × {label(lead.against)}"
    figure = figure_by_id(results, lead.figure)
    return f"{sense} {bound(lead.bound) if figure is None else _bound_amount(figure, lead)}"


def measured(results: Results, lead: Lead) -> str:
    """The ratio, or the value; a dash if there is none.

    It has as many digits as it takes to see whether the bound is kept.
    """
    if lead.value is None:
        return NOTHING
    significant = digits_to_judge(lead.value, lead.bound, lead.sense)
    if lead.against:
        return times(lead.value, significant)
    figure = figure_by_id(results, lead.figure)
    unit = "" if figure is None else figure.unit
    return amount(lead.value, unit, significant)


def compared_values(results: Results, lead: Lead) -> tuple[str, ...]:
    """What the ratio is of: `15.8 µs`, `process-pool 267 µs`. Nothing for bounds on a value."""
    own = figure_by_id(results, lead.figure)
    theirs = figure_by_id(results, lead.of or lead.figure)
    if own is None or theirs is None or not lead.against:
        return ()
    kind, _, named = lead.against.partition(": ")
    other = (named or theirs.best_peer or "") if kind == BEST_PEER else lead.against
    ours, others = _median(own, lead.engine), _median(theirs, other)
    if ours is None or others is None:
        return ()
    return (amount(ours, own.unit), f"{label(other)} {amount(others, theirs.unit)}")


def _median(figure: MicroFigure, name: str) -> float | None:
    """Of an engine or a limit; None if there is none."""
    entries = (*figure.entries, *figure.limits)
    return next((entry.median for entry in entries if entry.engine == name), None)


def reached(lead: Lead) -> str:
    """Yes or no, or that it is not known."""
    return {True: "yes", False: "no", None: "not measured"}[lead.reached]


def _bound_amount(figure: MicroFigure, lead: Lead) -> str:
    if figure.unit in ("", "x"):
        return bound(lead.bound)
    return round_amount(lead.bound, figure.unit)


def _words(figure: MicroFigure) -> tuple[str, str]:
    """Words for a better value, and for a worse one."""
    if figure.unit in ("MB", "copies", "calls"):
        words = ("less", "more")
    elif figure.id.startswith("metg"):
        words = ("smaller", "larger")
    elif figure.unit in ("", "x", "%"):
        words = ("lower", "higher")
    else:
        return ("faster", "slower")
    return words if figure.better == "less" else (words[1], words[0])


def _above_one(ratio: float) -> float:
    return ratio if ratio >= 1 else 1 / ratio
