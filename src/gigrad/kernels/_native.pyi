# Written by tests/project/stub.py from the compiled module: change the bindings, not this file.
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

def watch(callback: object | None) -> None: ...

class Forest:
    def __init__(
        self,
        arg0: int,
        arg1: NDArray[numpy.int32],
        arg2: NDArray[numpy.float64],
        arg3: NDArray[numpy.float64],
        arg4: NDArray[numpy.float64],
        arg5: NDArray[numpy.bool_],
        arg6: NDArray[numpy.float64],
        arg7: NDArray[numpy.int32],
        arg8: NDArray[numpy.int32],
        arg9: NDArray[numpy.bool_],
        arg10: NDArray[numpy.int32],
        arg11: NDArray[numpy.int32],
        arg12: NDArray[numpy.uint32],
        arg13: NDArray[numpy.int32],
        arg14: NDArray[numpy.float64],
        arg15: NDArray[numpy.int32],
        arg16: NDArray[numpy.int32],
        arg17: NDArray[numpy.float64],
        arg18: NDArray[numpy.int32],
        /,
    ) -> None: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_variables(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...
    @property
    def n_trees(self) -> int: ...
    @property
    def n_nodes(self) -> int: ...

def power(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], arg2: bool, /) -> NDArray[numpy.float64]: ...
def tanh(arg: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def sigmoid(arg: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def series(
    arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.float64], /
) -> NDArray[numpy.float64]: ...
def point_moments(
    arg0: NDArray[numpy.int64], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: int, arg4: int, /
) -> NDArray[numpy.float64]: ...
def segment_moments(
    arg0: NDArray[numpy.int64],
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: int,
    arg5: int,
    /,
) -> NDArray[numpy.float64]: ...
def between_rows(
    arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.float64], /
) -> NDArray[numpy.float64]: ...
def bend_rows(
    arg0: NDArray[numpy.float64],
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.int64],
    arg7: NDArray[numpy.float64],
    /,
) -> NDArray[numpy.float64]: ...
def suffix_products(
    arg0: NDArray[numpy.float64],
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.int64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.float64],
    /,
) -> NDArray[numpy.float64]: ...
def sum_groups(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], /) -> NDArray[numpy.float64]: ...
def add_rows(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.float64], /) -> None: ...
def add_grouped(
    arg0: NDArray[numpy.float64],
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.int64],
    arg3: NDArray[numpy.float64],
    /,
) -> None: ...
def passed_rows(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: float, /) -> tuple[Any, ...]: ...
def largest_steps(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], /) -> NDArray[numpy.float64]: ...
def speed_parts(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], /) -> tuple[Any, ...]: ...

class CornerLeaves:
    def __init__(
        self, arg0: Forest, arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: float, /
    ) -> None: ...
    def variables(self) -> NDArray[numpy.int32]: ...
    @property
    def coefficients(self) -> float: ...
    def set_players(self, arg: NDArray[numpy.int32], /) -> None: ...
    def table(self, arg0: int, arg1: int, /) -> NDArray[numpy.float64]: ...
    def set_order(self, arg0: NDArray[numpy.int32], arg1: int, /) -> None: ...
    def follow(self, arg: NDArray[numpy.int64], /) -> NDArray[numpy.float64]: ...
    def shares(self) -> NDArray[numpy.float64]: ...

class CoalitionFold:
    def __init__(self, arg0: int, arg1: int, /) -> None: ...
    def add(self, arg: NDArray[numpy.float64], /) -> None: ...
    def finish(self) -> NDArray[numpy.float64]: ...

