"""Programs of Keras on TensorFlow: graphs of tf.function, with every shorter float in them turned into float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import UnsupportedModelError
from .autograd import Call, Lookups, Shown, State
from .traced import no_double

_COPIES = count()  # numbers the names of functions, which must be unique in the process


class TensorFlowProgram:
    """The program of a call, traced at the first call, for any number of rows."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.masks = False
        self._lock = Lock()
        self._made: dict[str, Any] = {}

    def __call__(self, variables: Any, tensors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        outputs: list[NDArray[Any]]
        outputs, lookups = self._program("value")(variables, tensors)
        return outputs[: len(outputs) - len(lookups)]

    def slopes(self, variables: Any, tensors: Any, cotangents: Any) -> list[NDArray[Any] | None]:
        found, _ = self._program("slopes", [c.shape[1:] for c in cotangents])(variables, [*tensors, *cotangents])
        slopes = iter(found)
        return [None if whole else next(slopes) for whole in self.call.whole]

    def show(self, variables: Any, tensors: Sequence[NDArray[Any]]) -> Shown:
        """Run the program once in float64: the shapes of its outputs, its look-ups, and whether there are masks."""
        outputs, sizes = self._program("value")(variables, tensors)
        first = len(outputs) - len(sizes)
        lookups: Lookups = list(zip(sizes, outputs[first:], strict=True))
        return Shown([out.shape for out in outputs[:first]], lookups, self.masks)

    def variables(self, state: State) -> Any:
        import tensorflow as tf

        return [tf.constant(v) for v in state]

    def _program(self, kind: str, cotangents: Any = ()) -> Any:
        """The program for values or slopes, rewritten to float64 when it is first needed."""
        with self._lock, _plain_errors():
            if kind not in self._made:
                traced = self._traced(self._value) if kind == "value" else self._traced(self._slopes, cotangents)
                self._made[kind] = _InDouble(traced, kind == "value")
            return self._made[kind]

    def _traced(self, function: Callable[..., Any], more: Iterable[Any] = ()) -> Any:
        """The graph of a function over the model's variables, inputs and `more` tensors, for any number of rows."""
        import tensorflow as tf

        variables = [tf.TensorSpec(v.shape, v.dtype) for v in self.call.evaluated.variables]
        kinds = [tf.int32 if whole else tf.float32 for whole in self.call.whole]
        tensors = [tf.TensorSpec((None, *s), kind) for s, kind in zip(self.call.shapes, kinds, strict=True)]
        others = [tf.TensorSpec((None, *shape), tf.float32) for shape in more]
        return tf.function(function, autograph=False).get_concrete_function(variables, tensors, others)

    def _value(self, variables: Any, tensors: Any, _: Any) -> list[Any]:
        outputs = self.call.outputs(variables, tensors)
        self.masks = any(getattr(out, "_keras_mask", None) is not None for out in outputs)
        return outputs

    def _slopes(self, variables: Any, tensors: Any, cotangents: Any) -> list[Any]:
        """The pullback of the outputs' cotangents to the inputs that are not whole numbers."""
        import tensorflow as tf

        read = [t for t in tensors if t.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(read)
            outputs = self.call.outputs(variables, tensors)
        smooth = [(out, tf.cast(c, out.dtype)) for out, c in zip(outputs, cotangents, strict=True) if _is_float(out)]
        targets, given = [out for out, _ in smooth], [c for _, c in smooth]
        slopes = tape.gradient(targets, read, given, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [tf.convert_to_tensor(s) for s in slopes]


def _is_float(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors of TensorFlow's runtime, which are of classes of its own, as RuntimeError."""
    import tensorflow as tf

    try:
        yield
    except (tf.errors.UnimplementedError, tf.errors.NotFoundError) as error:  # an operation without float64
        raise no_double(_first_line(error)) from None
    except tf.errors.OpError as error:
        raise RuntimeError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return str(getattr(error, "message", error)).strip().splitlines()[0][:200]


# ---------------------------------------------------------------- the graph in float64


class _InDouble:
    """A traced function with float64 in place of shorter floats, called with its arguments in order.

    `sizes` are the numbers of rows of tables that are looked up in; the indices that are looked up are further outputs.
    """

    def __init__(self, traced: Any, with_lookups: bool) -> None:
        import tensorflow as tf

        lookups = list(_lookups(traced.graph)) if with_lookups else []
        self.sizes = [size for size, _ in lookups]
        self.captured = [_as_constant(t) for t in traced.captured_inputs]
        definition = _doubled(traced.graph.as_graph_def(), f"_in_double_{next(_COPIES)}")
        try:
            whole = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
        except ValueError as error:  # an operation whose types float64 is not one of
            raise no_double(f"something else ({_first_line(error)})") from None
        outputs = [*(t.name for t in traced.outputs), *(codes.name for _, codes in lookups)]
        self.inputs = [whole.graph.get_tensor_by_name(t.name) for t in traced.inputs]
        self.run = whole.prune(self.inputs, [whole.graph.get_tensor_by_name(name) for name in outputs])

    def __call__(self, variables: Sequence[Any], tensors: Sequence[NDArray[Any]]) -> tuple[list[Any], list[int]]:
        import tensorflow as tf

        with _plain_errors():
            given = [*variables, *map(tf.constant, tensors), *self.captured]
            return [out.numpy() for out in self.run(*given)], self.sizes


def _lookups(graph: Any) -> Iterator[tuple[int, Any]]:
    """The tables of a graph that rows are taken from: their numbers of rows, and the tensor of the indices."""
    import tensorflow as tf

    for op in graph.get_operations():
        if op.type == "GatherV2" and op.inputs[0].shape.rank == 2 and tf.get_static_value(op.inputs[2]) == 0:
            size = op.inputs[0].shape[0]
            if size is not None:
                yield int(size), op.inputs[1]


def _as_constant(captured: Any) -> Any:
    """A tensor from outside of the function, say one that a layer holds."""
    import tensorflow as tf

    if captured.dtype in (tf.resource, tf.variant):
        raise UnsupportedModelError(
            "A layer of this Keras model reads a variable or a table that is not among its weights, so that it cannot "
            "be computed in float64. Make it a weight: self.add_weight(...) in the layer."
        )
    long = _long(captured.dtype.as_datatype_enum)
    return tf.constant(captured.numpy().astype(tf.as_dtype(long).as_numpy_dtype))


def _long(kind: int) -> int:
    """The number of a type in graphs: float64 for shorter floats, complex128 for shorter complex numbers."""
    import tensorflow as tf

    if kind in {t.as_datatype_enum for t in (tf.float16, tf.bfloat16, tf.float32)}:
        return int(tf.float64.as_datatype_enum)
    return int(tf.complex128.as_datatype_enum) if kind == tf.complex64.as_datatype_enum else kind


def _doubled(definition: Any, ending: str) -> Any:
    """A GraphDef with its types, constants and functions in float64; the functions get names of their own."""
    functions = {f.signature.name for f in definition.library.function}
    for node in definition.node:
        _double_node(node, functions, ending)
    for function in definition.library.function:
        function.signature.name += ending
        for argument in (*function.signature.input_arg, *function.signature.output_arg):
            argument.type = _long(argument.type)
            argument.ClearField("handle_data")
        for attributes in function.arg_attr.values():
            attributes.attr.pop("_output_shapes", None)
        for node in function.node_def:
            _double_node(node, functions, ending)
    return definition


def _double_node(node: Any, functions: set[str], ending: str) -> None:
    """Rewrite one operation of a graph to float64, in place; `ending` marks the rewritten functions."""
    import tensorflow as tf

    if node.op in ("Bitcast", "PyFunc", "EagerPyFunc", "PyFuncStateless"):
        raise no_double(f"the operation {node.op}")
    if node.op in functions:
        node.op += ending
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "type":
            value.type = _long(value.type)
        elif kind == "tensor" and _long(value.tensor.dtype) != value.tensor.dtype:
            wide: Any = tf.as_dtype(_long(value.tensor.dtype)).as_numpy_dtype
            value.tensor.CopyFrom(tf.make_tensor_proto(np.asarray(tf.make_ndarray(value.tensor)).astype(wide)))
        elif kind == "func":
            value.func.name += ending if value.func.name in functions else ""
        elif kind == "list":
            value.list.type[:] = [_long(t) for t in value.list.type]
            for one in value.list.func:
                one.name += ending if one.name in functions else ""
