"""What `gridbench micro --list` shows."""

from __future__ import annotations

from gridbench.bench.micro.command import known_engines
from gridbench.bench.micro.workloads import WORKLOADS
from gridbench.engines.environments import environment


def listing() -> str:
    """Workloads, and engines with whether they can be used, as text."""
    engines = {}
    for name in known_engines(()):
        own = environment(name)
        state = own.state() if own else None
        missing = state is not None and state.kind != "installed"
        engines[name] = f"{state.what}: {state.remedy}" if state and missing else "can be used"
    lines = []
    for title, names in (("workloads", WORKLOADS), ("engines", engines)):
        width = max(map(len, names))
        lines.append(f"{title}:")
        lines += [f"  {name:{width}}  {text}" for name, text in names.items()]
    return "\n".join(lines)
