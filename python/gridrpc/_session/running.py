"""The thread that runs a map of a session on the session's grid."""

from __future__ import annotations

from threading import Thread

from gridrpc._grid import Grid
from gridrpc._log import logger
from gridrpc._map import Map
from gridrpc._senders import MapOptions
from gridrpc._session.kept import Failure, KeptMap
from gridrpc.errors import SessionError

#: How often it is looked whether a program has sent more items, s.
LOOK = 0.1


class Runner:
    """Runs a map until it is closed."""

    def __init__(self, grid: Grid, kept: KeptMap) -> None:
        self._grid = grid
        self._kept = kept
        self._thread = Thread(target=self._run, name=f"map {kept.key}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            kept.close()
            raise SessionError(f"map `{kept.key}` cannot run now: {error}. Try again") from None

    def stop(self) -> None:
        """Have the thread give up what is under way, once the grid has taken its next call."""
        kept = self._kept
        with kept.changed:
            kept.is_closing = True
            kept.changed.notify_all()

    def close(self) -> None:
        """Give up what is under way, and close the map."""
        self.stop()
        self._thread.join()
        self._kept.close()

    def _run(self) -> None:
        kept = self._kept
        while kept.wait_for_work():
            plan = kept.plan
            run = None
            try:
                run = self._grid._plan(
                    plan.task,
                    kept,
                    MapOptions(True, plan.options, Failure, plan.ranks),
                    total=None,
                    chunk=plan.chunk,
                    ordered=False,
                    timeout=None,
                    retries=plan.retries,
                    record=kept,
                    few_ahead=not plan.options.idempotent,
                )
                self._follow(run)
            except Exception as error:  # such as a full disk
                logger.exception("map %s", kept.key)
                kept.halt(error)
            finally:
                if run is not None:
                    run.cancel()
                    kept.lost()

    def _follow(self, run: Map) -> None:
        kept = self._kept
        while not kept.is_closing:
            if not (kept.is_halted or kept.begins_anew):
                run.feed()
                if run.failure is not None:
                    kept.halt(run.failure)
            if not run.is_busy:
                kept.pause()
                return
            came = False
            for first, values in run.ended(LOOK):
                came = True
                kept.outcomes(first, values)
            if not came:
                kept.pause()
