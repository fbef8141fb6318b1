"""`gridbench linpack`: dense systems of linear equations, solved here and on a server."""
