"""Programs of Keras on JAX: jaxprs, traced as the model computes and evaluated with float64 in place of shorter floats.

JAX has float64 while it is switched on, in this thread alone (`jax.enable_x64`); Keras on JAX never switches it on, and
casts what it is given. So Keras is traced as it is, by `jax.make_jaxpr`, and the operations of the jaxpr are applied
to float64 numbers, one by one, inside `jax.jit`. The pullback is a jaxpr of its own: `jax.vjp` resolves the rules of
functions with gradients of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .autograd import Call, Lookups, Shown, State
from .traced import no_double

_SHORT = ("float32", "float16", "bfloat16")


class JaxProgram:
    """The program of a call, compiled for 16, 64, 256... rows at the first call with that many."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.masks = False
        self._lock = Lock()
        self._made: dict[tuple[str, int], Any] = {}

    def __call__(self, variables: Any, tensors: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return self._ask("value", self._value, variables, tensors)

    def slopes(self, variables: Any, tensors: Any, cotangents: Any) -> list[NDArray[Any] | None]:
        slopes = iter(self._ask("slopes", self._slopes, variables, tensors, cotangents))
        return [None if whole else next(slopes) for whole in self.call.whole]

    def show(self, variables: Any, tensors: Sequence[NDArray[Any]]) -> Shown:
        """Run the traced program once in float64: the shapes of its outputs and its look-ups."""
        import jax

        with in_double():
            given = [jax.numpy.asarray(t) for t in tensors]
        traced = self._traced(self._value, variables, given)
        sizes: list[int] = []

        def run(*values: Any) -> Any:
            lookups: Lookups = []
            outputs = evaluate(traced.jaxpr, traced.consts, values, lookups)
            sizes[:] = [size for size, _ in lookups]
            return outputs, [codes for _, codes in lookups]

        with in_double():
            outputs, codes = jax.jit(run)(*jax.tree.leaves((variables, given)))
        lookups = list(zip(sizes, map(np.asarray, codes), strict=True))
        return Shown([tuple(out.shape) for out in outputs], lookups, self.masks)

    def variables(self, state: State) -> Any:
        """The model's state in float64."""
        import jax

        with in_double():
            return [jax.numpy.asarray(v) for v in state]

    def _ask(self, kind: str, function: Callable[..., Any], variables: Any, *groups: Any) -> list[Any]:
        """The outputs of a function of the rows; the last row is repeated up to the next power of four.

        JAX compiles for every number of rows anew, which takes longer than to compute a few rows too many.
        """
        import jax

        rows = len(groups[0][0])
        size = 16
        while size < rows:
            size *= 4
        with in_double():
            padded = [[jax.numpy.asarray(_padded(t, size)) for t in group] for group in groups]
        key = (kind, size)
        with self._lock:
            if key not in self._made:
                self._made[key] = _compiled(self._traced(function, variables, *padded))
        with in_double():
            outputs = self._made[key](*jax.tree.leaves((variables, *padded)))
        return [np.asarray(out)[:rows] if out.shape[:1] == (size,) else np.asarray(out) for out in outputs]

    def _traced(self, function: Callable[..., Any], variables: Any, *groups: Any) -> Any:
        """The jaxpr of a function as the model computes it, in the dtypes of its own variables."""
        import jax

        own = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in self.call.evaluated.variables]
        given = [[jax.ShapeDtypeStruct(t.shape, "int32" if _is_whole(t) else "float32") for t in g] for g in groups]
        return jax.make_jaxpr(function)(own, *given)

    def _value(self, variables: Any, tensors: Any) -> list[Any]:
        outputs = self.call.outputs(variables, tensors)
        self.masks = any(getattr(out, "_keras_mask", None) is not None for out in outputs)
        return outputs

    def _slopes(self, variables: Any, tensors: Any, cotangents: Any) -> Any:
        """The pullback of the outputs' cotangents to the inputs that are not whole numbers."""
        import jax

        def smooth(*numbers: Any) -> list[Any]:
            found = iter(numbers)
            read = [t if _is_whole(t) else next(found) for t in tensors]
            return self.call.outputs(variables, read)

        outputs, back = jax.vjp(smooth, *(t for t in tensors if not _is_whole(t)))
        given = [
            np.zeros(out.shape, jax.dtypes.float0) if _is_whole(out) else c.astype(out.dtype)
            for out, c in zip(outputs, cotangents, strict=True)
        ]
        return back(given)


def _is_whole(tensor: Any) -> bool:
    import jax

    return not jax.numpy.issubdtype(tensor.dtype, jax.numpy.floating)


def _padded(tensor: NDArray[Any], size: int) -> NDArray[Any]:
    last = tensor[-1:] if len(tensor) else np.zeros((1, *tensor.shape[1:]), tensor.dtype)
    return np.concatenate([tensor, np.repeat(last, size - len(tensor), axis=0)])


