import sys
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.task.function import PythonEnv

workers, seconds = int(sys.argv[1]), float(sys.argv[2])
begin, job = time.monotonic(), Job()
with LocalCluster(worker_config=WorkerConfig(cores=workers)) as cluster:
    [job.function(time.sleep, args=(seconds,)) for _ in range(workers)]
    client = cluster.client(python_env=PythonEnv(sys.executable))
    client.wait_for_jobs([client.submit(job)])
    print(time.monotonic() - begin)
