import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

workers, seconds = int(sys.argv[1]), float(sys.argv[2])
begin = time.monotonic()
with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
    list(pool.map(time.sleep, [seconds] * workers))
    print(time.monotonic() - begin)
