"""Names of engines: defaults, groups, and former names."""

from __future__ import annotations

from gridbench.workload.body import keeps_time

DEFAULT_ENGINE = "gridrpc-native"
_FOR_FUNCTIONS = "gridrpc-python"
DEFAULT_ENGINES = f"{DEFAULT_ENGINE}, or {_FOR_FUNCTIONS} for MODULE:FUNCTION"
"""For help texts."""

NULL_ENGINE = "null"
"""Does nothing: measures the benchmark itself."""
ONLY_IF_NAMED = frozenset(
    {
        "emulated-gridengine",
        "emulated-gridengine-jobs",
        "emulated-gridengine-native",
        "emulated-htcondor",
        "emulated-htcondor-jobs",
        "emulated-htcondor-native",
        "emulated-slurm",
        "emulated-slurm-array",
        "emulated-slurm-dask",
        "emulated-slurm-hyperqueue",
        "emulated-slurm-jobs",
        "emulated-slurm-native",
        "server",
    }
)
"""Engines that start a batch system or a server: comparisons of all engines leave them out unless
they are named."""


def default_engine(body: str) -> str:
    """The engine for tasks of that body (`gridbench.workload.body`): Python workers for a user's
    function."""
    return DEFAULT_ENGINE if keeps_time(body) else _FOR_FUNCTIONS


def default_engines(body: str, *, compare: bool) -> tuple[str, ...]:
    """That engine, and the process pool to compare it with."""
    return (default_engine(body), "process-pool") if compare else (default_engine(body),)


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
"""Current names by former ones. These engines start a batch system."""
OWN_CLUSTER = (
    "for a cluster that you have: --engine gridrpc-native --server 'slurm:?nodes=4&workers=25'"
    " (or gridengine:, htcondor:)"
)
"""The alternative to these engines."""
_GRIDRPC = frozenset(new for old, new in RENAMED.items() if old.startswith("gridrpc-"))


def current_name(name: str) -> str:
    """The current name of an engine."""
    return RENAMED.get(name, name)


def is_gridrpc(name: str) -> bool:
    """Whether the engine is gridrpc, however its workers start."""
    return name.startswith("gridrpc") or name in _GRIDRPC
