import sys
import time

import ray

workers, seconds = int(sys.argv[1]), float(sys.argv[2])
stand = ray.remote(lambda: time.sleep(seconds))
begin = time.monotonic()
ray.init(address="local", num_cpus=workers, include_dashboard=False, log_to_driver=False)
ray.get([stand.remote() for _ in range(workers)])
print(time.monotonic() - begin)
