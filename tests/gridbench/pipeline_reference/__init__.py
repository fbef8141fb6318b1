"""A plain Python twin of the event simulation, for tests alone."""
