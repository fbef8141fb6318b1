"""Sessions: a daemon keeps a grid and results under a name, and programs come and go.

`gridrpc session` (command.py) starts the daemon (daemon.py). Programs attach to it (attached.py).
"""