def path_corners(
    arg0: Sequence[Forest],
    arg1: Sequence[NDArray[numpy.float64]],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.int64],
    arg6: int,
    /,
) -> tuple[Any, ...]: ...
def coalition_scores(
    arg0: Forest,
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.int32],
    arg6: int,
    /,
) -> NDArray[numpy.float64]: ...
def fold_orders(arg: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def order_groups(arg0: int, arg1: int, arg2: int, /) -> NDArray[numpy.int64]: ...
def enumerates(arg0: int, arg1: float, arg2: int, arg3: int, arg4: float, /) -> bool: ...

MAX_ENUMERATED: int = 24

STRONG_PLAYERS: int = 8

def strong_players(arg: int, /) -> int: ...

TABLE_NUMBERS: int = 1048576

class Program:
    def __init__(
        self,
        arg0: int,
        arg1: int,
        arg2: Sequence[
            tuple[
                str, int, Sequence[int], Sequence[int], NDArray[numpy.float64], NDArray[numpy.float64], str, float, bool
            ]
        ],
        arg3: int,
        arg4: int,
        /,
    ) -> None: ...

def program_functions() -> list[str]: ...
def head_moments(
    arg0: Program,
    arg1: Sequence[NDArray[numpy.float64]],
    arg2: Sequence[NDArray[numpy.int64]],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.float64],
    arg7: NDArray[numpy.float64],
    arg8: NDArray[numpy.int64],
    arg9: NDArray[numpy.float64],
    arg10: NDArray[numpy.float64],
    arg11: Sequence[
        tuple[
            NDArray[numpy.float64],
            NDArray[numpy.float64],
            NDArray[numpy.float64],
            NDArray[numpy.float64],
            NDArray[numpy.float64],
            NDArray[numpy.float64],
        ]
    ],
    arg12: NDArray[numpy.float64],
    arg13: NDArray[numpy.float64],
    arg14: NDArray[numpy.float64],
    arg15: float,
    arg16: float,
    arg17: NDArray[numpy.float64],
    arg18: NDArray[numpy.float64],
    arg19: int,
    /,
) -> tuple[Any, ...]: ...
def head_along_lines(
    arg0: Program,
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: tuple[
        NDArray[numpy.int64],
        NDArray[numpy.int64],
        NDArray[numpy.int64],
        NDArray[numpy.float64],
        NDArray[numpy.int64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        float,
        Sequence[
            tuple[
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
            ]
        ],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
    ],
    arg5: int,
    /,
) -> tuple[Any, ...]: ...
def head_along_net(
    arg0: Program,
    arg1: LineNet,
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.float64],
    arg5: tuple[
        NDArray[numpy.int64],
        NDArray[numpy.int64],
        NDArray[numpy.int64],
        NDArray[numpy.float64],
        NDArray[numpy.int64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        float,
        Sequence[
            tuple[
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
            ]
        ],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
        NDArray[numpy.float64],
    ],
    arg6: int,
    /,
) -> tuple[Any, ...]: ...
def curve_values(
    arg0: Program,
    arg1: Sequence[NDArray[numpy.float64]],
    arg2: NDArray[numpy.int64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.float64],
    arg7: NDArray[numpy.float64],
    arg8: NDArray[numpy.int64],
    arg9: float,
    arg10: float,
    arg11: int,
    /,
) -> tuple[Any, ...]: ...
def weigh_nodes(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def curve_credit(
    arg0: NDArray[numpy.float64],
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.float64],
    arg7: NDArray[numpy.float64],
    arg8: NDArray[numpy.float64],
    arg9: NDArray[numpy.float64],
    arg10: NDArray[numpy.float64],
    arg11: NDArray[numpy.float64],
    arg12: float,
    arg13: float,
    arg14: float,
    /,
) -> tuple[Any, ...]: ...

class LineNet:
    def __init__(
        self,
        arg0: Sequence[
            tuple[
                str,
                int,
                Sequence[int],
                NDArray[numpy.float64],
                NDArray[numpy.float64],
                Sequence[float],
                Sequence[tuple[int, int]],
            ]
        ],
        arg1: Sequence[int],
        /,
    ) -> None: ...

class LineTrace:
    pass

def trace_lines(
    arg0: LineNet,
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: int,
    /,
) -> tuple[Any, ...]: ...
def pull_lines_back(
    arg0: LineNet, arg1: LineTrace, arg2: NDArray[numpy.float64], arg3: int, /
) -> NDArray[numpy.float64]: ...
def piece_corners(
    arg0: NDArray[numpy.int64],
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.int64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.float64],
    /,
) -> tuple[Any, ...]: ...
def interval_kinks(
    arg0: NDArray[numpy.float64],
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.float64],
    arg7: NDArray[numpy.float64],
    /,
) -> tuple[Any, ...]: ...
def late_products(
    arg0: NDArray[numpy.float64],
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.int64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.int64],
    arg7: NDArray[numpy.int64],
    arg8: NDArray[numpy.float64],
    arg9: NDArray[numpy.float64],
    arg10: NDArray[numpy.float64],
    /,
) -> NDArray[numpy.float64]: ...
def middle_slopes(
    arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: tuple[float, float, float], /
) -> NDArray[numpy.float64]: ...
def later_rows(
    arg0: NDArray[numpy.int64],
    arg1: NDArray[numpy.int64],
    arg2: NDArray[numpy.int64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.int64],
    arg6: NDArray[numpy.float64],
    /,
) -> tuple[Any, ...]: ...
def units_between(
    arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.float64], arg3: bool, /
) -> NDArray[numpy.float64]: ...
def unit_speeds(
    arg0: NDArray[numpy.float64],
    arg1: tuple[float, float, float],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.int64],
    arg7: NDArray[numpy.float64],
    arg8: NDArray[numpy.float64],
    arg9: NDArray[numpy.float64],
    /,
) -> tuple[Any, ...]: ...
def pull_unit_ends(
    arg0: NDArray[numpy.float64],
    arg1: tuple[float, float, float],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.int64],
    arg7: NDArray[numpy.float64],
    arg8: NDArray[numpy.float64],
    /,
) -> NDArray[numpy.float64]: ...
def predict(arg0: Forest, arg1: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def credits(
    arg0: Forest, arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: int, /
) -> NDArray[numpy.float64]: ...
def credits_pairs(
    arg0: Forest, arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: int, /
) -> NDArray[numpy.float64]: ...
def jumps(
    arg0: Forest, arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: int, /
) -> tuple[Any, ...]: ...
def linear_credits(
    arg0: Forest,
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.float64],
    arg6: NDArray[numpy.int64],
    arg7: NDArray[numpy.int64],
    arg8: NDArray[numpy.float64],
    arg9: NDArray[numpy.int64],
    arg10: int,
    arg11: int,
    /,
) -> NDArray[numpy.float64]: ...
def cells(
    arg0: Forest,
    arg1: NDArray[numpy.float64],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.int64],
    arg4: NDArray[numpy.float64],
    arg5: NDArray[numpy.uint8],
    arg6: int,
    /,
) -> NDArray[numpy.float64]: ...
def linked_credits(
    arg0: Forest,
    arg1: Sequence[tuple[str, NDArray[numpy.float64], NDArray[numpy.float64]]],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.float64],
    arg5: float,
    arg6: int,
    /,
) -> tuple[Any, ...]: ...
def linked_credits_pairs(
    arg0: Forest,
    arg1: Sequence[tuple[str, NDArray[numpy.float64], NDArray[numpy.float64]]],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: float,
    arg5: int,
    /,
) -> tuple[Any, ...]: ...
def linked_credits_singly(
    arg0: Forest,
    arg1: Sequence[tuple[str, NDArray[numpy.float64], NDArray[numpy.float64]]],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: float,
    arg5: int,
    /,
) -> tuple[Any, ...]: ...
def corner_credits(
    arg0: Forest,
    arg1: Sequence[tuple[str, NDArray[numpy.float64], NDArray[numpy.float64]]],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.float64],
    arg6: int,
    /,
) -> tuple[Any, ...]: ...

class FoundCorners:
    def forget(self) -> None: ...

def sample_corners(
    arg0: Forest,
    arg1: Sequence[tuple[str, NDArray[numpy.float64], NDArray[numpy.float64]]],
    arg2: NDArray[numpy.float64],
    arg3: NDArray[numpy.float64],
    arg4: NDArray[numpy.int64],
    arg5: NDArray[numpy.int64],
    arg6: NDArray[numpy.int64],
    arg7: NDArray[numpy.float64],
    arg8: NDArray[numpy.float64],
    arg9: NDArray[numpy.int64],
    arg10: NDArray[numpy.uint64],
    arg11: NDArray[numpy.float64],
    arg12: NDArray[numpy.float64],
    found: FoundCorners | None,
    arg14: NDArray[numpy.int64],
    arg15: int,
    arg16: int,
) -> tuple[Any, ...]: ...
def link_functions() -> list[str]: ...
def shortest_decimals(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def decimals_of_float32(arg: NDArray[numpy.float64], /) -> NDArray[numpy.float64]: ...
def simd_choices() -> list[str]: ...
def get_simd() -> str: ...
def set_simd(arg: str, /) -> None: ...

DEFAULT_TARGET: float = 0.001
