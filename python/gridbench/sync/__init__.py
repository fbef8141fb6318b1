"""The synchronised many-task benchmark: a program on all workers at once, round after round."""
