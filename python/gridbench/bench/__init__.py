"""The project's own figures: gridrpc beside its peers and the limits of the machine.

An area (`calls`, `start`, ...) is a set of cases and the rows made of their values. A case is one
function that runs in a fresh process and returns numbers; the cases of an area run interleaved,
in random order within each round, so that what disturbs the machine disturbs all of them alike.
"""
