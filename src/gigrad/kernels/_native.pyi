from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int32]

DEFAULT_TARGET: float
ROW_NUMBERS: float
STRONG_PLAYERS: int
TABLE_NUMBERS: int

class Forest:
    def __init__(
        self,
        n_columns: int,
        feature: Ints,
        threshold: Array,
        equal_low: Array,
        equal_high: Array,
        single: NDArray[np.bool_],
        place: Array,
        left: Ints,
        right: Ints,
        missing_left: NDArray[np.bool_],
        category_set: Ints,
        set_start: Ints,
        set_words: NDArray[np.uint32],
        value: Ints,
        values: Array,
        roots: Ints,
        tree_output: Ints,
        base: Array,
        variable: Ints,
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

def link_functions() -> list[str]: ...
def shortest_decimals(low: Array, high: Array) -> Array: ...
def decimals_of_float32(x: Array) -> Array: ...
def simd_choices() -> list[str]: ...
def get_simd() -> str: ...
def set_simd(name: str) -> None: ...
def watch(callback: Callable[[float], object] | None) -> None: ...
def predict(forest: Forest, x: Array) -> Array: ...
def credits(forest: Forest, starts: Array, weights: Array, ends: Array, n_threads: int) -> Array: ...
def credits_pairs(forest: Forest, starts: Array, ends: Array, n_threads: int) -> Array: ...
def linked_credits(
    forest: Forest,
    link: list[tuple[str, Array, Array]],
    starts: Array,
    weights: Array,
    ends: Array,
    target: float,
    n_threads: int,
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], Array, NDArray[np.int64]]: ...
def linked_credits_pairs(
    forest: Forest, link: list[tuple[str, Array, Array]], starts: Array, ends: Array, target: float, n_threads: int
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], Array, NDArray[np.int64]]: ...
def corner_credits(
    forest: Forest,
    link: list[tuple[str, Array, Array]],
    starts: Array,
    ends: Array,
    pair: NDArray[np.int64],
    time: Array,
    n_threads: int,
) -> tuple[Array, NDArray[np.int64]]: ...
def sample_corners(
    forest: Forest,
    link: list[tuple[str, Array, Array]],
    starts: Array,
    ends: Array,
    row: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    time: Array,
    weight: Array,
    count: NDArray[np.int64],
    seed: NDArray[np.uint64],
    n_rows: int,
    n_threads: int,
) -> Array: ...

class CornerLeaves:
    def __init__(self, forest: Forest, start: Array, end: Array, time: float) -> None: ...
    @property
    def coefficients(self) -> float: ...
    def variables(self) -> Ints: ...
    def set_players(self, variables: Ints) -> None: ...
    def table(self, bits: int, part: int) -> Array: ...
    def set_order(self, order: Ints, strong: int) -> None: ...
    def follow(self, joins: NDArray[np.int64]) -> Array: ...
    def shares(self) -> Array: ...

class CoalitionFold:
    def __init__(self, players: int, outputs: int) -> None: ...
    def add(self, values: Array) -> None: ...
    def finish(self) -> Array: ...

def coalition_scores(
    forest: Forest,
    starts: Array,
    ends: Array,
    pair: NDArray[np.int64],
    time: Array,
    players: Ints,
    n_threads: int,
) -> Array: ...
def fold_orders(values: Array) -> Array: ...
def order_groups(players: int, count: int, seed: int) -> NDArray[np.int64]: ...
def enumerates(players: int, coefficients: float, numbers: int, references: int, target: float) -> bool: ...
def jumps(
    forest: Forest, starts: Array, ends: Array, n_threads: int
) -> tuple[NDArray[np.int64], Array, Ints, Array]: ...
def cells(
    forest: Forest,
    starts: Array,
    ends: Array,
    pair: NDArray[np.int64],
    time: Array,
    past: NDArray[Any],
    n_threads: int,
) -> Array: ...
def series(coefficients: Array, panel: NDArray[np.int64], u: Array) -> Array: ...
def point_moments(panel: NDArray[np.int64], u: Array, mass: Array, panels: int, degrees: int) -> Array: ...
def segment_moments(
    panel: NDArray[np.int64], low: Array, high: Array, density: Array, panels: int, degrees: int
) -> Array: ...
def tanh(x: Array) -> Array: ...
def sigmoid(x: Array) -> Array: ...
def between_rows(rows: Array, at: NDArray[np.int64], part: Array) -> Array: ...
def bend_rows(
    coarse: Array,
    at: NDArray[np.int64],
    part: Array,
    time: Array,
    point: NDArray[np.int64],
    bend: Array,
    unit: NDArray[np.int64],
    rows: Array,
) -> Array: ...
def suffix_products(
    sums: Array, begin: NDArray[np.int64], end: NDArray[np.int64], unit: NDArray[np.int64], rows: Array
) -> Array: ...
def sum_groups(rows: Array, first: NDArray[np.int64]) -> Array: ...
def add_rows(table: Array, row: NDArray[np.int64], values: Array) -> None: ...
def passed_rows(rows: Array, left: NDArray[np.int64], level: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def largest_steps(rows: Array, left: NDArray[np.int64]) -> Array: ...
def units_at(name: str, rows: Array, at: NDArray[np.int64], part: Array, weight: Array) -> tuple[Array, Array]: ...
def units_back(
    name: str,
    units: Array,
    cotangent: Array,
    weight: Array,
    node_weight: Array,
    top: Array,
    rows: Array,
    at: NDArray[np.int64],
    share: Array,
) -> tuple[Array, Array, Array]: ...

class Program:
    def __init__(
        self, joints: int, constants: int, steps: list[tuple[Any, ...]], output: int, outputs: int
    ) -> None: ...

def program_functions() -> list[str]: ...
def head_moments(
    program: Program,
    times: list[Array],
    places: list[NDArray[np.int64]],
    coefficients: Array,
    steepness: Array,
    doubt: Array,
    line_rows: Array,
    corner_time: Array,
    place: NDArray[np.int64],
    constants: Array,
    allowed: Array,
    rules: list[tuple[Array, ...]],
    limits: Array,
    table: Array,
    table_slopes: Array,
    middle: float,
    scale: float,
    before: Array,
    after: Array,
    n_threads: int,
) -> tuple[Any, ...]: ...
def linear_credits(
    forest: Forest,
    starts: Array,
    ends: Array,
    start_numbers: Array,
    end_numbers: Array,
    column: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: Array,
    player: NDArray[np.int64],
    outputs: int,
    n_threads: int,
) -> Array: ...
