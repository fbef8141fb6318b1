"""Engines on several hosts, each with a client on this machine: what the area `hosts` compares.

They run in the engines' own Python, which has no gridrpc.
"""
