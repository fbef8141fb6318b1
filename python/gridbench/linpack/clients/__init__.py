"""`gridbench linpack clients`: many clients that call a Linpack server at random."""
