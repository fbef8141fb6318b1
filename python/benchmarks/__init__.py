"""Benchmarks of gridrpc itself, beside the limits of the machine; in no package that is installed.

An area (`modules`, ...) is a set of cases and the rows made of their values. A case is one function
that runs in a fresh process and returns numbers; the cases of an area run interleaved, in random
order within each round, so that ratios compare what was measured under the same conditions.
"""
