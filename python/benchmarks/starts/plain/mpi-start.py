import sys
import time

if __name__ == "__main__":
    workers, seconds = int(sys.argv[1]), float(sys.argv[2])
    begin = time.monotonic()
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(workers) as pool:
        list(pool.map(time.sleep, [seconds] * workers))
        print(time.monotonic() - begin)
