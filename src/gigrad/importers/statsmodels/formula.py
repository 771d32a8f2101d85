"""patsy's formulas: every column of a design matrix as a product of factors, each a node over the raw columns."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import UnsupportedModelError
from ...graph import Affine, Column, Concat, Elementwise, Input, Lookup, Node, Product, Select, Sum

_FUNCTIONS = {
    "log": "log", "log1p": "log1p", "exp": "exp", "expm1": "expm1", "sqrt": "sqrt", "abs": "abs", "square": "square",
    "tanh": "tanh",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Design:
    """The design matrix of a model as a node over its columns; `formula`: whether rows are passed as a table."""

    columns: tuple[Column, ...]
    source: Input
    node: Node
    named: bool
    formula: bool


def design_of(model: Any) -> Design | None:
    """The design of a model that was given as a formula; None for one that was given as a matrix."""
    if getattr(model, "formula", None) is None:
        return None
    info = getattr(model.data, "model_spec", None) or getattr(model.data, "design_info", None)
    if not type(info).__module__.startswith("patsy"):
        raise UnsupportedModelError(
            f"The formula {model.formula!r} must have been parsed by patsy to be imported; it was not. Fit on a matrix "
            "instead: sm.GLM(y, X)."
        )
    return _Read(info).design()


class _Read:
    """patsy's description of a design matrix."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self.trees = {factor: _parsed(factor.code) for factor in info.factor_infos}
        self.read = {factor: _names(tree) for factor, tree in self.trees.items()}
        self.order = list(dict.fromkeys(n for names in self.read.values() for n in names))
        self.labels = self._labels()
        self.source = Input(len(self.order))

    def _labels(self) -> dict[str, tuple[Any, ...]]:
        """Columns that are categories, with their labels."""
        found: dict[str, tuple[Any, ...]] = {}
        for factor, info in self.info.factor_infos.items():
            if info.type != "categorical":
                continue
            name = _category(self.trees[factor], factor.code)
            found[name] = tuple(info.categories)
        for factor, info in self.info.factor_infos.items():
            both = [n for n in self.read[factor] if n in found and info.type != "categorical"]
            if both:
                raise UnsupportedModelError(
                    f"The formula reads {both[0]!r} as a number and as a category; give it two columns instead."
                )
        return found

    def design(self) -> Design:
        """The columns of the design matrix, computed from raw columns."""
        columns = tuple(
            Column(n, "category", self.labels[n], missing=False, unknown="refuse")
            if n in self.labels
            else Column(n, missing=False)
            for n in self.order
        )
        parts: list[Node] = []
        for subterms in self.info.term_codings.values():
            for subterm in subterms:
                parts += self._columns(subterm)
        node = parts[0] if len(parts) == 1 else Concat(tuple(parts))
        return Design(columns, self.source, node, True, True)

    def _columns(self, subterm: Any) -> list[Node]:
        """The columns of a product of factors; the index of the first factor varies fastest."""
        factors = [self._factor(f, subterm.contrast_matrices.get(f)) for f in subterm.factors]
        if not factors:
            return [Affine(self.source, np.zeros((1, self.source.width)), np.ones(1))]
        out: list[Node] = []
        for chosen in itertools.product(*(range(f.width) for f in reversed(factors))):
            each = [_one(f, k) for f, k in zip(factors, reversed(chosen), strict=True)]
            node = each[0]
            for other in each[1:]:
                node = Product(node, other)
            out.append(node)
        return out

    def _factor(self, factor: Any, contrast: Any) -> Node:
        """A factor of a formula: the coded levels of a category, or a formula of numbers."""
        tree = self.trees[factor]
        if contrast is not None:
            name = _category(tree, factor.code)
            table = np.asarray(contrast.matrix, np.float64)
            nothing = np.full(table.shape[1], np.nan)
            return Lookup(self.source, self.order.index(name), table, nothing, nothing)
        if self.info.factor_infos[factor].num_columns != 1:
            raise _refused(factor.code)
        return self._node(tree, factor.code)

    def _node(self, tree: ast.expr, code: str) -> Node:
        """The node of an expression of columns and numbers."""
        match tree:
            case ast.Name(id=name):
                return Select(self.source, (self.order.index(name),))
            case ast.Call(func=function, args=[argument], keywords=[]):
                name = _function(function)
                if name == "I":
                    return self._node(argument, code)
                if name in _FUNCTIONS:
                    return Elementwise(self._node(argument, code), _FUNCTIONS[name])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return _scaled(self._node(operand, code), -1.0, 0.0)
            case ast.BinOp(left=left, op=operator, right=right):
                return self._joined(left, operator, right, code)
        raise _refused(code)

    def _joined(self, left: ast.expr, operator: ast.operator, right: ast.expr, code: str) -> Node:
        """Two expressions joined by an operator; constants are folded into an affine node."""
        a, b = _constant(left), _constant(right)
        match operator:
            case ast.Add() | ast.Sub():
                sign = 1.0 if isinstance(operator, ast.Add) else -1.0
                if b is not None:
                    return _scaled(self._node(left, code), 1.0, sign * b)
                second = _scaled(self._node(right, code), sign, a or 0.0)
                return second if a is not None else Sum((self._node(left, code), second))
            case ast.Mult():
                if a is not None or b is not None:
                    return _scaled(self._node(left if b is not None else right, code), b if b is not None else a or 0.0)
                return Product(self._node(left, code), self._node(right, code))
            case ast.Div():
                if b is not None:
                    return _scaled(self._node(left, code), 1.0 / b)
                below = Elementwise(self._node(right, code), "reciprocal")
                return _scaled(below, a) if a is not None else Product(self._node(left, code), below)
            case ast.Pow() if b is not None and b == int(b) and 1 <= b <= 8:
                node = out = self._node(left, code)
                for _ in range(int(b) - 1):
                    out = Elementwise(node, "square") if out is node else Product(out, node)
                return out
        raise _refused(code)


