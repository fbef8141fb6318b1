"""The results of the micro benchmarks in the terminal, as a page, and as Markdown."""
