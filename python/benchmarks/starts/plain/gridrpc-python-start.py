import sys
import time

import gridrpc

workers, seconds = int(sys.argv[1]), float(sys.argv[2])
begin = time.monotonic()
with gridrpc.Grid(workers) as grid:
    list(grid.map(time.sleep, [seconds] * workers))
    print(time.monotonic() - begin)
