"""Sessions: a process keeps a grid and results under a name, and programs come and go.

`gridrpc session` (command.py) starts the process (keeper.py); programs attach to it (attached.py).
"""