def in_double() -> Any:
    """A context in which JAX has float64."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # before JAX 0.8

    return enable_x64()


def _compiled(traced: Any) -> Any:
    import jax

    return jax.jit(lambda *values: evaluate(traced.jaxpr, traced.consts, values))


# ---------------------------------------------------------------- jaxprs in float64


def evaluate(jaxpr: Any, consts: Sequence[Any], values: Sequence[Any], lookups: Lookups | None = None) -> list[Any]:
    """The outputs of a jaxpr, in float64; table lookups are appended to `lookups`."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_wide, consts), strict=True))
    known.update(zip(jaxpr.invars, values, strict=True))

    def read(atom: Any) -> Any:
        return _wide(atom.val, atom.aval.dtype) if hasattr(atom, "val") else known[atom]

    for equation in jaxpr.eqns:
        outputs = _applied(equation, [read(atom) for atom in equation.invars], lookups)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _applied(equation: Any, values: list[Any], lookups: Lookups | None) -> Sequence[Any]:
    """The outputs of one equation of a traced program, in float64, with what is inside of it."""
    name, params = equation.primitive.name, equation.params
    if name in _CALLS:
        inner = next(params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in params)
        return _inside(inner, lookups)(*values)
    if name in _LOOPS:
        return list(_LOOPS[name](params, values))
    if name == "reduce_precision":
        return values
    if name == "bitcast_convert_type" or name.endswith("callback") or any(map(_has_jaxpr, params.values())):
        raise no_double(f"the operation {name}")
    if name == "gather" and lookups is not None:
        _note_lookup(params, values[0], values[1], lookups)
    answer = equation.primitive.bind(*values, **{key: _wide_type(v) for key, v in params.items()})
    outputs = answer if equation.primitive.multiple_results else [answer]
    if any(str(out.dtype) in _SHORT for out in outputs):
        raise no_double(f"the operation {name}")
    return outputs


_CALLS = (
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr",
)  # fmt: skip


def _inside(inner: Any, lookups: Lookups | None = None) -> Callable[..., list[Any]]:
    """A jaxpr inside another as a function; some carry their constants with them."""
    jaxpr, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())
    return lambda *values: evaluate(jaxpr, consts, values, lookups)


def _scan(params: Mapping[str, Any], values: list[Any]) -> list[Any]:
    """A scan whose body runs in float64."""
    import jax

    first, last = params["num_consts"], params["num_consts"] + params["num_carry"]
    inner = _inside(params["jaxpr"])

    def step(carry: Any, x: Any) -> Any:
        outputs = inner(*values[:first], *carry, *x)
        return outputs[: params["num_carry"]], outputs[params["num_carry"] :]

    options = {key: params[key] for key in ("length", "reverse", "unroll")}
    carry, collected = jax.lax.scan(step, values[first:last], values[last:], **options)
    return [*carry, *collected]


def _while(params: Mapping[str, Any], values: list[Any]) -> Any:
    """A while loop whose condition and body run in float64."""
    import jax

    first, last = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    goes_on, body = _inside(params["cond_jaxpr"]), _inside(params["body_jaxpr"])
    return jax.lax.while_loop(
        lambda carry: goes_on(*values[:first], *carry)[0],
        lambda carry: body(*values[first:last], *carry),
        values[last:],
    )


def _cond(params: Mapping[str, Any], values: list[Any]) -> Any:
    import jax

    return jax.lax.switch(values[0], [_inside(branch) for branch in params["branches"]], *values[1:])


_LOOPS: dict[str, Callable[[Mapping[str, Any], list[Any]], Any]] = {"scan": _scan, "while": _while, "cond": _cond}


def _note_lookup(params: Mapping[str, Any], table: Any, codes: Any, lookups: Lookups) -> None:
    """Append a lookup of whole rows of a table to `lookups`."""
    numbers = params["dimension_numbers"]
    if table.ndim == 2 and numbers.start_index_map == (0,) and params["slice_sizes"] == (1, table.shape[1]):
        lookups.append((table.shape[0], codes))


def _has_jaxpr(param: Any) -> bool:
    return hasattr(param, "eqns") or (isinstance(param, (tuple, list)) and any(map(_has_jaxpr, param)))


def _wide_type(param: Any) -> Any:
    """A parameter of an operation; types of shorter floats as float64."""
    name = getattr(param, "name", None) if isinstance(param, np.dtype) else getattr(param, "__name__", None)
    if isinstance(param, np.dtype) or (isinstance(param, type) and issubclass(param, np.generic)):
        return np.dtype(_wide_name(name)) if name in (*_SHORT, "complex64") else param
    return param


def _wide_name(name: str | None) -> str:
    return "complex128" if name == "complex64" else "float64"


def _wide(value: Any, dtype: Any = None) -> Any:
    """A constant of a jaxpr; shorter floats as float64."""
    name = str(getattr(value, "dtype", dtype) if dtype is None else dtype)
    if name in (*_SHORT, "complex64"):
        return np.asarray(value).astype(_wide_name(name))
    return value if dtype is None or hasattr(value, "dtype") else np.asarray(value, dtype)
