"""`gridbench compare`: the user's own executables, run in turn and compared."""
