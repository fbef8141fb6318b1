"""Real runs of a scenario: servers behind links, a directory, and client programs."""
