"""The results of the micro benchmarks in the terminal, as a page, and as Markdown."""

from gridbench.bench.micro.present.markdown import write_markdown
from gridbench.bench.micro.present.page import write_report
from gridbench.bench.micro.present.terminal import print_tables

__all__ = ["print_tables", "write_markdown", "write_report"]
