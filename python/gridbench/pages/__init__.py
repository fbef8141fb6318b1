"""Templates, tables, charts and colours of all HTML pages."""
