"""The data grids that are measured: which there are, how they are built, how they are run."""
