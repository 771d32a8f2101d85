"""One small language for every model: a graph of trees, smooth layers and column encoders."""

from .columns import Column
from .encode import Fill, IsMissing, Lookup
from .model import Graph, Transform, Witness, pick
from .node import Array, Concat, Input, Node, Select, Smooth, evaluate, needed, topological
from .smooth import Affine, Elementwise, Opaque, PiecewiseLinear, Product, Softmax, Sum
from .trees import Tree, TreeEnsemble, assemble

__all__ = [
    "Affine",
    "Array",
    "Column",
    "Concat",
    "Elementwise",
    "Fill",
    "Graph",
    "Input",
    "IsMissing",
    "Lookup",
    "Node",
    "Opaque",
    "PiecewiseLinear",
    "Product",
    "Select",
    "Smooth",
    "Softmax",
    "Sum",
    "Transform",
    "Tree",
    "TreeEnsemble",
    "Witness",
    "assemble",
    "evaluate",
    "needed",
    "pick",
    "topological",
]
