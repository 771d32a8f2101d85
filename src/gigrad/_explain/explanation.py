"""The frozen result of an explanation: an array of credits with its names, its data and its provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from .._common import display
from ..errors import InputError
from ..graph.node import Array
from .grouping import Grouping
from .indexing import Ints, is_all, positions, table_columns, table_rows
from .paths import Paths
from .reference_parts import ReferenceParts

_DERIVED: Any = None  # a field that __post_init__ fills in from the others


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Each variable's share of the difference between a row's score and that of its reference.

    Slices like an array, rows first, then features, then outputs, by number, name, slice, list or mask: `e[3]`,
    `e[mask]`, `e[:, "income"]`, `e[:, :, "bad"]`. Rows and features keep their axis (`e[3]` explains one row), an
    output picked alone loses it, and what is sliced away is kept in `rest`, so that the sums still hold.

    Attributes
    ----------
    values : (n, p) or (n, p, k)
        The credits. `base_values + values.sum(axis=1) + rest + gap == predictions`.
    base_values : (n,) or (n, k)
        The reference's score (its weighted mean), or the start's for pairs.
    predictions : (n,) or (n, k)
        The row's score, as the model itself gives it.
    gap : (n,) or (n, k)
        The part of `predictions - base_values` that is missing from the credits because of rounding and quadrature.
    error : (n,) or (n, k)
        Estimated largest error of a credit of the row: quadrature and sampled corners. 0 where the answer is exact.
    data : array, data frame or None
        The explained rows as given, one column for each of `columns`.
    feature_names : tuple of str
    output_names : tuple of str
    provenance : dict
        What was explained, against what, by which versions and settings.
    ids : (n,) array
        The label of each row: its index in a pandas table, else its number.
    rest : (n,) or (n, k)
        The credit of features that were sliced away; 0 before.
    columns : tuple of str
        The names of the columns of `data`: the features, with the members of groups in place of the groups.
    groups : dict of str to tuple of str
        The features that stand for several columns.
    paths : Paths or None
        Score, credits and jumps along the paths from the reference to some of the rows.
    starts : array, data frame or None
        For pairs, the rows that the paths start from, as given, with the columns of `data`.
    reference_parts : ReferenceParts or None
        Credits against parts of the reference, for intervals over references.

    Examples
    --------
    >>> import gigrad as gig
    >>> e = gig.explain(tree, [[1, 1], [0, 1]], [[0, 0]])
    >>> e.shape, e.feature_names
    ((2, 2), ('x0', 'x1'))
    >>> e[1, "x1"].values  # one row, one feature; the rest is kept
    array([[1.]])
    >>> e.summary()["feature"].tolist()
    ['x1', 'x0']
    """

    values: Array
    base_values: Array
    predictions: Array
    gap: Array
    error: Array
    data: Any
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    provenance: dict[str, Any] = field(default_factory=dict)
    ids: NDArray[Any] = _DERIVED
    rest: Array = _DERIVED
    columns: tuple[str, ...] = _DERIVED
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    paths: Paths | None = None
    starts: Any = None
    reference_parts: ReferenceParts | None = None

    def __post_init__(self) -> None:
        derive: dict[str, Callable[[], Any]] = {
            "ids": lambda: row_ids(self.data, len(self.values)),
            "rest": lambda: np.zeros(self.predictions.shape),
            "columns": lambda: self.feature_names,
        }
        for name, make in derive.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, make())
        _check_shapes(self)

    # ------------------------------------------------------------ reading

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and features, and outputs where there are several."""
        return self.values.shape

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    def raw(self, feature: int | str) -> NDArray[Any] | None:
        """The raw values of a feature, (n,); None for a group, which has no value of its own."""
        return self._column(self.data, feature)

    def raw_start(self, feature: int | str) -> NDArray[Any] | None:
        """The raw values of a feature at the starts of pairs, (n,); None for a group, or against a reference."""
        return self._column(self.starts, feature)

    def _column(self, table: Any, feature: int | str) -> NDArray[Any] | None:
        """A feature's values in `data` or `starts`; None for a group, or without a table."""
        name = self.feature_names[self.position(feature)]
        if name in self.groups or table is None:
            return None
        return display.column(table, self.columns.index(name))

    def position(self, feature: int | str) -> int:
        """The position of a feature, given by name or number."""
        return int(positions(feature, self.feature_names, "feature")[0])

    def __getitem__(self, key: Any) -> Explanation:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > self.values.ndim:
            raise InputError(f"This explanation has {self.values.ndim} axes; got {len(keys)} indices.")
        out = self
        if len(keys) > 2:
            out = out._take_outputs(keys[2])
        if len(keys) > 1 and not is_all(keys[1]):
            out = out._take_features(positions(keys[1], self.feature_names, "feature"))
        if isinstance(keys[0], str):
            instead = f"e[:, {keys[0]!r}]" if keys[0] in self.feature_names else 'e[:, "name"]'
            hint = "" if keys[0] in self.feature_names else display.near(keys[0], self.feature_names)
            raise InputError(f"The first index picks rows; got {keys[0]!r}. For a feature write {instead}.{hint}")
        if not is_all(keys[0]):
            out = out._take_rows(positions(keys[0], range(len(self)), "row"))
        return out

    def _take_rows(self, index: Ints) -> Explanation:
        """The explanation of some rows, with everything that belongs to them."""
        per_row = ("values", "base_values", "predictions", "gap", "error", "rest", "ids")
        return replace(
            self,
            data=table_rows(self.data, index),
            starts=table_rows(self.starts, index),
            paths=None if self.paths is None else self.paths.take_rows(index),
            reference_parts=None if self.reference_parts is None else self.reference_parts.take_rows(index),
            **{name: getattr(self, name)[index] for name in per_row},
        )

    def _take_features(self, index: Ints) -> Explanation:
        """The explanation of some features; the credit of the others goes to `rest`."""
        if not len(index):
            raise InputError("A slice must keep at least one feature; got none.")
        if len(np.unique(index)) < len(index):
            raise InputError("A slice may name each feature once; got one twice.")
        return self._merge({self.feature_names[i]: np.array([i]) for i in index})

    def _take_outputs(self, key: Any) -> Explanation:
        """The explanation of some outputs; a single name or number drops the outputs' axis."""
        found = positions(key, self.output_names, "output")
        if not len(found):
            raise InputError("A slice must keep at least one output; got none.")
        index: Any = int(found[0]) if isinstance(key, (int, np.integer, str)) else found
        per_output = ("values", "base_values", "predictions", "gap", "error", "rest")
        return replace(
            self,
            output_names=tuple(self.output_names[i] for i in found),
            paths=None if self.paths is None else self.paths.take_outputs(index),
            reference_parts=None if self.reference_parts is None else self.reference_parts.take_outputs(index),
            **{name: getattr(self, name)[..., index] for name in per_output},
        )

    def _merge(self, members: Mapping[str, Ints]) -> Explanation:
        """New features, each the sum of old ones; the credit of features in none of them goes to `rest`."""
        groups = {name: self._columns_of(old) for name, old in members.items()}
        wanted = {column for columns in groups.values() for column in columns}
        kept = np.array([i for i, column in enumerate(self.columns) if column in wanted], dtype=np.int64)
        values = np.stack([self.values[:, old].sum(axis=1) for old in members.values()], axis=1)
        single, merged = self.reference_parts, list(members.values())
        dropped = np.setdiff1d(np.arange(len(self.feature_names)), np.concatenate(list(members.values())))
        return replace(
            self,
            values=values,
            rest=self.rest + self.values[:, dropped].sum(axis=1),
            error=self.error * max(len(old) for old in members.values()),
            data=table_columns(self.data, kept),
            starts=table_columns(self.starts, kept),
            feature_names=tuple(members),
            columns=tuple(self.columns[i] for i in kept),
            groups={name: columns for name, columns in groups.items() if columns != (name,)},
            paths=None if self.paths is None else self.paths.merge_features(merged),
            reference_parts=None if single is None else single.merge_features(merged),
        )

    def _columns_of(self, features: Ints) -> tuple[str, ...]:
        names = [self.feature_names[i] for i in features]
        return tuple(column for name in names for column in self.groups.get(name, (name,)))

    def group(self, groups: Mapping[str, Sequence[str]]) -> Explanation:
        """Add up the credits of features that belong together: `e.group({"Utilisation": ["balance", "limit"]})`.

        A group stands where its first member stood; features in no group stay as they are.
        """
        members = Grouping.of(self.feature_names, groups).members
        return self._merge({name: np.array(old) for name, old in members.items()})

    # ------------------------------------------------------------ tables and files

    def to_frame(
        self,
        layout: Literal["wide", "long"] = "wide",
        *,
        library: Literal["pandas", "polars"] | None = None,
        data: bool = False,
    ) -> Any:
        """The credits as a data frame.

        Parameters
        ----------
        layout : "wide" or "long"
            Wide: a line for each row (and output) with its scores and a column `credit_<feature>` for every feature.
            Long: a line for each row, feature (and output) with the feature's value and its credit.
        library : "pandas" or "polars", optional
            That of `data` by default, else pandas.
        data : bool
            Wide: also a column `value_<column>` for every column of `data`.
        """
        from .._output import frames

        return frames.to_frame(self, layout, library, data)

    def to_arrow(self, *, data: bool = False) -> Any:
        """The wide layout of `to_frame` as a pyarrow table, with the provenance in its metadata."""
        from .._output import frames

        return frames.to_arrow(self, data)

    def to_shap(self) -> Any:
        """A `shap.Explanation` with these credits, for shap's own plots."""
        from .._output import frames

        return frames.to_shap(self)

    def summary(
        self,
        *,
        over: Literal["rows", "references", "both"] | None = None,
        level: float = 0.95,
        bootstrap: int = 200,
        seed: int = 0,
        library: Literal["pandas", "polars"] | None = None,
    ) -> Any:
        """The features by importance, as a data frame: mean `|credit|` with an interval, mean credit, share.

        `low` and `high` are percentiles of the mean `|credit|` in bootstrap samples: how far it would move with another
        sample, of the same size and source, of what `over` names. They say nothing about another model or another
        training table. A percentile interval from few rows, or from few references, is too narrow.

        Parameters
        ----------
        over : "rows", "references" or "both", optional
            What is resampled. Rows: the explained rows, each with its credits, against the same reference.
            References: the reference, with the same explained rows; it needs the credits against parts of it that
            `explain(..., reference_parts=50)` keeps. Parts are drawn with replacement: where each is one row this is
            the plain bootstrap; 50 larger random parts estimate the same spread to about 10 %.
            By default both where the credits against parts are known, else rows.
        level : float
            The intervals' level.
        bootstrap : int
            How many samples; 0 for no interval (NaN).
        seed : int
        library : "pandas" or "polars", optional
            That of `data` by default, else pandas.
        """
        from .._output import frames, intervals

        how = intervals.Resampled.asked(self, over, level, bootstrap, seed)
        return frames.summary(self, how.of_importance(self), library)

    def save(self, path: str | Path) -> None:
        """Write everything to a .parquet file; `Explanation.load` reads it back."""
        from .._output import parquet as files

        files.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Explanation:
        """Read what `save` wrote."""
        from .._output import parquet as files

        return files.load(path)

    def report(self, path: str | Path, *, title: str | None = None, drift: Any = None) -> None:
        """Write one self-contained .html file that shows the explanation and needs no network.

        `drift` is a result of `gigrad.monitor`, for example against last month's run, shown as a section of the page.
        """
        from .._output.report import write

        write(self, path, title=title, drift=drift)

    def __repr__(self) -> str:
        from .._output import notebook

        return notebook.as_text(self)

    def _repr_html_(self) -> str:
        from .._output import notebook

        return notebook.as_html(self)


