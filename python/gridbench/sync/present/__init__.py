"""The results of synchronised rounds in the terminal, as Markdown, and as a page."""

from gridbench.sync.present.page import write_report
from gridbench.sync.present.terminal import answer, print_table

__all__ = ["answer", "print_table", "write_report"]
