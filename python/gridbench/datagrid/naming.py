"""What cases and their parts are called."""

from __future__ import annotations

from gridbench.datagrid.figures import KB
from gridbench.datagrid.record import Counted, DataGridCase
from gridbench.formats import amount, counted, size

COUNTED: dict[Counted, str] = {
    "service": "from when it began",
    "intended": "from when it should have begun",
}
SCENARIOS = {
    1: "object size",
    2: "clients",
    3: "members",
}
"""What each scenario varies."""


def label_shown(label: str) -> str:
    """`read`, `insert`, `YCSB A`."""
    if label.startswith("ycsb-"):
        return f"YCSB {label.removeprefix('ycsb-').upper()}"
    return label


def size_shown(kilobytes: float) -> str:
    """An object's size: `1 KB`, `10 MB`."""
    return size(kilobytes * KB)


def clients_of(case: DataGridCase) -> int:
    """Threads that process tasks."""
    return int(case.parameters.get("NNodes", 0))


def members_of(case: DataGridCase) -> int:
    """Storage members; 0: the data are in the client's own process."""
    asked = int(case.parameters.get("MNodes", 0))
    return len(case.members) if case.status == "done" else asked


def variant(case: DataGridCase) -> str:
    """What is not usual about it: `open loop at 500/s, atomic updates, member 0 killed`."""
    at = f" at {amount(case.rate, '/s')}" if case.rate is not None else ""
    parts = [
        f"open loop{at}" if case.loop == "open" else "",
        "atomic updates" if case.updates == "atomic" else "",
        killed_words(case),
    ]
    return ", ".join(part for part in parts if part)


def killed_words(case: DataGridCase) -> str:
    """`member 0 killed`, `members 0 and 2 killed`; empty: none was to be."""
    if not case.kill:
        return ""
    names = [str(index) for index in case.kill]
    if len(names) == 1:
        return f"member {names[0]} killed"
    return f"members {', '.join(names[:-1])} and {names[-1]} killed"


def case_name(case: DataGridCase) -> str:
    """`Hazelcast, read, 1 KB, 10 clients, 3 members`."""
    return f"{case.title}, {what_of(case)}"


def what_of(case: DataGridCase) -> str:
    """The same without the product."""
    members = members_of(case)
    parts = [
        f"scenario {case.scenario}" if case.scenario is not None else "",
        label_shown(case.label),
        size_shown(case.parameters.get("ObjectSize", 0)),
        counted(clients_of(case), "client"),
        counted(members, "member") if members else "",
        variant(case),
    ]
    return ", ".join(part for part in parts if part)
