"""Records of remote Linpack: a line of linpack.jsonl for each run of a client, and one of
clients.jsonl for each case with many clients, with its figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gridbench.formats import counted, plain, share_given
from gridbench.jsonl_store import PlannedCase, ResultsForm
from gridbench.machine.judgement import disturbed
from gridbench.statistics.interval import Interval

if TYPE_CHECKING:
    from gridbench.analysis.columns import Floats

# ---- One client

ClientLanguage = Literal["C", "Python"]
LOCAL = "local"
"""The path of a system that the client solves itself."""
BIG_ENDIAN = "+big-endian"
"""End of the name of a path over which the client sends numbers in that byte order."""
Limit = Literal["", "control group", "stopping"]
"""How a client was slowed: not at all; a quota of a control group; or stopping it each time it has
used its share."""


Orders = TypeVar("Orders", float, "Floats")
"""The order of a matrix, or of several."""


def operations(n: Orders) -> Orders:
    """Floating-point operations of solving a system of order n."""
    return 2 / 3 * n**3 + 2 * n**2


def transferred(n: Orders) -> Orders:
    """Bytes of matrix and right-hand side to the server, and of solution and pivots back."""
    return 8 * n**2 + 20 * n


@dataclass(frozen=True, slots=True, kw_only=True)
class Solve:
    """A system that was solved; seconds."""

    seconds: float
    """Of the call."""
    calculation: float
    """In which the solver ran."""
    info: int
    """LAPACK's: above 0, the matrix is singular; below, an argument is wrong."""
    residual: float
    """The largest of |b - A x|, in rounding errors of a system of this order."""


TOLERATED = 16.0
"""Rounding errors that a solution may be off, as in the Linpack benchmark."""


def wrong_solution(solves: Sequence[Solve]) -> str:
    """What is wrong with a solution; empty if all are right."""
    for one in solves:
        if one.info > 0:
            return f"the matrix is singular: dgesv found a pivot of 0 in column {one.info}"
        if one.info < 0:
            return f"dgesv refused argument {-one.info}"
        if not one.residual <= TOLERATED:
            return (
                f"a solution is wrong: it is off by {plain(one.residual)} rounding errors, and"
                f" {plain(TOLERATED)} are tolerated"
            )
    return "" if solves else "no system was solved"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLinpackCase(PlannedCase):
    """A client that solves systems of one order, here or over one path."""

    client: ClientLanguage
    path: str
    """`local`, or the path to the server as options name it."""
    n: int
    """Order of the matrix."""
    speed: float
    """Share of its processors that the client may use; 1: it is not slowed."""
    repeat: int
    """From 0."""

    def describe(self) -> str:
        """In words."""
        slowed = f" at {share_given(self.speed)} speed" if self.speed < 1 else ""
        return f"n = {self.n:,}, {self.client}{slowed}, {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinpackCase(PlannedLinpackCase):
    """The outcome."""

    at: str
    """ISO 8601."""
    status: Literal["done", "failed", "skipped"]
    why: str = ""
    """Of one that was not done."""
    solves: tuple[Solve, ...] = ()
    """Without the first, which warms up."""
    limit: Limit = ""
    load: dict[str, Any] | None = None
    """Load by other programs: at least `judgement`."""

    @property
    def seconds(self) -> float:
        """Time of a call."""
        return self._typical([one.seconds for one in self.solves])

    @property
    def computation(self) -> float:
        """The part of it in which the solver ran; all of it if the client solves."""
        if self.path == LOCAL:
            return self.seconds
        return self._typical([min(one.calculation, one.seconds) for one in self.solves])

    @property
    def communication(self) -> float:
        """The other part."""
        return max(0.0, self.seconds - self.computation)

    def _typical(self, times: Sequence[float]) -> float:
        # A slowed client stands still in some calls, for the time of others.
        return (statistics.mean if self.speed < 1 else statistics.median)(times)


FORM: ResultsForm[LinpackCase] = ResultsForm(
    kind="remote Linpack",
    of="remote Linpack",
    noun="case",
    record=LinpackCase,
    file="linpack.jsonl",
    command="gridbench linpack",
)


