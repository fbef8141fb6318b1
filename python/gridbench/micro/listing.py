"""What `gridbench micro --list` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gridbench.engines.default import ONLY_IF_NAMED
from gridbench.engines.environments import environment
from gridbench.micro.command import known_engines
from gridbench.micro.workloads import WORKLOADS


@dataclass(frozen=True, slots=True)
class Listing:
    """Workloads and engines, each with what there is to say of it."""

    workloads: dict[str, str]
    engines: dict[str, str]
    """Whether they can be used, or why not."""

    def told(self) -> str:
        """As text."""
        lines = []
        for title, names in self.to_dict().items():
            width = max(map(len, names))
            lines.append(f"{title}:")
            lines += [f"  {name:{width}}  {text}" for name, text in names.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, dict[str, str]]:
        """For JSON."""
        return asdict(self)


def listing() -> Listing:
    """All that this version measures."""
    engines = {}
    for name in (*known_engines(()), *sorted(ONLY_IF_NAMED)):
        own = environment(name)
        state = own.state() if own else None
        missing = state is not None and state.kind != "installed"
        engines[name] = f"{state.what}: {state.remedy}" if state and missing else "can be used"
        if name in ONLY_IF_NAMED:
            engines[name] += "; only if it is named"
    return Listing(dict(WORKLOADS), engines)
