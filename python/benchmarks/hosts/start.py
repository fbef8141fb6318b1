"""Workers on hosts behind ssh, from nothing to all at work, beside as many bare `ssh true` at once.

The hosts are network namespaces with an sshd each. The program and the module have been copied
there by an earlier grid; what that one took is told as well.
"""

from __future__ import annotations

import subprocess
import time
from urllib.parse import quote, urlencode

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.places import lacks_sshd, programs, shuffled
from gridbench.bench.series import Points
from gridbench.statistics.series import Series
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid

_HOSTS = {Extent.TRIAL: 2, Extent.USUAL: 8, Extent.FULL: 8}
_WORKERS = 2  # on each host
_REPEATED = {Extent.TRIAL: 1, Extent.USUAL: 2, Extent.FULL: 3}
_CASE = "workers through ssh"
_ALLOWANCE = 0.15  # seconds above 1.3 times the bare logins


def started(folder: str, hosts: int, repeated: int) -> Values:
    """Seconds for all workers to work, the first time and later; for the bare logins, twice."""
    with Rig(hosts) as rig:
        names = [f"node{number}" for number in rig.nodes]

        def ours() -> float:
            begin = time.perf_counter()
            values = {"command": f"ssh -F {rig.config}", "workers": _WORKERS}
            keys = urlencode(values, quote_via=quote)
            servers = [f"ssh://{name}?{keys}" for name in names]
            with Grid(servers=servers, worker="native", modules=[folder]) as grid:
                grid.wait_until_ready()
                take = grid.function("gridbench_hosts/take")
                for call in [take.submit(number) for number in range(_WORKERS * hosts)]:
                    call.result()
                return time.perf_counter() - begin

        def logins() -> float:
            begin = time.perf_counter()
            options = ["-F", str(rig.config), "-oBatchMode=yes"]
            running = [
                subprocess.Popen(["ssh", *options, name, "true"], stdin=subprocess.DEVNULL)
                for name in names
            ]
            statuses = [process.wait() for process in running]
            if any(statuses):
                raise RuntimeError("a login failed")
            return time.perf_counter() - begin

        first = ours()
        logins()
        rounds = [shuffled({"ours": ours, "ssh": logins, "again": logins}) for _ in range(repeated)]
        best = {name: min(one[name] for one in rounds) for name in rounds[0]}
        return {"first": first, **best}


def area(extent: Extent) -> Area:
    """One case."""
    folder, missing = programs()
    hosts = _HOSTS[extent]
    arguments = {"folder": folder, "hosts": hosts, "repeated": _REPEATED[extent]}
    case = AreaCase(_CASE, started, arguments, missing=missing or lacks_sshd(), timeout=300)
    title = f"{_WORKERS * hosts} native workers on {hosts} hosts by ssh; limit: `ssh true` at once"
    return Area("hosts/start", title, (case,), _rows, part="start")


def _rows(samples: Points) -> list[Row]:
    ours, ssh = samples.of(_CASE, "ours"), samples.of(_CASE, "ssh")
    allowed = {number: 1.3 * value + _ALLOWANCE for number, value in ssh.by_round.items()}
    return [
        noise_row("`ssh true` to all hosts by itself", ssh, samples.of(_CASE, "again")),
        Row("from nothing to all at work", "s", ours, limit=ssh),
        Row(
            f"the same; limit: 1.3 x `ssh true` + {_ALLOWANCE} s",
            "s",
            ours,
            limit=Series(allowed, ssh.problem),
            target=Target(1.0, of_limit=True),
        ),
        Row("the first time, with copying", "s", samples.of(_CASE, "first")),
    ]
