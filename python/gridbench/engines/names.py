"""Names that engines had before, in older results and scripts."""

from __future__ import annotations

RENAMED = {
    "dask-jobqueue": "emulated-slurm-dask",
    "gridengine-jobs": "emulated-gridengine-jobs",
    "gridrpc-gridengine": "emulated-gridengine",
    "gridrpc-gridengine-native": "emulated-gridengine-native",
    "gridrpc-htcondor": "emulated-htcondor",
    "gridrpc-htcondor-native": "emulated-htcondor-native",
    "gridrpc-slurm": "emulated-slurm",
    "gridrpc-slurm-native": "emulated-slurm-native",
    "htcondor-jobs": "emulated-htcondor-jobs",
    "hyperqueue-slurm": "emulated-slurm-hyperqueue",
    "slurm-array": "emulated-slurm-array",
    "slurm-jobs": "emulated-slurm-jobs",
}
"""The present name by the former one. These engines start a batch system of their own."""
OWN_CLUSTER = (
    "for a cluster that you have: --engine gridrpc-native --server 'slurm:?nodes=4&workers=25'"
    " (or gridengine:, htcondor:)"
)
"""What to do instead of using them."""
_GRIDRPC = frozenset(new for old, new in RENAMED.items() if old.startswith("gridrpc-"))


def current_name(name: str) -> str:
    """The name that the engine has today."""
    return RENAMED.get(name, name)


def is_gridrpc(name: str) -> bool:
    """Whether the engine is gridrpc, in any way of starting its workers."""
    return name.startswith("gridrpc") or name in _GRIDRPC
