"""What is run: the set-up file, the list of task times, the data, and the body of a task."""
