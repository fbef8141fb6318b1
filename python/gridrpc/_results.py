"""Lazy results of `Grid.map`, and their progress bar."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gridrpc._native import CapturedResult

if TYPE_CHECKING:
    from gridrpc._map import Map
    from gridrpc._resume import Resumed

T = TypeVar("T")

NOT_CAPTURED = (
    'the output of the call is not captured: that needs `Grid(output="captured")`, and a Python '
    "function of this program"
)


class Results(Iterator[T], Generic[T]):
    """Lazy results of `map`, for `for` and `async for`."""

    def __init__(
        self,
        plan: Map,
        groups: Generator[list[T], None, None],
        total: int | None,
        resumed: Resumed | None = None,
        *,
        captures: bool = False,
    ) -> None:
        self._plan = plan
        #: Gives some of the results, which an earlier run has made.
        self._resumed = resumed
        #: How many there are to be, if that is known.
        self._total = total
        self._groups = groups
        #: Whether results have the output of their calls beside them.
        self._captures = captures
        #: The output of the call whose result was taken last: standard output and error.
        self._output = "", ""
        # Goes through a group without the interpreter.
        chained = chain.from_iterable(groups)
        self._values: Iterator[T] = self._one_by_one() if captures else chained

    @property
    def speculated(self) -> list[int]:
        """Numbers of the items (from 0) that have run twice so far, with `speculate`."""
        speculated = self._plan.speculated
        return [*map(self._resumed.number_of, speculated)] if self._resumed else [*speculated]

    def numbered(self) -> Iterator[tuple[int, T]]:
        """Results with the numbers of their items (from 0), of a map with `ordered=False`."""
        for group in self._groups:
            sent = self._plan.numbers(len(group))
            numbers = sent if self._resumed is None else self._resumed.numbers(sent)
            yield from zip(numbers, self._taken(group), strict=True)

    @property
    def stdout(self) -> str:
        """What the function wrote to standard output for the item whose result was taken last.

        Of a grid with `output="captured"`, as `Call.stdout`; empty for results from a journal.
        Raises ValueError if the output is not captured.
        """
        return self._captured()[0]

    @property
    def stderr(self) -> str:
        """What the function wrote to standard error, as `stdout`."""
        return self._captured()[1]

    def _captured(self) -> tuple[str, str]:
        if not self._captures:
            raise ValueError(NOT_CAPTURED)
        return self._output

    def _one_by_one(self) -> Iterator[T]:
        try:
            for group in self._groups:
                yield from self._taken(group)
        except Exception as error:
            self._alone(error)
            raise

    def _taken(self, group: list[T]) -> Iterable[T]:
        """The results of a group, each without its output, which is noted as it is taken."""
        return map(self._alone, group) if self._captures else group

    def _alone(self, value: Any) -> Any:
        is_error = isinstance(value, BaseException)
        captured, result = getattr(value, "_captured", None) if is_error else None, value
        if type(value) is CapturedResult:
            captured, result = value, value.value
        self._output = (captured.stdout, captured.stderr) if captured else ("", "")
        return result

    def __iter__(self) -> Iterator[T]:
        return self._values

    def __next__(self) -> T:
        return next(self._values)

    async def __aiter__(self) -> AsyncIterator[T]:
        from gridrpc._wakeup import LoopWakeup  # asyncio takes 40 ms: not before it is needed

        wakeup = LoopWakeup()
        try:
            while True:
                await self._plan.ready(wakeup)
                group = next(self._groups, None)
                if group is None:
                    return
                for value in self._taken(group):
                    yield value
        except Exception as error:
            if self._captures:
                self._alone(error)
            raise
        finally:
            self.close()

    def _repr_html_(self) -> str:
        # For notebooks.
        from gridrpc._notebook import results_html

        return results_html(self._plan, self._total)

    def close(self) -> None:
        """Give up what is under way; there are no more results."""
        self._values = chain.from_iterable(())
        self._groups.close()
        # `async for` makes calls before it takes the first group.
        self._plan.cancel()


def shown(
    groups: Generator[list[T], None, None], total: int | None, label: str | bool
) -> Generator[list[T], None, None]:
    """The groups, with a bar on standard error that counts the results in them unless `label` is
    False; it is the name of the bar if it is a text."""
    if label is False:
        return groups
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ModuleNotFoundError(
            "a progress bar needs the package `tqdm`: pip install 'gridrpc[progress]'", name="tqdm"
        ) from None

    def counted() -> Generator[list[T], None, None]:
        name = None if label is True else label
        with closing(groups), tqdm(total=total, desc=name) as bar:
            for group in groups:
                bar.update(len(group))
                yield group

    return counted()
