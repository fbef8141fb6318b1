"""The thread pool of Python's standard library, as an engine for gridbench."""

import platform
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gridbench.engines.base import Description, Engine, Outcome, Task
from gridbench.engines.functions import failure_of, outcome_of, perform


class ThreadPoolEngine(Engine):
    name = "thread-pool"

    def describe(self):
        return Description(self.name, f"Python {platform.python_version()}")

    def start(self, workers):
        self.pool, self.ended = ThreadPoolExecutor(workers), queue.SimpleQueue()
        self.meeting = threading.Barrier(workers)
        self.workers = workers

    def wait_ready(self):
        for answer in [self.pool.submit(self.meeting.wait) for _ in range(self.workers)]:
            answer.result()

    def share(self, data):
        return data

    def submit(self, task: Task, shared):
        self.pool.submit(self._work, task, shared)

    def _work(self, task: Task, shared):
        try:
            result = perform(task.sleep, task.data, shared, task.output_bytes, task.check)
            worker = threading.current_thread().name
            self.ended.put(replace(outcome_of(task.tid, result), worker=worker))
        except Exception as error:
            self.ended.put(failure_of(task.tid, error))

    def next_outcome(self) -> Outcome:
        return self.ended.get()

    def close(self):
        if pool := getattr(self, "pool", None):
            pool.shutdown(wait=False, cancel_futures=True)
