"""Workload: set-up file, list of task times, data, and the body of a task."""
