"""Arguments of the wrong kind get one clear sentence, whichever function they are given to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from unchecked import unchecked

import gigrad as gig
from gigrad import importers
from gigrad._common import checks
from gigrad._reasons.statements import read_statements
from gigrad.testing import brute_force, check_importer
from gigrad.testing import importers as checking

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["age", "income", "debt"])
MODEL = LogisticRegression().fit(X, (X["age"] + X["income"] > 0).astype(int))
RISK = MODEL.predict_proba(X)[:, 1]
APPROVED = gig.references.approved(X, RISK, 0.5, higher_is_better=False)
REFUSED = X[RISK > 0.5].head(4)
ecdf = gig.SmoothedECDF


def first_column(x: Any) -> Any:
    """A function that is its first column, and no gradient of anything."""
    return x[:, 0]


@pytest.fixture(scope="module")
def e() -> gig.Explanation:
    return gig.explain(MODEL, REFUSED, APPROVED)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, 2, 3], [1, 2]], "rows of one length"),
        (pd.concat([X, X[["age"]]], axis=1), "name each column once: .*'age' 2 times"),
        (np.array([[10**400, 1, 2]], dtype=object), "hold numbers below 1e308 in column 'age'"),
        (np.ma.masked_array(X[:1].to_numpy(), mask=[[True, False, False]]), r"got a masked array.*filled"),
        (pl.from_pandas(X).lazy(), r"got a LazyFrame. Pass the result of its collect\(\)"),
        (pa.RecordBatch.from_pandas(X), "got a RecordBatch. Pass pyarrow.Table.from_batches"),
    ],
)
def test_tables_that_cannot_be_read_say_what_to_do(table: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=f"^X must .*{message}"):
        gig.explain(MODEL, table, X)


@pytest.mark.parametrize("table", [[[1.0], [1.0, 2.0]], pd.concat([X, X], axis=1), np.ma.masked_array(X.to_numpy())])
def test_references_refuse_the_same_tables(table: Any) -> None:
    with pytest.raises(gig.InputError, match=r"^X must "):
        gig.references.all_applicants(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": None}, "tol must lie between 0 and 1; got None"),
        ({"tol": "small"}, "tol must lie between 0 and 1; got 'small'"),
        ({"n_threads": True}, "n_threads must be a positive whole number; got True"),
        ({"weights": "equal"}, "weights must be numbers, one a reference row; got 'equal'"),
        ({"weights": [1j] * 60}, "weights must be numbers"),
        ({"weights": [1e308] * 60}, "and so must their sum"),
        ({"groups": ["age"]}, "groups must be a dict such as .*; got a list"),
        ({"groups": {"who": None}}, "The group 'who' must be a list of features"),
        ({"groups": {3: ["age"]}}, "The name of a group must be a text; got 3"),
    ],
)
def test_options_of_an_explanation(options: dict[str, Any], message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.explain(MODEL, REFUSED, X, **options)


def test_numbers_of_numpy_are_numbers() -> None:
    e = gig.explain(MODEL, REFUSED, APPROVED, n_threads=unchecked(np.int64(1)), tol=unchecked(np.float32(1e-6)))
    record = gig.reasons(e, unchecked(np.int64(2)), min_share=unchecked(np.float32(0.25))).audit()[0]
    assert (record["rules"]["top"], record["rules"]["min_share"]) == (2, 0.25)
    assert len(gig.replay_reasons(json.dumps(record)).reasons) <= 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gig.references.Reference(X[:0], unchecked(None), "nobody"), "at least one row; it is empty"),
        (
            lambda: gig.references.Reference(X, unchecked(None), "all", RISK, unchecked("up")),
            "higher_is_better must be True .*; got 'up'",
        ),
        (lambda: APPROVED.passes("all"), "scores must be numbers; got 'all'"),
        (lambda: gig.references.sample(APPROVED, 3, seed=unchecked("x")), "seed must be a whole number"),
        (lambda: gig.references.sample(APPROVED, 3, seed=-1), "seed must be a whole number that is not negative"),
        (
            lambda: gig.references.approved(X, RISK, 0.5, higher_is_better=False, min_rows=unchecked(None)),
            "min_rows must be a whole number, 0 or more; got None",
        ),
        (
            lambda: gig.references.cutoff_band(X, RISK, 0.5, higher_is_better=False, width=unchecked("wide")),
            "width must be a positive number.*; got 'wide'",
        ),
        (
            lambda: gig.references.distill(gig.references.all_applicants(pd.DataFrame({"a": [[1], [2], [3]]})), 2),
            "Column 'a' must hold labels, or numbers",
        ),
        (lambda: gig.explain_gap(MODEL, X, X, level=unchecked("high")), "level must lie between 0 and 1; got 'high'"),
        (lambda: gig.explain_gap(MODEL, X, X, weights_a=["a"] * 60), "weights must be numbers, one a row of group_a"),
        (lambda: gig.reason_stability(MODEL, REFUSED, APPROVED, spaces=unchecked(["margin"])), "spaces must be a dict"),
        (
            lambda: gig.reason_stability(MODEL, REFUSED, APPROVED, measurement_error=unchecked("5%")),
            "measurement_error must be a dict such as .*; got a str",
        ),
        (lambda: gig.average([MODEL, MODEL], weights=["a", "b"]), "weights must be numbers, one a model"),
        (lambda: ecdf.fit(["low", "high"]), "scores must be numbers; .*'low'"),
        (lambda: ecdf.fit([1, 2, 3], knots=unchecked(2.5)), "knots must be a whole number, at least 2; got 2.5"),
        (lambda: ecdf([0, 1], [0, np.inf]), "needs finite knots"),
        (lambda: read_statements({"age": {"statement": "x", "below": "nan"}}), "must be a finite number; got 'nan'"),
        (lambda: ecdf.fit([1, 2])("high"), "scores must be numbers; got 'high'"),
        (lambda: ecdf("a", "b"), "scores must be numbers; got 'a'"),
        (lambda: gig.function(first_column, unchecked(None), 2), 'gradient must be a function or "autograd"; got None'),
        (
            lambda: gig.function(first_column, first_column, unchecked(2.0)),
            "columns must be the number of columns or their names",
        ),
        (lambda: gig.function(first_column, first_column, 0), "columns must be a positive whole number; got 0"),
        (
            lambda: gig.function(first_column, first_column, 2, outputs="score"),
            "outputs must be .* their names.*; got 'score'",
        ),
        (
            lambda: gig.function(first_column, first_column, 2, outputs=0),
            "outputs must be a positive whole number; got 0",
        ),
        (lambda: gig.import_model(MODEL).with_columns("abc"), "with_columns needs a list of names; got 'abc'"),
        (lambda: gig.register_importer("Model"), "its dotted one, \"package.Class\"; got 'Model'"),
        (lambda: brute_force(MODEL, [1.0], [0.0, 1.0, 2.0]), "start must be one encoded row of 3 numbers"),
        (lambda: brute_force(MODEL, "low", "high"), "start must be one encoded row, numbers only; got 'low'"),
        (lambda: checks.whole(1, "n", least=2), "n must be a whole number, at least 2; got 1"),
    ],
)
def test_arguments_of_other_functions(call: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exclude": 3}, "exclude must be a list of features or groups; got 3"),
        ({"min_share": None}, "min_share must lie between 0 and 1; got None"),
        ({"min_share": "half"}, "min_share must lie between 0 and 1; got 'half'"),
        ({"ranges": 3}, "ranges must be a dict"),
        ({"ranges": {"age": "wide", "income": 1, "debt": 1}}, "got 'wide' for 'age'"),
        ({"groups": ["age"]}, "groups must be a dict"),
    ],
)
def test_options_of_reasons(e: gig.Explanation, options: dict[str, Any], message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.reasons(e, **options)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((0, []), "must keep at least one feature"),
        ((slice(None), [False] * 3), "must keep at least one feature"),
        ([[0], [1, 2]], "A row is picked by number, slice, list or mask"),
        ((0, [["age"], []]), "A feature is picked by number, name, slice, list or mask"),
    ],
)
def test_slices_that_leave_nothing(e: gig.Explanation, key: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        _ = e[key]


def test_an_output_must_be_left() -> None:
    several = gig.explain(LogisticRegression().fit(X, np.arange(60) % 3), X[:2], X)
    with pytest.raises(gig.InputError, match="at least one output"):
        _ = several[:, :, []]


@pytest.mark.parametrize("write", ["to_parquet", "to_csv", "to_json", "write_audit"])
def test_reasons_are_written_whole_or_not_at_all(e: gig.Explanation, tmp_path: Path, write: str) -> None:
    with pytest.raises(gig.OutputError, match="the folder does not exist"):
        getattr(gig.reasons(e), write)(tmp_path / "none" / "x")
    getattr(gig.reasons(e), write)(tmp_path / "x")
    assert [f.name for f in tmp_path.iterdir()] == ["x"]


def test_files_that_are_absent_or_hostile(tmp_path: Path) -> None:
    with pytest.raises(gig.InputError, match="no such file"):
        ecdf.load(tmp_path / "none.json")
    with pytest.raises(gig.OutputError, match="the folder does not exist"):
        ecdf.fit([1, 2]).save(tmp_path / "none" / "x.json")
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    with pytest.raises(gig.CorruptModelError, match=r"must be a file written by SmoothedECDF\.save"):
        ecdf.load(deep)
    with pytest.raises(gig.InputError, match="it does not exist"):
        gig.Explanation.load(tmp_path / "none.parquet")
    gig.Explainer(MODEL, X).save(tmp_path / "x.gig")
    with pytest.raises(gig.InputError, match="n_threads must be a positive whole number; got 0"):
        gig.Explainer.load(tmp_path / "x.gig", n_threads=0)


@pytest.mark.parametrize("head", [b"[" * 100_000, b'{"provenance": 3}'])
def test_an_explanation_with_a_hostile_head_is_refused(e: gig.Explanation, tmp_path: Path, head: bytes) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "e.parquet"
    e.save(path)
    table = pq.read_table(path)
    if head.startswith(b"{"):
        head = json.dumps({**json.loads(table.schema.metadata[b"gigrad"]), **json.loads(head)}).encode()
    pq.write_table(table.replace_schema_metadata({b"gigrad": head}), path)
    with pytest.raises(gig.InputError, match="it is damaged"):
        gig.Explanation.load(path)


def test_an_importer_must_give_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own:
        pass

    monkeypatch.setitem(importers._REGISTRY, f"{Own.__module__}.{Own.__qualname__}", lambda model: 3)
    with pytest.raises(gig.UnsupportedModelError, match=r"must give a gigrad\.Graph; it gave an int"):
        gig.import_model(Own())


def test_lazy_layers_that_have_seen_nothing_are_not_fitted() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed, and the module here is one")
    with pytest.raises(gig.NotFittedError, match="lazy layers"):
        gig.import_model(torch.nn.LazyLinear(1).eval())


@pytest.mark.filterwarnings("ignore:The credits of row 0 do not add up")
def test_credits_that_are_no_numbers_are_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A NaN is not larger than any tolerance; it must not pass for that reason."""
    nothing = gig.function(lambda x: x[:, 0] * x[:, 1], lambda x: x * np.nan, 2)
    with pytest.warns(gig.AccuracyWarning, match="up to nan"):
        gig.explain_pairs(nothing, [[1.0, 2.0]], [[3.0, 4.0]])
    with pytest.warns(gig.AccuracyWarning, match="up to nan"):
        gig.explain_gap(nothing, [[1.0, 2.0]], [[3.0, 4.0]], bootstrap=0)
    with pytest.raises(gig.InputError, match="brute_force needs finite gradients"):
        brute_force(nothing, [1.0, 2.0], [3.0, 4.0])
    real = checking.explain_pairs

    def lost(*arguments: Any, **options: Any) -> gig.Explanation:
        e = real(*arguments, **options)
        return replace(e, values=e.values * np.nan, gap=e.gap * np.nan)

    monkeypatch.setattr(checking, "explain_pairs", lost)
    with pytest.raises(gig.ModelMismatchError, match="the gap is nan and the difference nan"):
        check_importer(MODEL, X)