def _check_shapes(e: Explanation) -> None:
    """Refuse arrays whose shapes do not belong to one explanation."""
    if e.values.ndim not in (2, 3):
        raise InputError(
            f"values must have the shape (rows, features) or (rows, features, outputs); got {e.values.shape}."
        )
    n, p, *k = e.values.shape
    for name in ("base_values", "predictions", "gap", "error", "rest"):
        if getattr(e, name).shape != (n, *k):
            raise InputError(f"{name} must have the shape {(n, *k)}; it has {getattr(e, name).shape}.")
    if len(e.feature_names) != p or len(e.output_names) != (k[0] if k else 1):
        raise InputError(
            f"Credits of shape {e.values.shape} need as many names; there are {len(e.feature_names)} feature names and "
            f"{len(e.output_names)} output names."
        )
    for name, table in (("data", e.data), ("starts", e.starts)):
        if table is not None and tuple(table.shape) != (n, len(e.columns)):
            raise InputError(
                f"{name} must have {n} rows and {len(e.columns)} columns; its shape is {tuple(table.shape)}."
            )
    if len(e.ids) != n:
        raise InputError(f"ids must have one entry a row, {n}; there are {len(e.ids)}.")


def row_ids(data: Any, rows: int) -> NDArray[Any]:
    """The label of each row of a table, (rows,): its index in a pandas table, else its number."""
    if isinstance(data, np.ndarray):
        return np.arange(rows)
    if nw.dependencies.is_pandas_dataframe(data):
        return np.asarray(data.index)
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        index = nw.maybe_get_index(frame)
        if index is not None:
            return np.asarray(index)
    return np.arange(rows)
