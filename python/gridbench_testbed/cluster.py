"""A cluster on this machine: hosts with sshds, or a batch system."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from gridbench_testbed.errors import InputError

if TYPE_CHECKING:
    from gridbench_testbed.links.sshd import Rig

_NAME = "cluster"


@contextlib.contextmanager
def emulated(kind: str, nodes: int, each: int) -> Iterator[list[str]]:
    """Servers of an emulated cluster, `ssh`, `slurm` or `gridengine`, with `each` workers on each
    node. InputError if it cannot start here."""
    if kind == "ssh":
        from gridbench_testbed.links import sshd

        _refuse(kind, sshd.why_not(), "run as root; `scripts/ensure-sshd` installs OpenSSH")
        with sshd.Rig(nodes) as rig:
            yield servers_of(rig)
    elif kind == "slurm":
        from gridbench_testbed.batch import slurm

        _refuse(kind, slurm.why_not(), "")
        with slurm.Slurm(nodes=nodes, processors=each) as cluster:
            cluster.use()
            yield [_url(f"slurm://{_NAME}", nodes=nodes, workers=each, request="array")]
    else:
        from gridbench_testbed.batch import gridengine

        _refuse(kind, gridengine.why_not(), "")
        with gridengine.GridEngine(slots=nodes * each) as system:
            system.use()
            slots = {"parallel_environment": "mp"} if each > 1 else {}
            place = f"gridengine://{_NAME}"
            yield [_url(place, nodes=nodes, workers=each, request="array", **slots)]


def servers_of(rig: Rig) -> list[str]:
    """The nodes of a rig as servers with one worker each."""
    command = shlex.join(["ssh", "-F", str(rig.config), "-o", "BatchMode=yes"])
    return [
        _url(f"ssh://node{number}", workers=1, command=command, python=sys.executable)
        for number in rig.nodes
    ]


def _url(place: str, **keys: object) -> str:
    # For workers to import this gridbench.
    packages = str(Path(__file__).parents[1])
    values = {**keys, "output": "plain", "environment.PYTHONPATH": packages}
    return f"{place}?{urlencode(values, quote_via=quote)}"


def _refuse(kind: str, why: str, remedy: str) -> None:
    if why:
        raise InputError(f"there can be no cluster `{kind}` on this machine: {why}", remedy=remedy)
