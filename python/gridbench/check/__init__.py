"""`gridbench check`: whether a result keeps the rules of docs/rules.md."""
