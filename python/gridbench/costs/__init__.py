"""Models that are a sum of costs: each has a name, a unit and a meaning, and none is below 0.

What a benchmark measures is a `Point` (formula.py), and how its times come about a `Formula`, which
the benchmark has in its own package. fit.py finds the costs, held_out.py how wrong they are about
what they were not fitted to, and a `CostModel` (model.py) predicts other cases, with a range that
widens outside of what was measured (spans.py, doubt.py). The crossover of shared data has formulas
of two sides, and uses the same least squares and the same way of holding out.
"""