def _parsed(code: str) -> ast.expr:
    """The syntax tree of a factor."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, RecursionError):
        raise _refused(code) from None


def _refused(code: str) -> UnsupportedModelError:
    """The error for a factor that is not supported."""
    return UnsupportedModelError(
        f"The factor {code!r} of the formula is not supported; supported are columns, C(column), I(...), sums, "
        f"products, quotients and whole powers of them, and {', '.join(f'np.{n}' for n in _FUNCTIONS)}. Compute it as "
        "a column of the table, or use a scikit-learn pipeline (SplineTransformer, StandardScaler) instead."
    )


def _function(tree: ast.expr) -> str:
    """The name of a function, of NumPy's too; empty for anything else."""
    match tree:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name):
            return name
    return ""


def _names(tree: ast.expr) -> list[str]:
    """The columns that an expression reads: names, but for those of functions and modules."""
    called = {id(n) for node in ast.walk(tree) if isinstance(node, ast.Call) for n in ast.walk(node.func)}
    return [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called and n.id not in _CONTRASTS]


_CONTRASTS = ("Treatment", "Sum", "Poly", "Diff", "Helmert")


def _category(tree: ast.expr, code: str) -> str:
    """The column of a categorical factor: a name, or C(name, ...)."""
    match tree:
        case ast.Name(id=name):
            return name
        case ast.Call(func=ast.Name(id="C"), args=[ast.Name(id=name), *_]):
            return name
    raise _refused(code)


def _constant(tree: ast.expr) -> float | None:
    """The number that an expression is; None if it is none."""
    match tree:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -float(value)
    return None


def _scaled(node: Node, factor: float, shift: float = 0.0) -> Node:
    return Affine(node, np.array([[factor]]), np.array([shift]))


def _one(node: Node, column: int) -> Node:
    return node if node.width == 1 else Select(node, (column,))
