"""What others did before, while and after a run was measured, for its record."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from gridbench.machine.available import available_count
from gridbench.machine.busiest import look
from gridbench.machine.load import Load, Moment, reading
from gridbench.machine.rule import Judgement, judged, tolerated
from gridbench.machine.words import disturbed, not_known

_LOOK = 0.25  # seconds, before and after
_SHORT = 0.5  # seconds: of less the clocks tell too little, and what was before counts as well


class Watch:
    """Takes readings around what is measured."""

    def __init__(self, family: int, began: Moment | None = None) -> None:
        """`family`: the process whose descendants are ours; `began`: an earlier reading of it, if
        there is one."""
        self._family = family
        self._first = began or reading(family)
        self._began: Moment | None = None
        self._ended: Moment | None = None
        self._after: Load | None = None

    def begin(self) -> None:
        """The measuring begins, when enough of what is before it has been seen."""
        time.sleep(max(0.0, self._first.at + _LOOK - time.monotonic()))
        self._began = reading(self._family)

    def end(self) -> None:
        """It has ended; its processes are still there, as what they used is lost with some."""
        if self._began is not None and self._ended is None:
            self._ended = reading(self._family)

    def look_after(self) -> None:
        """See what goes on when all of it is over."""
        self._after = look(_LOOK).load

    @property
    def load(self) -> Load | None:
        """What the judgement is of; None if nothing was measured."""
        if self._began is None or self._ended is None:
            return None
        measured = self._ended.load_since(self._began)
        return measured if measured.seconds >= _SHORT else self._ended.load_since(self._first)

    @property
    def judgement(self) -> Judgement:
        """Whether others disturbed it."""
        return "not known" if self.load is None else judged(self.load)

    @property
    def told(self) -> str:
        """Why it does not count or is not judged; empty if nothing is to be said."""
        if self.load is None or self.judgement == "undisturbed":
            return ""
        return disturbed(self.load) if self.judgement == "disturbed" else not_known(self.load)

    def record(self) -> dict[str, Any]:
        """All of it; loads are in processors."""
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
