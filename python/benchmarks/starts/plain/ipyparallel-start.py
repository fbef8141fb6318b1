import sys
import time

import ipyparallel

workers, seconds = int(sys.argv[1]), float(sys.argv[2])
begin = time.monotonic()
with ipyparallel.Cluster(n=workers, controller_ip="127.0.0.1") as client:
    list(client.load_balanced_view().map(time.sleep, [seconds] * workers))
    print(time.monotonic() - begin)
