"""Ray Serve beside ours: a deployment that does nothing, over HTTP. Prints `ready`; ends with its
input.

    python ray_server.py PORT PROCESSORS
"""

from __future__ import annotations

import sys

import ray
from ray import serve


class NullDeployment:
    """One replica in a process of its own, as Serve has it by default."""

    async def __call__(self, request: object) -> str:
        """Nothing."""
        del request
        return ""


port, processors = map(int, sys.argv[1:])
ray.init(num_cpus=processors, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(serve.deployment(NullDeployment).bind())
print("ready", flush=True)
try:
    sys.stdin.read()
finally:
    ray.shutdown()
