import sys
import time

from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    workers, seconds = int(sys.argv[1]), float(sys.argv[2])
    begin = time.monotonic()
    one_each = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**one_each) as cluster, Client(cluster) as client:
        client.gather(client.map(time.sleep, [seconds] * workers, pure=False))
        print(time.monotonic() - begin)
