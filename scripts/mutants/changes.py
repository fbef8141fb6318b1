"""The changes that are tried: which there are in a file, and how one is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator

ROOT = Path(__file__).resolve().parents[2]

#: Each changes what a line computes. Others of Cosmic Ray's are mostly errors of types.
OPERATORS = (
    *(
        f"core/ReplaceComparisonOperator_{one}"
        for one in (
            "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt",
            "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is",
        )
    ),
    *(
        f"core/ReplaceBinaryOperator_{one}"
        for one in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul",
                    "Pow_Mul", "BitOr_BitAnd", "BitAnd_BitOr")
    ),
    "core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd", "core/ReplaceUnaryOperator_Delete_Not",
    "core/ReplaceUnaryOperator_USub_UAdd", "core/AddNot", "core/ZeroIterationForLoop",
    "core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak",
)  # fmt: skip

#: How a search continues, and not what it finds: with others it finds the same, sooner or later.
SEARCHES = {
    "model/fit.py": {
        "_COARSE", "_FINE", "_INSIDE", "_MOST_STEPS", "_NEAR", "MORE_STARTS", "_APART",
        "_GOING_ON", "_AGAIN", "_MOST_TIMES", "_EXACT", "_ROUGH",
    },
}  # fmt: skip
#: Functions of model/terms.py whose third argument is where a search begins.
GUESSED = {"_seconds", "_per_byte"}


class OtherNumber(Operator):
    """Small whole numbers become their neighbours, others half as large again, or a third less."""

    def mutation_positions(self, node):
        if isinstance(node, parso.python.tree.Number):
            yield from [(node.start_pos, node.end_pos)] * 2

    def mutate(self, node, index):
        value = ast.literal_eval(node.value)
        if isinstance(value, int) or value == 0:
            step = max(1, value // 2)
            changed = value - step if index else value + step
        else:
            changed = value / 1.5 if index else value * 1.5
        # Where it is an operand, `-1` alone would be another expression.
        text = f"({changed})" if changed < 0 else str(changed)
        return parso.python.tree.Number(node.prefix + text, node.start_pos)

    @classmethod
    def examples(cls):
        return (Example("x = 570", "x = 855"), Example("x = 0.9", "x = 0.6", occurrence=1))


class NoStatement(Operator):
    """A call whose result nobody takes, or a change of a variable, is taken out."""

    def mutation_positions(self, node):
        if _done_for_its_effect(node):
            yield (node.start_pos, node.end_pos)

    def mutate(self, node, index):
        del index
        return parso.python.tree.Keyword("pass", node.start_pos, node.get_first_leaf().prefix)

    @classmethod
    def examples(cls):
        return (Example("x += 1", "pass"), Example("f(x)", "pass"))


def _done_for_its_effect(node) -> bool:
    if node.parent is None or node.parent.type != "simple_stmt":
        return False
    if node.type == "expr_stmt":
        # `x += 1`, but not `x = 1` or `x: int = 1`, without which there would be no variable.
        return getattr(node.children[1], "value", "=") != "="
    last = node.children[-1] if node.type == "atom_expr" else None
    return last is not None and last.type == "trailer" and last.children[0].value == "("


def _separates(node) -> bool:
    """Whether it is the star of `f(**x)` or `def f(*, x)`, which multiplies nothing."""
    return (
        node.type == "operator"
        and node.value in ("*", "**", "/")
        and node.parent.type not in ("term", "power")
    )


@dataclass(frozen=True)
class Mutant:
    """Where one change is, and how it is made."""

    file: str  # relative to the checkout
    line: int
    operator: str
    occurrence: int

    def made(self, text: str) -> str:
        return str(mutate_code(text, operator_of(self.operator), self.occurrence))

    def is_python(self) -> bool:
        """Whether it compiles: Cosmic Ray makes `if not x := 1:` as well."""
        try:
            compile(self.made((ROOT / self.file).read_text()), self.file, "exec")
        except SyntaxError:
            return False
        return True


def operator_of(name: str) -> Operator:
    own = {one.__name__: one for one in (OtherNumber, NoStatement)}
    return (own.get(name) or get_operator(name))()


def not_computed(file: str, text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where annotations and decorators stand, what only tells of errors, and how
    searches continue."""
    found: list[ast.expr] = []
    searches = next((names for end, names in SEARCHES.items() if file.endswith(end)), set())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and _names(node.targets[0]) & searches:
            found.append(node.value)
        if isinstance(node, ast.Call) and file.endswith("model/terms.py"):
            found += node.args[2:3] if _names(node.func) & GUESSED else []
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            found.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found += node.decorator_list
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            found.append(node.returns)
        if isinstance(node, ast.keyword) and node.arg in ("strict", "xtol"):
            found.append(node.value)
        # Another seed is as good.
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "default_rng":
            found += node.args
    return [
        ((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0))
        for one in found
    ]


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def mutants_of(file: str) -> Iterator[Mutant]:
    """All mutants of a source file."""
    text = (ROOT / file).read_text()
    left_out = not_computed(file, text)
    nodes = list(ast_nodes(get_ast(text)))
    stars = {node.start_pos for node in nodes if _separates(node)}
    for name in (*OPERATORS, "OtherNumber", "NoStatement"):
        operator = operator_of(name)
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(places):
            if start not in stars and not any(one <= start < end for one, end in left_out):
                yield Mutant(file, start[0], name, occurrence)
