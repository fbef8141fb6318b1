"""What a case needs of memory: each member, each client process, and the machine.

A member holds its part of all objects and of their copies, what the product adds to each of them,
and what is under way between it and clients.
"""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.datagrid.engine import MB, DataGridManifest
from gridbench.datagrid.plan import DataGridOrder
from gridbench.datagrid.workload import TaskParameters
from gridbench.errors import InputError
from gridbench.formats import counted, size

_KEY = 8  # bytes
_ROOM = 1.25  # members' parts are not quite the same, and a heap that is full collects all the time
_UNDER_WAY = 2  # an object that a client works on is in a member as what came, and as what goes
_IN_CLIENT = 6  # and in the client as what was read and changed, and in the product's buffers
_CLIENT = 256 * MB  # of the heap of a client process, without objects
_WARMING = 64 * MB  # the most that a warm-up inserts before it removes it, but for an object each
_MOST_WARMING = 1000  # objects of a client that it inserts
_REGION = MB  # of the heap, as G1 divides one of less than 4 GB
_HEAP = 48 * MB  # of a member whose data are outside of it, without what is under way
_BUFFERED = 14  # so many times what is under way, with clients that meet at one of the members and
# buffers that stay as large; with 10 clients and objects of 10 MB, 10 times were too few in Ignite
_OUTSIDE = 64 * MB  # of each Java process, outside of its heap


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What a case needs, bytes."""

    member: int
    """Of each member; 0: there are none."""
    client: int
    """Of the heap of each client process."""


def need_of(wanted: DataGridOrder, manifest: DataGridManifest, backups: int) -> MemoryNeed:
    """What a case needs at most. `backups`: copies beside the first one, as asked for."""
    workload = wanted.workload
    own = workload.parameters
    objects = workload.at_most + (_inserted_warming(own) if workload.inserted_at_most else 0)
    held = _ROOM * objects * _bytes_of_object(own, manifest)
    threads = -(-own.nnodes // wanted.processes)
    client = _CLIENT + _IN_CLIENT * threads * _in_heap(own.object_bytes)
    if not wanted.members:
        return MemoryNeed(0, round(client + held))
    left = wanted.members - len(wanted.kill)  # they come to hold what the others held
    return MemoryNeed(round(_needed(own, manifest, held * copies(left, backups) / left)), client)


def copies(members: int, backups: int) -> int:
    """Of each object, the first one included: on one member there is no other."""
    return 1 + min(backups, members - 1)


def capacity(own: TaskParameters, manifest: DataGridManifest, backups: int, memory: int) -> int:
    """How many objects of this size fit into members of so many bytes; without members, into so
    many bytes of the client's own process."""
    data: float = memory
    if manifest.members:
        data = _room(own, manifest, memory) * own.mnodes / copies(own.mnodes, backups)
    objects = int(data / _ROOM / _bytes_of_object(own, manifest))
    return max(0, objects - (_inserted_warming(own) if own.write_data_size else 0))


def check_members(
    wanted: DataGridOrder, manifest: DataGridManifest, backups: int, memory: int
) -> None:
    """InputError if members of so many bytes cannot hold what the case has in the end."""
    need = need_of(wanted, manifest, backups).member
    if need <= memory:
        return
    own = wanted.workload.parameters
    left = wanted.members - len(wanted.kill)
    held = copies(left, backups)
    objects = f"{wanted.workload.at_most:,} objects of {size(own.object_bytes)}"
    raise InputError(
        f"{objects} do not fit into {counted(left, 'member')} of {manifest.title}"
        f"{', which are left' if wanted.kill else ''}: each would need {size(need)}, with"
        f" {'1 copy' if held == 1 else f'{held} copies'} of each object in all,"
        f" and has {size(memory)}",
        remedy=f"give members more by --member-memory {-(-need // MB)}MB, have more of them, or"
        " make NObjects or ObjectSize smaller, or have tasks insert less",
    )


def check_machine(
    wanted: DataGridOrder,
    manifest: DataGridManifest,
    backups: int,
    memory: int,
    available: int,
) -> None:
    """InputError if so many bytes are too few for all processes of the case. `memory`: bytes of a
    member."""
    total = machine_need(wanted, manifest, backups, memory)
    if total > available:
        members = f"{counted(wanted.members, 'member')} of {size(memory)} and "
        raise InputError(
            f"{manifest.title}: {members if wanted.members else ''}"
            f"{_processes(wanted.processes)} would need"
            f" {size(total)} in all, and {size(available)} is available",
            remedy="make --member-memory smaller, have fewer members or smaller objects, or end"
            " other programs",
        )


def machine_need(
    wanted: DataGridOrder, manifest: DataGridManifest, backups: int, memory: int
) -> int:
    """Bytes of all processes of a case together, members having so many each."""
    members = wanted.members * (memory if manifest.divided else memory + _OUTSIDE)
    client = need_of(wanted, manifest, backups).client
    return members + wanted.processes * (client + _OUTSIDE)


def _inserted_warming(own: TaskParameters) -> int:
    """Objects that are there for the time of the warm-up only, at most."""
    each = min(_MOST_WARMING, _WARMING // own.nnodes // own.object_bytes)
    return own.nnodes * max(1, each)


def _bytes_of_object(own: TaskParameters, manifest: DataGridManifest) -> int:
    held = own.object_bytes + _KEY + manifest.object_overhead
    return _in_heap(held) if manifest.heap else held


def _in_heap(held: int) -> int:
    """Java gives regions of its heap to what is larger than half of one, and nothing else shares
    them: an object of 1 MB takes two."""
    return -(-held // _REGION) * _REGION if held > _REGION // 2 else held


def _needed(own: TaskParameters, manifest: DataGridManifest, data: float) -> float:
    """Bytes of a member that holds so many of data."""
    if not manifest.divided:
        return _itself(manifest) + _under_way(own) + data
    share = manifest.heap_percent / 100
    return max((_itself(manifest) + data) / (1 - share), _heap_at_least(own) / share)


def _room(own: TaskParameters, manifest: DataGridManifest, memory: int) -> float:
    """Bytes for data in a member of so many; below 0: it is too small even without any."""
    if not manifest.divided:
        return memory - _itself(manifest) - _under_way(own)
    share = manifest.heap_percent / 100
    if _heap_at_least(own) > memory * share:
        return 0.0
    return memory * (1 - share) - _itself(manifest)


def _heap_at_least(own: TaskParameters) -> int:
    """Bytes of a heap that has no data, and so no room to spare for what is under way."""
    return _HEAP + _BUFFERED * _under_way(own)


def _itself(manifest: DataGridManifest) -> int:
    """Of a member, without data and clients."""
    return manifest.member_overhead * MB


def _under_way(own: TaskParameters) -> int:
    """What clients have under way with a member."""
    return _UNDER_WAY * own.busy_clients * own.object_bytes // own.mnodes


def _processes(count: int) -> str:
    return f"{count} client {'process' if count == 1 else 'processes'}"
