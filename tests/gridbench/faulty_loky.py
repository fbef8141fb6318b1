"""In place of the package loky, in an environment of its own: does what FAULT says.

The driver is the real one, so that these are faults in the process which hosts an engine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

FAULT = os.environ["FAULT"]

if FAULT == "cannot be imported":
    raise ImportError("libpool.so.3: cannot open shared object file")
if FAULT == "is imported forever":
    time.sleep(1000)


class Executor(ThreadPoolExecutor):
    """Tasks run in this process, which ends in the middle of them if it should."""

    def shutdown(self, **_: Any) -> None:
        if FAULT == "does not close":
            time.sleep(1000)
        super().shutdown(wait=False, cancel_futures=True)


def get_reusable_executor(max_workers: int, **_: Any) -> Executor:
    print("the pool is starting", flush=True)
    match FAULT:
        case "hangs":
            time.sleep(1000)
        case "crashes":
            print("the licence server is gone", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exits":
            os._exit(3)
        case "raises":
            raise RuntimeError("out of luck")
        case "leaves a process":
            subprocess.run(["sh", "-c", "sleep 1000 & echo $! >stray.pid"], check=True)
    return Executor(max_workers)
