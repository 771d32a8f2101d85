"""The operators of an ONNX model, traversed from its inputs to its score.

Operators on single columns are kept as steps of those columns, so that trees behind a scaler or an encoder become trees
on the raw columns; the first operator that mixes columns reads numbers. So the model is traversed twice: once to see
which columns are read as numbers, and once to build the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import CorruptModelError, UnsupportedModelError
from ...graph import Affine, Column, Concat, Elementwise, Graph, Input, Node, Opposite, Select, Softmax
from ..common.links import class_left_out, class_outputs, plain_outputs
from ..pipeline.importer import behind
from ..pipeline.steps import Present, Single
from ..pipeline.table import Derived, Feature
from .columns import COLUMNWISE
from .common import any_shape, node_of
from .distances import as_numbers, followed
from .folding import FOLDED, folded
from .layers import LAYERS
from .medians import with_medians
from .proto import Model, Operator, unsupported
from .score_steps import class_number
from .shape import Shape
from .trees import TREES
from .values import Cells, Dims, Distances, Fixed, Labels, Numbers, Value, shape_of

OPERATORS = tuple(sorted({*COLUMNWISE, *LAYERS, *TREES, "Constant"}))
"""The supported operators."""

_TWO_OUTPUTS = ("TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier")  # the class, and its scores


@dataclass(frozen=True, eq=False)
class Read:
    """The result of reading a model: its graph without a witness, and how to get the model's own prediction.

    Attributes
    ----------
    asked : bytes
        The model with the score as its only output, named `score_name`.
    picked : tuple of int
        The columns of that output that are explained.
    axis : int
        The axis of that output which counts rows.
    """

    graph: Graph
    asked: bytes
    score_name: str
    picked: tuple[int, ...]
    axis: int = 0


def read_network(model: Model) -> Read:
    """The graph of a model."""
    name, zipped = _score(model)
    operators = with_medians(_needed(model, name), model.constants)
    slots = _Slots()
    first = _walk(model, operators, slots, None, {})
    if isinstance(last := first.get(name), Cells):  # the score is made of columns
        slots.add(last, missing=False)
    inner_input = Input(len(slots.features))
    found = _walk(model, operators, slots, inner_input, first).get(name)
    if isinstance(found, Cells):
        found = slots.numbers(found, inner_input)
    source = zipped if zipped is not None else name
    if isinstance(found, Fixed) and found.repeated:
        return _same_for_all(model, found, source)
    if not isinstance(found, Numbers):
        raise UnsupportedModelError(f"The output {name!r} of this ONNX model does not depend on its inputs.")
    shape = shape_of(any_shape(operators[-1], found))
    if shape.lead != 1 or (shape.joined and shape.axis):
        raise UnsupportedModelError(
            f"The output {name!r} of this ONNX model must have an axis for its rows; it is {shape}."
        )
    return _as_read(model, found, shape, slots, inner_input, source)


def _same_for_all(model: Model, found: Fixed, asked: str) -> Read:
    """The graph of a model that gives the same score for every row: a classifier that has seen one class."""
    score = found.numbers().ravel()
    names, named = _raw_names(model)
    source = Input(len(names))
    node = Affine(source, np.zeros((len(score), len(names))), score)
    outputs = class_outputs(list(found.classes)) if len(found.classes) == len(score) else plain_outputs(len(score))
    columns = tuple(Column(n, kind="unused") for n in names)
    graph = Graph(columns, source, node, node, outputs, named=named, label=model.name)
    return Read(graph, _with_output(model, asked), asked, tuple(range(len(score))))


def _as_read(model: Model, found: Numbers, shape: Shape, slots: _Slots, source: Input, asked: str) -> Read:
    """The graph of what was found at the output, with names, margin and classes."""
    score, classes = found.node, found.classes
    picked, opposite = tuple(range(score.width)), None
    names = _by_target(shape)
    if classes is not None and len(classes) == score.width:
        names = class_outputs(list(classes))
        opposite = class_left_out(list(classes)) if len(classes) == 2 else None
        picked = picked[-len(names) :]
        score = score if len(names) == score.width else _picked(score, picked[0])
    margin = score.parents[0] if isinstance(score, Softmax) or _is_sigmoid(score) else score
    if opposite is not None and margin is score:
        opposite = Opposite(opposite.names, 1.0, 1.0)
    columns = tuple(Column(f"c{j}", missing=m) for j, m in enumerate(slots.missing))
    inner = Graph(columns, source, score, margin, names, label=model.name, opposite=opposite)
    raw, named = _raw_names(model)
    graph = behind(inner, slots.features, False, raw, named, (), ())
    return Read(graph, _with_output(model, asked), asked, picked, shape.axis)


def _by_target(shape: Shape) -> tuple[str, ...]:
    """The names of scores without classes: their numbers; with targets before the rows, those of target and score."""
    if int(np.prod(shape.before)) == 1 or shape.joined:
        return plain_outputs(shape.size)
    places = np.ndindex(*shape.before, *shape.after)
    return tuple(": ".join(map(str, place)) for place in places)


def _is_sigmoid(node: Node) -> bool:
    return isinstance(node, Elementwise) and node.name == "sigmoid"


def _picked(node: Node, column: int) -> Node:
    """One column of a node; of concatenated nodes, the one that it belongs to, if that has one column."""
    if isinstance(node, Concat):
        for part in node.parents:
            if column < part.width:
                return part if part.width == 1 else Select(part, (column,))
            column -= part.width
    return Select(node, (column,))


# ---------------------------------------------------------------- the traversal


class _Slots:
    """The distinct columns that are read as numbers: the input of the model's nodes."""

    def __init__(self) -> None:
        self.features: list[Feature] = []
        self.missing: list[bool] = []  # whether all operators that read it accept missing values
        self._place: dict[tuple[Any, ...], int] = {}

    def add(self, cells: Cells, missing: bool) -> list[int]:
        """The positions of some columns, which are added if they are new."""
        if cells.type == "string":
            raise UnsupportedModelError("Text must be encoded (OneHotEncoder, LabelEncoder) before numbers are read.")
        places = []
        for feature in cells.features:
            bare = _bare(feature)
            key = (bare.column, *map(id, bare.steps)) if isinstance(bare, Derived) else (id(bare),)
            if key not in self._place:
                self._place[key] = len(self.features)
                self.features.append(bare)
                self.missing.append(True)
            place = self._place[key]
            self.missing[place] &= missing
            places.append(place)
        return places

    def numbers(self, cells: Cells, source: Input, missing: bool = False) -> Numbers:
        """Columns as numbers."""
        places = tuple(self.add(cells, missing))
        return Numbers(source if places == tuple(range(source.width)) else Select(source, places), None, cells.shape)


