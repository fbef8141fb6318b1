"""What all pages of gridbench are made of: templates, tables, charts, colours and their frame."""
