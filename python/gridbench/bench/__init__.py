"""What is measured point by point, in fresh processes, round after round.

The families are `micro`, small workloads on all engines side by side, and `areas`, what only
gridrpc does, beside the limits of the machine. Both say which sessions there are and what is
shown of the points; how a session is run (session.py, child.py), what a point is, and what can be
said of many (series.py, statistics.py) is here.
"""
