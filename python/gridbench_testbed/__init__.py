"""Clusters and services emulated on this machine.

It is for benchmarks and tests: batch systems, hosts with sshds, network links, file systems and
servers, each of real daemons. gridbench uses it; it uses neither gridbench nor benchmarks.
"""
