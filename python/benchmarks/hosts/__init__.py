"""Area `hosts`: grids of many machines, beside what the network carries and beside other engines.

Hosts are agents on this machine, network namespaces behind links of known rate, or namespaces with
an sshd each. A run measures ours and what it is compared with in random order,
and one of them twice: how far it differs from itself is the noise that all ratios have.
"""

from __future__ import annotations

from benchmarks.hosts import calls, peers, workers

PARTS = {
    "null": calls.null_area,
    "argument": calls.argument_area,
    "map": calls.map_area,
    "shared": peers.shared_area,
    "peers": peers.peers_area,
    "start": workers.start_area,
    "many": workers.many_area,
    "distance": calls.distance_area,
}
