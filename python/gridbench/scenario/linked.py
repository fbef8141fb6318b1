"""Where workers are put: beside the client, or in network namespaces behind shaped links."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine, load_engine
from gridbench.errors import InputError
from gridbench.scenario.needs import WorkerPlace
from gridbench_testbed.links import iproute
from gridbench_testbed.links.network import Network


def refuse_links(place: WorkerPlace, engines: Sequence[str]) -> None:
    """InputError if links are wanted and cannot be had here, or not for one of the engines."""
    if not place.linked:
        return
    for name in engines:
        # Engines with environments of their own cannot be imported here, and take none.
        point = find_engine(name)
        if environment(name) is not None or not load_engine(point).takes_namespaces:
            raise InputError(
                f"the engine `{name}` cannot put its workers behind links",
                remedy="leave out --nodes and --link, or choose gridrpc-native or gridrpc-python",
            )
    iproute.require()


@contextlib.contextmanager
def open_place(place: WorkerPlace) -> Iterator[tuple[str, ...]]:
    """The namespaces of the workers while it is active; none if there are no links.

    InputError if they cannot be made.
    """
    if place.rate is None:
        yield ()
        return
    with Network(place.nodes, place.rate) as network:
        yield tuple(map(str, network.namespaces))
