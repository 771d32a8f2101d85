"""The explanation object: slicing keeps sums, groups add up, tables and files hold what went in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import made
from unchecked import unchecked

from gigrad import Explanation, InputError
from gigrad._common import display

KINDS = ["numpy", "pandas", "polars", "arrow"]
FIGURES = ("values", "base_values", "predictions", "gap", "error", "rest")
PATH_ARRAYS = ("rows", "times", "score", "credit", "jump_row", "jump_time", "jump_feature", "jump_size")


def assert_sums(e: Explanation) -> None:
    np.testing.assert_allclose(e.base_values + e.values.sum(axis=1) + e.rest + e.gap, e.predictions, atol=1e-12)


def plain(data: Any) -> list[list[Any]]:
    """A raw table as lists, missing values as None."""
    return [known(display.column(data, j)) for j in range(data.shape[1])]


def known(values: Any) -> list[Any]:
    """Raw values as a list, missing ones as None, so that they can be compared."""
    return [None if display.is_missing(v) else v for v in values.tolist()]


# ---------------------------------------------------------------- slicing


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [None, 3])
def test_slices_agree_with_the_arrays_and_keep_the_sums(kind: str, k: int | None) -> None:
    e = made(kind=kind, k=k, paths=True)
    mask = np.arange(7) % 2 == 0
    for key, rows in ((3, [3]), (-1, [6]), (slice(2, 5), [2, 3, 4]), ([4, 1], [4, 1]), (mask, [0, 2, 4, 6])):
        part = e[key]
        np.testing.assert_array_equal(part.values, e.values[rows])
        np.testing.assert_array_equal(part.predictions, e.predictions[rows])
        assert part.ids.tolist() == e.ids[rows].tolist()
        assert plain(part.data) == [[column[i] for i in rows] for column in plain(e.data)]
        assert_sums(part)
    for key, features in (("f2", [2]), (["f3", "f0"], [3, 0]), (slice(1, 3), [1, 2]), (-1, [3])):
        part = e[:, key]
        np.testing.assert_array_equal(part.values, e.values[:, features])
        assert part.feature_names == tuple(e.feature_names[j] for j in features)
        assert [known(part.raw(j)) for j in range(len(features))] == [known(e.raw(j)) for j in features]
        assert_sums(part)


def test_one_output_of_several_loses_its_axis_and_a_list_of_outputs_does_not() -> None:
    e = made(k=3, paths=True)
    one, two = e[:, :, "class 1"], e[:, :, ["class 2", "class 0"]]
    np.testing.assert_array_equal(one.values, e.values[:, :, 1])
    np.testing.assert_array_equal(two.values, e.values[:, :, [2, 0]])
    assert (one.output_names, two.output_names) == (("class 1",), ("class 2", "class 0"))
    assert one.paths is not None
    assert one.paths.score.shape == (2, 41)
    assert_sums(one)
    assert_sums(two)


def test_paths_follow_their_rows_and_features() -> None:
    e = made(paths=True)
    assert e.paths is not None
    part = e[[5, 2, 1], ["f3", "f1"]].paths
    assert part is not None
    assert part.rows.tolist() == [1]
    np.testing.assert_array_equal(part.credit[0], e.paths.credit[1][:, [3, 1]])
    assert part.jump_feature.tolist() == [-1, 1, -1, 0]
    np.testing.assert_array_equal(part.jump_size, e.paths.jump_size[4:])
    assert e[[1, 3]].paths is None


def test_iterating_gives_one_row_at_a_time() -> None:
    e = made()
    assert [row.ids[0] for row in e] == e.ids.tolist()
    assert all(len(row) == 1 for row in e)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (7, "There are 7 rows, so row 7 does not exist"),
        ((slice(None), "age"), "'age' must be the name of one feature; 0 have it"),
        (np.array([True, False]), "A mask of rows must have 7 entries; it has 2"),
        ((0, 0, 0), "This explanation has 2 axes; got 3 indices"),
        ((slice(None), ["f0", "f0"]), "each feature once"),
        (1.5, "picked by number, slice"),
        (None, "picked by number, slice"),
    ],
)
def test_bad_slices_say_what_is_wrong(key: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made()[key]


# ---------------------------------------------------------------- groups


def test_groups_add_up_and_stand_where_their_first_member_stood() -> None:
    e = made(paths=True)
    g = e.group({"Means": ["f3", "f1"]})
    assert g.feature_names == ("f0", "Means", "f2")
    np.testing.assert_allclose(g.values[:, 1], e.values[:, 1] + e.values[:, 3])
    assert g.raw("Means") is None
    assert np.asarray(g.raw("f2")).tolist() == np.asarray(e.raw("f2")).tolist()
    assert g.paths is not None
    np.testing.assert_allclose(g.paths.credit[:, -1], g.values[[0, 2]])
    assert_sums(g)
    assert_sums(g[:, "Means"])
    assert g[:, "Means"].columns == ("f1", "f3")
    assert g.group({"All": ["Means", "f0", "f2"]}).groups == {"All": ("f0", "f1", "f3", "f2")}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"a": ["f9"]}, "'f9' is not one"),
        ({"a": ["f0"], "b": ["f0"]}, "'f0' is in 'a' and 'b'"),
        ({"f2": ["f0"]}, "'f2' is also a feature"),
        ({"a": "f0"}, "must be a list of features"),
        ({"a": []}, "at least one"),
    ],
)
def test_bad_groups_say_what_is_wrong(groups: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made().group(groups)


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", KINDS)
def test_wide_frames_hold_the_credits(library: Any, kind: str) -> None:
    e = made(kind=kind)
    frame = e.to_frame(library=library, data=True)
    assert type(frame).__module__.startswith(library)
    np.testing.assert_array_equal(np.column_stack([frame[f"credit_f{j}"] for j in range(4)]), e.values)
    np.testing.assert_array_equal(np.asarray(frame["prediction"]), e.predictions)
    assert list(frame["id"]) == e.ids.tolist()
    np.testing.assert_allclose(np.asarray(frame["value_f2"]), np.asarray(e.raw("f2")))


def test_wide_frames_of_several_outputs_have_a_line_for_each() -> None:
    e = made(k=3)
    frame = e.to_frame()
    assert list(frame["output"][:4]) == ["class 0", "class 1", "class 2", "class 0"]
    np.testing.assert_array_equal(frame["credit_f2"].to_numpy().reshape(7, 3), e.values[:, 2])
    np.testing.assert_array_equal(frame["gap"].to_numpy().reshape(7, 3), e.gap)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("k", [None, 2])
def test_long_frames_hold_the_credits_values_and_labels(library: Any, k: int | None) -> None:
    e = made(k=k)
    frame = e.to_frame("long", library=library)
    np.testing.assert_array_equal(np.asarray(frame["credit"]), e.values.ravel())
    step = 1 if k is None else k
    assert [str(v) for v in list(frame["feature"])[::step][:5]] == ["f0", "f1", "f2", "f3", "f0"]
    assert known(np.array(list(frame["label"]), dtype=object))[:: 4 * step] == known(e.raw("f0"))
    assert np.asarray(frame["value"])[2 * step] == np.asarray(e.raw("f2"))[0]


def test_a_frame_of_a_slice_shows_what_was_left_out() -> None:
    e = made()[:, ["f0"]]
    np.testing.assert_array_equal(e.to_frame()["rest"], e.rest)


def test_summary_ranks_by_mean_absolute_credit() -> None:
    e = made(p=6)
    table = e.summary()
    assert table["mean_abs_credit"].is_monotonic_decreasing
    assert table["share"].sum() == pytest.approx(1)
    by_name = dict(zip(table["feature"], table["mean_credit"], strict=True))
    assert by_name["f3"] == pytest.approx(e.values[:, 3].mean())
    assert len(made(k=3).summary(library="polars")) == 12


def test_unknown_layouts_and_libraries_are_refused() -> None:
    with pytest.raises(InputError, match='"wide" or "long"'):
        made().to_frame(unchecked("tall"))
    with pytest.raises(InputError, match='"pandas" or "polars"'):
        made().to_frame(library=unchecked("numpy"))


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [None, 1, 3])
def test_parquet_round_trip_is_exact(kind: str, k: int | None, tmp_path: Path) -> None:
    e = made(kind=kind, k=k, paths=True)[:, ["f2", "f0", "f1"]].group({"G": ["f2", "f1"]})
    e.save(tmp_path / "e.parquet")
    back = Explanation.load(tmp_path / "e.parquet")
    for name in FIGURES:
        np.testing.assert_array_equal(getattr(back, name), getattr(e, name), err_msg=name)
    for name in ("feature_names", "output_names", "columns", "groups", "provenance"):
        assert getattr(back, name) == getattr(e, name)
    assert back.ids.tolist() == e.ids.tolist()
    assert type(back.data) is type(e.data)
    assert plain(back.data) == plain(e.data)
    for name in PATH_ARRAYS:
        np.testing.assert_array_equal(getattr(back.paths, name), getattr(e.paths, name), err_msg=name)
    assert back.paths is not None
    assert (back.paths.references, back.paths.of) == (30, 30)


def test_parquet_keeps_pandas_types(tmp_path: Path) -> None:
    import pandas as pd
    from pandas.testing import assert_frame_equal

    e = made(n=3, p=4)
    data = pd.DataFrame(
        {
            "f0": pd.Categorical(["b", "a", None], categories=["b", "a", "z"], ordered=True),
            "f1": pd.array([1, None, 3], dtype="Int64"),
            "f2": pd.to_datetime(["2011-03-01", "2012-01-01", None]),
            "f3": [True, False, True],
        }
    )
    e = Explanation(e.values, e.base_values, e.predictions, e.gap, e.error, data, e.feature_names, e.output_names)
    e.save(tmp_path / "e.parquet")
    assert_frame_equal(Explanation.load(tmp_path / "e.parquet").data, data)


def test_parquet_carries_the_provenance_where_any_tool_finds_it(tmp_path: Path) -> None:
    import json

    import pyarrow.parquet as pq

    e = made()
    e.save(tmp_path / "e.parquet")
    metadata = pq.read_schema(tmp_path / "e.parquet").metadata
    assert json.loads(metadata[b"gigrad.provenance"]) == e.provenance
    assert json.loads(e.to_arrow().schema.metadata[b"gigrad.provenance"]) == e.provenance


def test_a_file_that_is_not_an_explanation_is_refused(tmp_path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="must be an explanation that gigrad saved"):
        Explanation.load(tmp_path / "other.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="must be a Parquet file"):
        Explanation.load(tmp_path / "broken.parquet")
    with pytest.raises(InputError, match="must be a Parquet file"):
        Explanation.load(tmp_path / "absent.parquet")


def test_a_damaged_head_or_table_is_refused_whatever_is_missing(tmp_path: Path) -> None:
    import json

    import pyarrow.parquet as pq

    made(paths=True).save(tmp_path / "e.parquet")
    table = pq.read_table(tmp_path / "e.parquet")
    head = json.loads(table.schema.metadata[b"gigrad"])

    def refused(table: Any, head: Any) -> None:
        text = head if isinstance(head, bytes) else json.dumps(head).encode()
        pq.write_table(table.replace_schema_metadata({b"gigrad": text}), tmp_path / "bad.parquet")
        with pytest.raises(InputError, match="must be an explanation"):
            Explanation.load(tmp_path / "bad.parquet")

    for name in head:
        refused(table, {k: v for k, v in head.items() if k != name})
    for name in ("id", "base_value", "gap", "credit_f1", "value_f2", "path_credit"):
        refused(table.drop_columns([name]), head)
    refused(table, b"not json")
    refused(table, [])
    refused(table, {**head, "output_names": []})
    refused(table.slice(0, 3).drop_columns(["path_score"]), head)


# ---------------------------------------------------------------- reading


def test_repr_of_one_row_shows_values_credits_and_scores() -> None:
    e = made(p=20)[2]
    text = repr(e)
    assert "row loan 2: from 0.3" in text
    assert "f1 = missing" in text
    assert "12 others" in text
    assert "largest |gap|" in text


def test_repr_of_many_rows_shows_mean_absolute_credits() -> None:
    text = repr(made(n=1234, p=3))
    assert "1,234 rows x 3 features: made up against 30 reference rows" in text
    assert "mean |credit|" in text


def test_an_empty_explanation_can_be_read(tmp_path: Path) -> None:
    e = made()[np.zeros(7, dtype=bool)]
    assert "0 rows" in repr(e)
    assert "0 rows" in e._repr_html_()
    assert e.summary()["share"].sum() == 0
    e.save(tmp_path / "e.parquet")
    assert Explanation.load(tmp_path / "e.parquet").shape == (0, 4)


def test_html_escapes_what_comes_from_the_data() -> None:
    hostile = "<script>alert(1)</script>"
    html = made(names=(hostile, "b", "c", "d"))[0]._repr_html_()
    assert hostile not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_shapes_that_do_not_fit_are_refused() -> None:
    e = made()
    with pytest.raises(InputError, match="gap must have the shape"):
        Explanation(e.values, e.base_values, e.predictions, e.gap[:3], e.error, e.data, e.feature_names, ("s",))
    with pytest.raises(InputError, match="need as many names"):
        Explanation(e.values, e.base_values, e.predictions, e.gap, e.error, e.data, e.feature_names[:2], ("s",))
    with pytest.raises(InputError, match="data must have 7 rows"):
        Explanation(e.values, e.base_values, e.predictions, e.gap, e.error, e.data[:3], e.feature_names, ("s",))
