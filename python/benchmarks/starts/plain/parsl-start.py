import sys
import tempfile
import time

import parsl

workers, seconds = int(sys.argv[1]), float(sys.argv[2])
stand = parsl.python_app(lambda seconds: __import__("time").sleep(seconds))
pool = parsl.HighThroughputExecutor(max_workers_per_node=workers, cores_per_worker=1e-6)
begin = time.monotonic()
with parsl.load(parsl.Config(executors=[pool], run_dir=tempfile.mkdtemp())):
    [future.result() for future in [stand(seconds) for _ in range(workers)]]
    print(time.monotonic() - begin)
