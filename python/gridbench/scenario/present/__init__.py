"""What the results of scenarios tell: in the terminal, a page for each, and one for all."""

from gridbench.scenario.present.overall import write_overall
from gridbench.scenario.present.page import write_report
from gridbench.scenario.present.terminal import print_answers

__all__ = ["print_answers", "write_overall", "write_report"]
