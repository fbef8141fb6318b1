import sys
import time

from loky import get_reusable_executor

if __name__ == "__main__":
    workers, seconds = int(sys.argv[1]), float(sys.argv[2])
    begin = time.monotonic()
    with get_reusable_executor(max_workers=workers) as pool:
        list(pool.map(time.sleep, [seconds] * workers))
        print(time.monotonic() - begin)
