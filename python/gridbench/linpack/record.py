"""Records of `gridbench linpack`: one line of linpack.jsonl for each run of a client."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gridbench.formats import plain, share_given
from gridbench.jsonl_store import PlannedCase, ResultsForm

if TYPE_CHECKING:
    from gridbench.analysis.columns import Floats

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

    def told(self) -> str:
        """In words."""
        slowed = f" at {share_given(self.speed)} speed" if self.speed < 1 else ""
        return f"n = {self.n:,}, {self.client}{slowed}, {self.path}"

    def record(self, **found: Any) -> LinpackCase:
        """Its record, with what was found."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        return LinpackCase(**{**asdict(self), "at": at, **found})


@dataclass(frozen=True, slots=True, kw_only=True)
class LinpackCase(PlannedLinpackCase):
    """What came of it."""

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
