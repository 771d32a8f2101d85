"""One small language for every model: a graph of trees, smooth layers and column encoders."""

from .assembly import Tree, assemble
from .between import Between
from .columns import Column
from .discrete import Choice, Evidence, decide, under
from .encode import Fill, IsMissing, Lookup
from .kernel_machine import Factor, KernelMachine
from .median import WeightedMedian
from .merge import merge
from .model import Graph, Transform
from .node import Array, Concat, Input, Move, Node, Select, Smooth, evaluate, needed, topological, value_of
from .normalize import Normalized
from .polynomials import PiecewisePolynomial
from .rewire import attach, rewire
from .row_steps import ChainedFill, UnitRows
from .shares import LogSoftmax, Shares, Softmax
from .smooth import Affine, Elementwise, Opaque, PiecewiseLinear, Product, Sum
from .switch import Switch, switched
from .targets import Opposite, Times
from .trees import TreeEnsemble
from .witness import Scores, Witness, own_values, rounding_above, scores_of

__all__ = [
    "Affine",
    "Array",
    "Between",
    "ChainedFill",
    "Choice",
    "Column",
    "Concat",
    "Elementwise",
    "Evidence",
    "Factor",
    "Fill",
    "Graph",
    "Input",
    "IsMissing",
    "KernelMachine",
    "LogSoftmax",
    "Lookup",
    "Move",
    "Node",
    "Normalized",
    "Opaque",
    "Opposite",
    "PiecewiseLinear",
    "PiecewisePolynomial",
    "Product",
    "Scores",
    "Select",
    "Shares",
    "Smooth",
    "Softmax",
    "Sum",
    "Switch",
    "Times",
    "Transform",
    "Tree",
    "TreeEnsemble",
    "UnitRows",
    "WeightedMedian",
    "Witness",
    "assemble",
    "attach",
    "decide",
    "evaluate",
    "merge",
    "needed",
    "own_values",
    "rewire",
    "rounding_above",
    "scores_of",
    "switched",
    "topological",
    "under",
    "value_of",
]