# ---- Many clients

CorePolicy = Literal["all", "one"]
POLICIES: dict[CorePolicy, str] = {
    "all": "one call at a time on all cores",
    "one": "one core for each call",
}
"""How the server divides its cores among calls."""
LinpackServer = Literal["gridrpc", "grpc", "ray-serve"]
SERVERS: dict[LinpackServer, str] = {
    "gridrpc": "gridrpc",
    "grpc": "gRPC (Python)",
    "ray-serve": "Ray Serve",
}
StepKind = Literal["paper", "scaled"]
Ending = Literal["ok", "error", "lost", "wrong"]
"""Of a call: `lost` has neither result nor error, `wrong` a result that does not solve the system.
"""

_FLAT_SHARE, _FLAT_BYTES = 0.05, 8 << 20
"""Growth of memory that counts as none: the larger of a share and so many bytes."""
_SOAK = 300.0
"""Seconds from which on memory is judged."""
_PARTS = 9
"""Of the time, for a trend,"""
_QUANTILE = 2.571
"""and the quantile of Student's distribution: 95 %, of 8 parts and 3 parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCall:
    """A call of a client. Times are seconds after the start, on the client's clock."""

    client: int
    submit: float
    enqueue: float | None = None
    """The server accepted the call; None: not known."""
    dequeue: float | None = None
    """The function started; None: not reached."""
    returned: float | None = None
    """The function returned."""
    complete: float | None = None
    """The client has the result or the error; None: it never had."""
    ending: Ending = "ok"
    why: str = ""
    """The error."""

    @property
    def seconds(self) -> float:
        """T_call, from submit to complete; NaN of a lost call."""
        return math.nan if self.complete is None else self.complete - self.submit

    @property
    def computing(self) -> float:
        """T_comp, while the function ran; NaN: not known."""
        if self.dequeue is None or self.returned is None:
            return math.nan
        return self.returned - self.dequeue

    @property
    def communicating(self) -> float:
        """T_comm = T_call - T_comp, as in the paper's model: it includes the wait."""
        return self.seconds - self.computing

    @property
    def response(self) -> float:
        """From submit to enqueue; NaN: not known."""
        return math.nan if self.enqueue is None else self.enqueue - self.submit

    @property
    def wait(self) -> float:
        """From enqueue to dequeue; NaN: not known."""
        if self.enqueue is None or self.dequeue is None:
            return math.nan
        return self.dequeue - self.enqueue


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSample:
    """The server's machine during a part of a case."""

    at: float
    """End of the part, seconds after the start."""
    seconds: float
    """Length of the part."""
    busy: float
    """Share of the processors that was busy."""
    server: float
    """Share that processes of the server used."""
    runnable: float
    """Threads that ran or waited for a processor, mean."""
    memory: int
    """Bytes that the processes of the server hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedClientsCase(PlannedCase):
    """A case before it is run."""

    policy: CorePolicy
    n: int
    clients: int
    steps: StepKind = "paper"
    """Whether the step is the paper's, or scaled to today's speed."""
    server: LinpackServer = "gridrpc"
    repeat: int = 0
    """From 0."""

    def describe(self) -> str:
        """`n = 600, 4 clients, one core for each call, scaled step`, without the repeat; with the
        server, if it is not gridrpc's."""
        scaled = ["scaled step"] if self.steps == "scaled" else []
        clients = counted(self.clients, "client")
        server = [SERVERS[self.server]] if self.server != "gridrpc" else []
        return ", ".join([*server, f"n = {self.n:,}", clients, POLICIES[self.policy], *scaled])

    def named(self) -> str:
        """The same with the round, counted from 1."""
        return f"{self.describe()}, round {self.repeat + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsCase(PlannedClientsCase):
    """A case with its calls."""

    at: str
    """When it began, ISO 8601."""
    status: Literal["done", "failed", "skipped"]
    why: str = ""
    """Of one that is not done."""
    step: float
    """Seconds between two steps of a client."""
    seconds: float
    """Time in which clients began calls."""
    cores: int
    clock_error: float = 0.0
    """Possible error of `enqueue`, seconds."""
    calls: tuple[ServedCall, ...] = ()
    samples: tuple[ServerSample, ...] = ()
    restarts: int = 0
    """How often the server ended, and the case was measured again with a new one."""
    load: dict[str, Any] | None = None
    """Load by other programs, as in the record of a run."""


