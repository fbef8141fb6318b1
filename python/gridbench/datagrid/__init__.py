"""Tasks that read, update and insert objects of a data grid, after the data-grid benchmark."""
