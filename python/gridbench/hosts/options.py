"""The options that say which hosts are used. What reads them is in gridbench.hosts.where."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gridbench.run.options import grid_option, servers_option

C = TypeVar("C", bound=Callable[..., Any])

_hosts = click.option(
    "--hosts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Hosts with their cores, a line each: `node1 8`. They are reached by ssh.",
)
_emulate = click.option(
    "--emulate",
    type=click.Choice(["ssh", "slurm", "gridengine"]),
    help="Use a cluster that gridbench starts on this machine; needs root.",
)
_nodes = click.option(
    "--nodes",
    type=click.IntRange(1, 250),
    metavar="K",
    help="Hosts of the cluster of --emulate. [default: 4]",
)


def hosts_options(command: C) -> C:
    """Give a command all options that name hosts: its arguments `hosts`, `grid`, `servers`,
    `emulate` and `nodes`."""
    for option in (_nodes, _emulate, servers_option, grid_option, _hosts):
        command = option(command)
    return command
