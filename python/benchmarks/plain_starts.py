"""Plain scripts of ten lines that start an engine in its usual way, and have tasks done.

    python plain_starts.py ENGINE WORKERS SECONDS

prints the seconds from nothing but the imported engine until each of WORKERS workers has slept for
SECONDS. It runs in the engine's own Python, and imports nothing else.
"""

import sys
import time


def dask(workers: int, seconds: float) -> float:
    from dask.distributed import Client, LocalCluster

    begin = time.monotonic()
    one_each = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**one_each) as cluster, Client(cluster) as client:
        client.gather(client.map(time.sleep, [seconds] * workers, pure=False))
        return time.monotonic() - begin


def gridrpc_python(workers: int, seconds: float) -> float:
    import gridrpc

    begin = time.monotonic()
    with gridrpc.Grid(workers) as grid:
        list(grid.map(time.sleep, [seconds] * workers))
        return time.monotonic() - begin


def hyperqueue(workers: int, seconds: float) -> float:
    from hyperqueue import Job, LocalCluster
    from hyperqueue.cluster import WorkerConfig
    from hyperqueue.task.function import PythonEnv

    begin, job = time.monotonic(), Job()
    with LocalCluster(worker_config=WorkerConfig(cores=workers)) as cluster:
        for _ in range(workers):
            job.function(time.sleep, args=(seconds,))
        client = cluster.client(python_env=PythonEnv(sys.executable))
        client.wait_for_jobs([client.submit(job)])
        return time.monotonic() - begin


def ipyparallel(workers: int, seconds: float) -> float:
    import ipyparallel

    begin = time.monotonic()
    with ipyparallel.Cluster(n=workers, controller_ip="127.0.0.1") as client:
        list(client.load_balanced_view().map(time.sleep, [seconds] * workers))
        return time.monotonic() - begin


def loky(workers: int, seconds: float) -> float:
    from loky import get_reusable_executor

    begin = time.monotonic()
    with get_reusable_executor(max_workers=workers) as pool:
        list(pool.map(time.sleep, [seconds] * workers))
        return time.monotonic() - begin


def mpi(workers: int, seconds: float) -> float:
    begin = time.monotonic()
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(workers) as pool:
        list(pool.map(time.sleep, [seconds] * workers))
        return time.monotonic() - begin


def parsl(workers: int, seconds: float) -> float:
    import tempfile

    import parsl

    stand = parsl.python_app(lambda seconds: __import__("time").sleep(seconds))
    pool = parsl.HighThroughputExecutor(max_workers_per_node=workers, cores_per_worker=1e-6)
    begin = time.monotonic()
    with parsl.load(parsl.Config(executors=[pool], run_dir=tempfile.mkdtemp())):
        for future in [stand(seconds) for _ in range(workers)]:
            future.result()
        return time.monotonic() - begin


def process_pool(workers: int, seconds: float) -> float:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    begin = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(time.sleep, [seconds] * workers))
        return time.monotonic() - begin


def ray(workers: int, seconds: float) -> float:
    import ray

    stand = ray.remote(lambda: time.sleep(seconds))
    begin = time.monotonic()
    ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
    ray.get([stand.remote() for _ in range(workers)])
    return time.monotonic() - begin


STARTS = {
    start.__name__.replace("_", "-"): start
    for start in (
        dask, gridrpc_python, hyperqueue, ipyparallel, loky, mpi, parsl, process_pool, ray,
    )
}  # fmt: skip
"""By the engine's name."""

if __name__ == "__main__":
    print(STARTS[sys.argv[1]](int(sys.argv[2]), float(sys.argv[3])))