def _bare(feature: Feature) -> Feature:
    """A column without a last cast to float32, which its reader repeats."""
    if isinstance(feature, Derived) and feature.steps and isinstance(feature.steps[-1], Single):
        before = feature.steps[:-1]
        if all(isinstance(s, Present) for s in before):
            return Derived(feature.column, before)
    return feature


def _reads_single(cells: Cells) -> list[bool]:
    """Which raw columns trees compare in float32; columns with steps are float32 numbers already."""
    return [
        cells.type != "float64"
        and isinstance(bare := _bare(f), Derived)
        and all(isinstance(s, Present) for s in bare.steps)
        for f in cells.features
    ]


def _walk(
    model: Model,
    operators: Sequence[Operator],
    slots: _Slots,
    source: Input | None,
    columns: Mapping[str, Value | None],
) -> dict[str, Value | None]:
    """The output of every operator; without a source only columns are followed, and those that are read are noted.

    `columns` is the result of such a first traversal.
    """
    known: dict[str, Value | None] = {name: Fixed(array) for name, array in model.constants.items()}
    known.update(_given(model))
    for operator in operators:
        values: list[Value | None] = []
        for name in operator.inputs:
            if name == "":
                continue
            if name not in known:
                raise CorruptModelError(f"{operator.kind} reads {name!r}, which no earlier operator outputs.")
            values.append(known[name])
        found = next((columns[n] for n in operator.outputs if isinstance(columns.get(n), (Cells, Fixed, Dims))), None)
        if found is None:
            found = _applied(operator, values, slots, source)
        second = operator.kind in _TWO_OUTPUTS or operator.kind == "Scan"
        places = operator.outputs[1:2] if second else operator.outputs
        if operator.kind in _TWO_OUTPUTS:
            scores = found if isinstance(found, Numbers) else None
            known[operator.outputs[0]] = Labels(scores, () if scores is None else scores.classes or ())
        for name in places[:1]:
            if name in known and name:
                raise CorruptModelError(f"Two operators of this ONNX model give {name!r}.")
            known[name] = found
    return known


def _applied(operator: Operator, values: Sequence[Value | None], slots: _Slots, source: Input | None) -> Value | None:
    """The output of an operator; None if it cannot be computed yet, while `source` is not known."""
    kind = operator.kind
    if kind == "Constant":
        return Fixed(np.asarray(next(iter(operator.attributes.values()))))
    if kind not in COLUMNWISE and kind not in LAYERS and kind not in TREES:
        raise UnsupportedModelError(
            f"The operator {kind} of this ONNX model is not supported. Supported are {', '.join(OPERATORS)}."
        )
    if kind in FOLDED and values and all(isinstance(v, Fixed) for v in values):
        return folded(operator, [v for v in values if isinstance(v, Fixed)])
    trees = kind in TREES
    given = [v for v in values if v is not None]
    if source is None:
        known = len(given) == len(values) and not any(isinstance(v, Labels) for v in given)
        found = COLUMNWISE[kind](operator, given) if kind in COLUMNWISE and known else None
        for value in given if found is None else ():
            if isinstance(value, Cells):
                slots.add(value, missing=trees)
        return found
    distances = followed(operator, given)
    if distances is not None:
        return distances
    ready = [_ready(v, slots, source, trees) for v in given]
    if kind in COLUMNWISE:
        found = COLUMNWISE[kind](operator, ready)
        if found is not None:
            return found
    if trees:
        node = ready[0]
        read = node_of(operator, node)
        first = values[0]
        single = _reads_single(first) if isinstance(first, Cells) else [False] * read.width
        return TREES[kind](operator, read, single)
    if kind not in LAYERS:
        raise unsupported(f"{kind} of computed numbers")
    return LAYERS[kind](operator, ready)


