"""The results of data grids in the terminal, as Markdown, and as a page."""

from gridbench.datagrid.present.page import write_report
from gridbench.datagrid.present.terminal import answer, print_table

__all__ = ["answer", "print_table", "write_report"]
