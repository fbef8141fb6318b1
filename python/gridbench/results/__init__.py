"""`gridbench report`: pages and comparisons of results, whatever has made them."""
