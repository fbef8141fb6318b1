"""Child processes: start, messages, output, time limit and end."""