# ---- Figures


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure of all calls of a case."""

    largest: float
    least: float
    mean: float


def spread_of(values: Iterable[float]) -> Spread | None:
    """Largest, least and mean of the values that are known; None without any."""
    known = [value for value in values if math.isfinite(value)]
    return Spread(max(known), min(known), math.fsum(known) / len(known)) if known else None


def mean_of(spread: Spread | None) -> float:
    """The mean; NaN: not known."""
    return math.nan if spread is None else spread.mean


@dataclass(frozen=True)
class ClientsCell:
    """The rounds of a case, with the figures of the paper's tables."""

    cases: Sequence[ClientsCase]

    @property
    def key(self) -> tuple[StepKind, CorePolicy, int, int]:
        """What tells it from others of its server."""
        one = self.cases[0]
        return one.steps, one.policy, one.n, one.clients

    @property
    def server(self) -> LinpackServer:
        """The server of its cases."""
        return self.cases[0].server

    @property
    def valid(self) -> bool:
        """Whether other programs left it undisturbed."""
        return not any(map(disturbed, self.cases))

    @property
    def calls(self) -> list[ServedCall]:
        """All calls."""
        return [call for one in self.cases for call in one.calls]

    def ended(self, *endings: Ending) -> int:
        """How many calls ended so."""
        return sum(call.ending in endings for call in self.calls)

    @cached_property
    def performance(self) -> Spread | None:
        """Operations per second of a call: (2/3 n^3 + 2 n^2) / T_call."""
        return self._spread(lambda n, call: operations(n) / call.seconds)

    @cached_property
    def response(self) -> Spread | None:
        """Seconds from submit to enqueue."""
        return self._spread(lambda _, call: call.response)

    @cached_property
    def wait(self) -> Spread | None:
        """Seconds from enqueue to dequeue."""
        return self._spread(lambda _, call: call.wait)

    @cached_property
    def throughput(self) -> Spread | None:
        """Bytes per second of a call: (8 n^2 + 20 n) / T_comm."""
        return self._spread(lambda n, call: transferred(n) / call.communicating)

    @property
    def utilisation(self) -> float:
        """Share of the processors that was busy; NaN: not known."""
        return self._over_time(lambda one: one.busy)

    @property
    def server_share(self) -> float:
        """Share of the processors that the server's processes used; NaN: not known."""
        return self._over_time(lambda one: one.server)

    @property
    def load_average(self) -> float:
        """Threads that ran or waited for a processor, mean; NaN: not known."""
        return self._over_time(lambda one: one.runnable)

    @property
    def deviation(self) -> float:
        """The largest relative difference of a client's mean performance from that of all; NaN:
        there are not two."""
        by_client: dict[int, list[float]] = {}
        for one in self.cases:
            for call in one.calls:
                if call.ending == "ok":
                    by_client.setdefault(call.client, []).append(operations(one.n) / call.seconds)
        means = [statistics.fmean(own) for own in by_client.values()]
        if len(means) < 2:
            return math.nan
        return max(abs(mean / statistics.fmean(means) - 1) for mean in means)

    @property
    def in_progress(self) -> float:
        """Calls between submit and complete, mean over the time in which clients began calls."""
        total = sum(one.seconds for one in self.cases)
        shares = (_in_progress(one.calls, 0.0, one.seconds) * one.seconds for one in self.cases)
        return sum(shares) / total

    def _spread(self, of: Callable[[int, ServedCall], float]) -> Spread | None:
        return spread_of(
            of(one.n, call) for one in self.cases for call in one.calls if call.ending == "ok"
        )

    def _over_time(self, of: Callable[[ServerSample], float]) -> float:
        return _mean_over_time(
            (of(sample), sample.seconds) for one in self.cases for sample in _during(one)
        )


