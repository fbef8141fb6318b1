"""The results of the micro benchmarks in the terminal, as a page, and as Markdown."""

from gridbench.micro.present.markdown import write_markdown
from gridbench.micro.present.notes import claims_something, headline
from gridbench.micro.present.page import write_report
from gridbench.micro.present.terminal import print_tables

__all__ = ["claims_something", "headline", "print_tables", "write_markdown", "write_report"]
