"""Where workers are put: beside the client, or in network namespaces behind shaped links."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence

from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine, load_engine
from gridbench.errors import InputError
from gridbench.scenario.needs import Place


def refuse_links(place: Place, engines: Sequence[str]) -> None:
    """InputError if links are wanted and cannot be had here, or not for one of the engines."""
    if not place.linked:
        return
    for name in engines:
        # Engines with environments of their own cannot be imported here, and take none.
        point = find_engine(name)
        if environment(name) is not None or not getattr(
            load_engine(point), "takes_namespaces", False
        ):
            raise InputError(
                f"the engine `{name}` cannot put its workers behind links",
                remedy="leave out --nodes and --link, or choose gridrpc-native or gridrpc-python",
            )
    if os.geteuid() != 0:
        raise InputError(
            "links between network namespaces can be made by root only",
            remedy="run it as root, or leave out --nodes and --link",
        )
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise InputError(
                f"links need the program `{program}`", remedy="install the package iproute2"
            )


@contextlib.contextmanager
def open_place(place: Place) -> Iterator[tuple[str, ...]]:
    """The namespaces of the workers while it is active; none if there are no links.

    InputError if they cannot be made.
    """
    if place.rate is None:
        yield ()
        return
    from gridbench.links.network import Network

    with Network(place.nodes, place.rate) as network:
        yield tuple(map(str, network.namespaces))