def cells_of(cases: Iterable[ClientsCase]) -> list[ClientsCell]:
    """The rounds of each case, in the order of the paper's tables. Disturbed rounds are left out
    where others are not; a case without a call that was answered has no figures."""
    found: dict[Hashable, list[ClientsCase]] = {}
    for one in cases:
        if any(call.ending == "ok" for call in one.calls):
            found.setdefault(one.identity[:-1], []).append(one)
    cells = (
        ClientsCell([one for one in rounds if not disturbed(one)] or rounds)
        for rounds in found.values()
    )
    return sorted(cells, key=lambda cell: (cell.server != "gridrpc", cell.server, cell.key))


def growth_of(case: ClientsCase) -> Interval | None:
    """Bytes by which the memory of the server grew during a long case: the linear trend, with its
    95 % interval; None: it was too short.

    The arguments of the calls in progress are part of the memory. So the regression is on the time
    and on the number of calls, over means of parts of the time. The first part is left out, as the
    server has yet to take what it keeps.
    """
    if case.seconds < _SOAK or len(case.samples) < 2 * _PARTS:
        return None
    each = len(case.samples) / _PARTS
    bounds = [round(each * part) for part in range(_PARTS + 1)]
    parts = [case.samples[first:last] for first, last in pairwise(bounds)][1:]
    calls = [_in_progress(case.calls, part[0].at - part[0].seconds, part[-1].at) for part in parts]
    times = _without(calls, [statistics.fmean(one.at for one in part) for part in parts])
    sizes = _without(calls, [statistics.fmean(one.memory for one in part) for part in parts])
    square = sum(at * at for at in times)
    slope = sum(at * size for at, size in zip(times, sizes, strict=True)) / square
    left = sum((size - slope * at) ** 2 for at, size in zip(times, sizes, strict=True))
    length = case.samples[-1].at - parts[0][0].at
    margin = _QUANTILE * math.sqrt(left / (len(parts) - 3) / square) * length
    return Interval(slope * length, slope * length - margin, slope * length + margin)


def _without(known: Sequence[float], values: Sequence[float]) -> list[float]:
    """What linear regression on a known quantity leaves of values."""
    if len(set(known)) == 1:
        return [value - statistics.fmean(values) for value in values]
    slope, intercept = statistics.linear_regression(known, values)
    return [value - intercept - slope * x for x, value in zip(known, values, strict=True)]


def is_flat(case: ClientsCase) -> bool | None:
    """Whether the memory of the server did not grow for certain; None: not known."""
    growth = growth_of(case)
    if growth is None:
        return None
    usual = statistics.median(one.memory for one in case.samples)
    return growth.low <= max(_FLAT_BYTES, _FLAT_SHARE * usual)


def _in_progress(calls: Iterable[ServedCall], begin: float, end: float) -> float:
    """Calls between submit and complete, mean over this time."""
    inside = (
        max(0.0, min(call.complete, end) - max(call.submit, begin))
        for call in calls
        if call.complete is not None
    )
    return sum(inside) / (end - begin)


def _during(case: ClientsCase) -> Sequence[ServerSample]:
    """The samples while clients began calls; all, if none ended in that time."""
    return [one for one in case.samples if one.at <= case.seconds] or case.samples


def _mean_over_time(values: Iterable[tuple[float, float]]) -> float:
    """The mean of values that each held for so many seconds."""
    pairs = list(values)
    total = sum(seconds for _, seconds in pairs)
    return sum(value * seconds for value, seconds in pairs) / total if total else math.nan


CLIENTS_FORM: ResultsForm[ClientsCase] = ResultsForm(
    kind="linpack clients",
    of="results with many clients",
    noun="case",
    record=ClientsCase,
    file="clients.jsonl",
    command="gridbench linpack clients",
)
