"""The crossover in the terminal, as JSON, as Markdown, and as a page."""

from gridbench.datagrid.crossover.present.document import to_record
from gridbench.datagrid.crossover.present.page import write_report
from gridbench.datagrid.crossover.present.terminal import print_table

__all__ = ["print_table", "to_record", "write_report"]
