"""The results of micro benchmarks in words, tables and charts."""
