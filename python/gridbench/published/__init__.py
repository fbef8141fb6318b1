"""The published figures of the compute-grid benchmark, worked out again from their inputs."""
