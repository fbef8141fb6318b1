"""Measurements behind pages of docs/, and their tables: each file is a program."""
