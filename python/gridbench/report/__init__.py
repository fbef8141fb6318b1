"""The report: one HTML page that shows where the time of one or several runs went."""
