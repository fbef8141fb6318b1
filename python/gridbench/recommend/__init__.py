"""`gridbench recommend`: one page from any results: which engine, task size, cores, and cost."""
