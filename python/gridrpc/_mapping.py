"""What `Grid.map` and `Grid.starmap` make of their options: a `Map` with its sender."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gridrpc._config import processors
from gridrpc._grain import Grain, checked_chunk
from gridrpc._map import Map, Record, arguments, known_length
from gridrpc._modules import ModuleFunction
from gridrpc._results import Results, shown
from gridrpc._retries import NO_RETRIES, Retries
from gridrpc._senders import MapOptions, ModuleSender, PythonSender, Sender
from gridrpc._wrapped import Seeded, Spread

if TYPE_CHECKING:
    import os

    from gridrpc._grid import Grid
    from gridrpc._journal import Journal
    from gridrpc._speculation import Speculation

#: Calls that no worker serves.
MANY = (1 << 64) - 1


class Items(NamedTuple):
    """The items of a map. `spread`: each holds the arguments of its call, as those of `starmap`."""

    items: Iterator[Any]
    total: int | None
    single: bool
    spread: bool = False


def columns(iterables: tuple[Iterable[Any], ...]) -> Items:
    """Those of `map`: from each iterable one argument."""
    single = len(iterables) == 1
    items = iter(iterables[0]) if single else zip(*iterables, strict=False)
    return Items(items, known_length(iterables), single)


def rows(items: Iterable[Any]) -> Items:
    """Those of `starmap`: each item holds all arguments."""
    return Items(map(arguments, count(), items), known_length([items]), False, True)


def mapped(
    grid: Grid,
    fn: str | Callable[..., Any],
    given: Items,
    options: MapOptions,
    *,
    rng: Any,
    ordered: bool,
    progress: bool | str,
    journal: Journal | str | os.PathLike[str] | None,
    **how: Any,
) -> Results[Any]:
    """What `map` returns."""
    items, total, single, spread = given
    seeded: Callable[[Any], Seeded] | None = None
    if rng is not None and rng is not False:
        from gridrpc._seeds import seed_of, seeding

        if grid._of_module(fn) is not None:
            raise TypeError("functions of compiled modules cannot have `rng`")
        seeds = grid._all_seeds() if rng is True else None
        if seeds is not None and not seeds.are_fixed and journal is not None:
            raise ValueError(
                "`rng=True` draws another seed in each run: with a `journal`, give a number, or "
                "open the grid with a `seed`"
            )
        seeded = seeding(*(seed_of(rng, "rng") if seeds is None else seeds.take()))
        items = _numbered(items, single or spread)
        single = False
    captures = grid._captures and grid._of_module(fn) is None
    options = options._replace(single=single, keeps_output=captures)
    how |= {"spread": spread, "seeded": seeded}
    if journal is None:
        plan = planned(grid, fn, items, options, total=total, ordered=ordered, **how)
        groups = shown(plan.groups(), total, progress)
        return Results(plan, groups, total, captures=captures)
    from gridrpc._resume import Resumed

    of_module = grid._of_module(fn)
    idempotent = options.call.idempotent or (of_module is not None and of_module.is_idempotent)
    whole = fn if seeded is None else seeded(fn)
    resumed = Resumed(
        journal,
        whole if of_module is None else of_module,
        items,
        single=options.single,
        idempotent=idempotent,
        stand_in=options.stand_in,
    )
    left = None if total is None else max(0, total - resumed.kept)
    plan = planned(
        grid,
        fn,
        resumed.missing(),
        options,
        total=left,
        ordered=ordered,
        record=resumed,
        few_ahead=not idempotent,
        **how,
    )
    groups = shown(resumed.groups(plan.groups(), ordered), total, progress)
    return Results(plan, groups, left, resumed, captures=captures)


def _numbered(items: Iterator[Any], alone: bool) -> Iterator[tuple[Any, ...]]:
    """The items, each behind its number from 0; `alone`: an item is no tuple of arguments."""
    if alone:
        return zip(count(), items)
    return ((number, *item) for number, item in enumerate(items))


def planned(
    grid: Grid,
    fn: str | Callable[..., Any],
    items: Iterator[Any],
    options: MapOptions,
    *,
    total: int | None,
    chunk: int | Literal["auto"],
    ordered: bool,
    timeout: float | None = None,
    retries: Retries = NO_RETRIES,
    spread: bool = False,
    seeded: Callable[[Any], Seeded] | None = None,
    speculate: bool = False,
    record: Record | None = None,
    few_ahead: bool = False,
) -> Map:
    """A `map` that has not begun."""
    call = options.call
    asks = call.asks or options.ranks > 0
    checked_chunk(chunk, asks=asks)
    grid._check_process()
    has_new_process = grid.config.max_tasks_per_child == 1
    if chunk == "auto" and (
        call.deadline is not None or call.idempotent or asks or has_new_process
    ):
        chunk = 1
    sender: Sender
    of_module = grid._of_module(fn)
    if of_module is not None:
        check_idempotent(of_module, call.idempotent)
        if retries.times:
            raise TypeError("calls of module functions cannot have `retries`")
        if chunk == "auto" and of_module.is_idempotent:
            chunk = 1
        sender = ModuleSender(grid, of_module, options)
    else:
        function: Any = fn
        # What runs chunks, tries again or spreads arguments is code, which a server refuses.
        of_server = isinstance(fn, str) and grid._native.python_server(fn) is not None
        if of_server:
            if retries.times or seeded is not None:
                refused = "retries" if retries.times else "rng"
                raise TypeError(f"calls of a server's functions cannot have `{refused}`")
            chunk = 1
        if options.ranks:
            function = grid._on_ranks(fn, options.ranks, call.cores)
            options = options._replace(call=call.with_cores(options.ranks * call.cores), ranks=0)
        if seeded is not None:
            # Within retries: each attempt draws the same numbers.
            function = seeded(function)
        function = retries.around(function)
        if spread and not of_server:
            function = Spread(function)
            options = options._replace(single=seeded is None)
        sender = PythonSender(grid, function, options, chunk != 1)
    if speculate:
        _check_speculation(call.idempotent if of_module is None else of_module.is_idempotent, chunk)
    elsewhere = grid.config.servers or grid.config.directory
    grain = Grain(
        None if chunk == "auto" else chunk,
        grid._native.workers if elsewhere else lambda: grid.config.workers,
        MANY if elsewhere else processors(),
        total,
        grid.config.max_queued_bytes,
        sender.costs,
        few_ahead,
    )
    return Map(
        items,
        sender,
        grain,
        ordered=ordered,
        timeout=timeout,
        stand_in=options.stand_in,
        record=record,
        speculation=_speculation(sender, grain) if speculate else None,
    )


def itself(error: BaseException) -> BaseException:
    """An error in place of its result."""
    return error


def check_idempotent(function: ModuleFunction, idempotent: bool) -> None:
    """Raises TypeError for calls that are `idempotent` otherwise than their interface says."""
    if idempotent and function.has_interface:
        raise TypeError(
            f"{function.name}: a module's function is idempotent if its IDL says `Idempotent`. "
            "Leave `idempotent=True` out, or add that word to its definition and compile it"
        )


def _check_speculation(idempotent: bool, chunk: int | Literal["auto"]) -> None:
    if not idempotent:
        raise ValueError(
            "`speculate` runs calls twice: give `idempotent=True` as well, or declare the module's "
            "function `Idempotent`"
        )
    if chunk != 1:
        raise ValueError(f"chunk is {chunk!r}: calls that may be copied take one item")


def _speculation(sender: Sender, grain: Grain) -> Speculation:
    from gridrpc._speculation import Speculation

    return Speculation(sender.one, lambda: grain.workers)