def _ready(value: Value, slots: _Slots, source: Input, missing: bool) -> Value:
    """A value as operators on numbers read it."""
    if isinstance(value, Cells):
        return slots.numbers(value, source, missing)
    if isinstance(value, Labels):
        return class_number(value)
    return as_numbers(value) if isinstance(value, Distances) else value


def _given(model: Model) -> Mapping[str, Value]:
    """Each input's columns, with the cast to the type that the model reads them in."""
    out: dict[str, Value] = {}
    first = 0
    for given in model.inputs:
        features: tuple[Feature, ...] = tuple(Derived(j) for j in range(first, first + given.width))
        cells = Cells(features, given.type, Shape() if given.flat else None)
        if given.type == "float32":
            cells = replace(cells, features=tuple(Derived(j, (_SINGLE,)) for j in range(first, first + given.width)))
        elif given.type not in ("float64", "string"):  # integers, which cannot be missing
            cells = replace(cells, features=tuple(Derived(j, (_PRESENT,)) for j in range(first, first + given.width)))
        out[given.name] = cells
        first += given.width
    return out


_SINGLE, _PRESENT = Single(), Present()


# ---------------------------------------------------------------- inputs and outputs


def _raw_names(model: Model) -> tuple[list[str], bool]:
    """The names of the raw columns, and whether they are the model's own."""
    widths = [g.width for g in model.inputs]
    if len(widths) == 1:
        (given,) = model.inputs
        return ([given.name] if given.width == 1 else [f"x{j}" for j in range(given.width)]), False
    names = [g.name if g.width == 1 else f"{g.name}_{j}" for g in model.inputs for j in range(g.width)]
    return names, all(w == 1 for w in widths)


def _score(model: Model) -> tuple[str, str | None]:
    """The name of the output to explain, and of the array that a ZipMap turns into dicts, if there is one.

    Outputs of predicted classes are skipped.
    """
    maps = [name for name, type in model.outputs if type in ("maps", "tensors")]
    numbers = [name for name, type in model.outputs if type in ("float32", "float64", "unknown")]
    chosen = maps or numbers
    if len(chosen) != 1:
        raise UnsupportedModelError(
            f"An ONNX model must have one output of numbers to be explained; this one has {len(chosen)} "
            f"({', '.join(name for name, _ in model.outputs)}). Cut the others off with onnx.utils.extract_model."
        )
    makers = [o for o in model.operators if chosen[0] in o.outputs]
    if makers and makers[0].kind == "ZipMap":
        return chosen[0], makers[0].inputs[0]
    return chosen[0], None


def _needed(model: Model, name: str) -> list[Operator]:
    """The operators that an output depends on, in the model's order, which must be topological."""
    wanted, found = {name}, list[Operator]()
    for operator in reversed(model.operators):
        if wanted & set(operator.outputs):
            found.append(operator)
            wanted |= set(operator.inputs)
    return found[::-1]


def _with_output(model: Model, name: str) -> bytes:
    """The model with one output, a tensor."""
    import onnx

    message = onnx.ModelProto.FromString(model.content)
    declared = {v.name: v for v in message.graph.output}
    type_ = declared[name].type.tensor_type.elem_type if name in declared else 1  # 0 for a sequence
    for value in message.graph.input:
        if any(g.name == value.name and g.only_cast for g in model.inputs):
            value.type.tensor_type.elem_type = 1
    wanted = {tuple(o.outputs) for o in _needed(model, name)}  # the other operators need not run, and may fail
    kept = [n for n in message.graph.node if tuple(n.output) in wanted]
    for node in kept:
        if node.op_type == "SequenceConstruct" and name in node.output:  # one tensor, with the parts as columns
            node.op_type = "Concat"
            node.attribute.append(onnx.helper.make_attribute("axis", 1))
    del message.graph.node[:]
    message.graph.node.extend(kept)
    del message.graph.output[:]
    message.graph.output.append(onnx.helper.make_tensor_value_info(name, type_ or 1, None))
    return bytes(message.SerializeToString())
