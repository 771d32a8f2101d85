"""Reasons as letters need them: the texts, the table in every form, the record."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from credited import listed, made

import gigrad as gig
from gigrad._reasons.statements import read_statements

# ---------------------------------------------------------------- texts

BOOK: dict[str, Any] = {
    "years": [
        {"code": "B1", "statement": "No bank relationship", "value": "missing"},
        {"code": "B2", "statement": "Bank relationship too short", "below": 2},
        {"code": "B3", "statement": "Young bank relationship", "at_least": 2, "below": 5},
        {"code": "B4", "statement": "Bank relationship"},
    ],
    "home": [
        {"statement": "Does not own a home", "equals": ["rent", "free"]},
        {"code": "H2", "statement": "Home | ownership", "sign": "-", "value": "present"},
    ],
    "debt": [
        {"statement": "Too much debt", "than_typical": "higher", "code": "D"},
        {"statement": "Too little borrowing history", "than_typical": "lower"},
    ],
}


def spoken(years: Any, home: str, debt: float, book: Any = BOOK) -> list[tuple[str | None, str | None]]:
    data = pd.DataFrame({"years": [years], "home": [home], "debt": [debt]})
    e = made([[-3.0, -2.0, -1.0]], data, ("years", "home", "debt"))
    return [(r.code, r.statement) for r in gig.reasons(e, statements=book)[0].reasons]


def test_the_first_statement_whose_conditions_hold_is_given() -> None:
    assert spoken(np.nan, "rent", 1.0) == [
        ("B1", "No bank relationship"),
        (None, "Does not own a home"),
        ("D", "Too much debt"),
    ]
    assert spoken(1.99, "own", 0.1)[:2] == [("B2", "Bank relationship too short"), ("H2", "Home | ownership")]
    assert spoken(2.0, "own", 0.1)[0][0] == "B3"
    assert spoken(5.0, "own", 0.1)[2] == (None, "Too little borrowing history")
    assert spoken(5.0, "own", 0.1)[0][0] == "B4"


def test_csv_and_toml_files_say_the_same_as_a_dict(tmp_path: Path) -> None:
    toml = tmp_path / "book.toml"
    lines = []
    for feature, entries in BOOK.items():
        for entry in entries:
            lines.append(f"[[{feature}]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    toml.write_text("\n".join(lines))
    table = tmp_path / "book.csv"
    head = ["feature", "code", "statement", "sign", "value", "at_least", "below", "equals", "than_typical"]
    with table.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, head)
        writer.writeheader()
        for feature, entries in BOOK.items():
            for entry in entries:
                flat = {k: "|".join(v) if isinstance(v, list) else v for k, v in entry.items()}
                writer.writerow({"feature": feature, **flat})
    assert read_statements(toml) == read_statements(BOOK) == read_statements(str(table))
    assert spoken(1.0, "rent", 2.0, toml) == spoken(1.0, "rent", 2.0)


def test_groups_name_the_member_that_a_condition_reads() -> None:
    data = pd.DataFrame({"late": [3], "missed": [0]})
    e = made([[-1.0, -1.0]], data, ("late", "missed"))
    book = {"payments": [{"statement": "Serious delay", "column": "late", "at_least": 2}, "Payment history"]}
    found = gig.reasons(e, statements=book, groups={"payments": ["late", "missed"]})
    assert found[0].reasons[0].statement == "Serious delay"
    assert found[0].reasons[0].value == {"late": 3, "missed": 0}
    with pytest.raises(gig.InputError, match="must say which member is meant: column = one of 'late', 'missed'"):
        gig.reasons(e, statements={"payments": {"statement": "x", "below": 2}}, groups={"payments": ["late", "missed"]})


def test_features_without_a_text_are_reported_not_skipped() -> None:
    e = made([[-3.0, -2.0, -1.0], [-1.0, -2.0, 3.0]])
    book = {"a": "A text", "typo": "never used", "c": {"statement": "C", "sign": "+"}}
    with pytest.warns(gig.StatementWarning, match=r"'b' \(2\), 'c' \(1\)"):
        found = gig.reasons(e, statements=book)
    assert listed(found) == ["a", "b", "c"]
    assert found.reasons_without_statement == {"b": 2, "c": 1}
    assert found.features_without_statement == ("b",)
    assert found.unused_statements == ("typo",)
    assert json.loads(found.to_json())["reasons_without_statement"] == {"b": 2, "c": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gig.reasons(e)


def test_letters_that_would_repeat_themselves_are_reported() -> None:
    found = gig.reasons(made([[-3.0, -2.0, -1.0]]), statements={"a": "Same", "b": "Same", "c": "Other"})
    assert found.repeated_statements == {0: ("a", "b")}


@pytest.mark.parametrize(
    ("book", "message"),
    [
        ({"a": 3}, "must be a text, or a dict"),
        ({"a": ""}, "must be a text"),
        ({"a": {"code": "x"}}, "needs a 'feature' and a 'statement'"),
        ({"a": {"statement": "x", "bellow": 3}}, "got 'bellow'"),
        ({"a": {"statement": "x", "below": "low"}}, "must be a finite number; got 'low'"),
        ({"a": {"statement": "x", "below": 1, "at_least": 1}}, "at_least < below"),
        ({"a": {"statement": "x", "value": "gone"}}, "'missing' or 'present'"),
        ({"a": {"statement": "x", "value": "missing", "below": 1}}, "must have no condition on the size"),
        ({"a": {"statement": "x", "sign": "up"}}, "'\\+' or '-'"),
        ({"a": {"statement": "x", "column": "b"}}, "column may be given for groups only"),
        ("book.xlsx", "must be a .csv or .toml file"),
        ("absent.csv", "cannot be read"),
        (7, "must be a dict or the path"),
    ],
)
def test_bad_statements_are_refused(book: Any, message: str) -> None:
    with pytest.raises(gig.InputError, match=message):
        gig.reasons(made([[-1.0, -2.0]]), statements=book)


def test_broken_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[[a\n")
    (tmp_path / "b.csv").write_text("name,text\na,b\n")
    (tmp_path / "c.csv").write_bytes(b"feature,statement\n\xff\xfe\x00,x\n")
    (tmp_path / "d.csv").write_text("feature,statement\na,b,c,d\n")
    for name, message in (("a.toml", "not a TOML file"), ("b.csv", "'feature' is missing"), ("c.csv", "cannot be read"),
                          ("d.csv", "more cells than columns")):  # fmt: skip
        with pytest.raises(gig.InputError, match=message):
            gig.reasons(made([[-1.0]]), statements=tmp_path / name)


# ---------------------------------------------------------------- outputs

HOSTILE = [
    '=HYPERLINK("http://x")',
    "@SUM(A1)",
    "-2+3",
    "\t=1",
    'a,b\n"c"',
    "\x00\x1b[31m",
    "{value.__class__}",
    "名前 ✓",
    "'",
]


def test_the_table_is_the_same_in_every_form(tmp_path: Path) -> None:
    data = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", "y"]}, index=["p", "q"])
    found = gig.reasons(
        made([[-1.0, -2.0], [-1.0, 0.5]], data, ("a", "b")),
        statements={"a": {"code": "A", "statement": "Aa"}, "b": "Bb"},
    )
    frame = found.to_frame()
    assert frame["row_id"].tolist() == ["p", "p", "q"]
    assert frame["feature"].tolist() == ["b", "a", "a"]
    assert frame["value"].tolist()[:2] == ["x", "1"]
    assert pd.isna(frame["value"].iloc[2])
    found.to_parquet(tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), frame, check_dtype=False)
    found.to_csv(tmp_path / "r.csv")
    again = pd.read_csv(tmp_path / "r.csv")
    assert again["credit"].tolist() == frame["credit"].tolist()
    other = found.to_frame(library="polars")
    assert other["statement"].to_list() == frame["statement"].tolist()
    letter = json.loads(found.to_json(tmp_path / "r.json"))
    assert letter == json.loads((tmp_path / "r.json").read_text())
    assert letter["reference"] == "made up"
    assert letter["applicants"][1]["reasons"][0]["value"] is None
    assert found.of("q").reasons[0].feature == "a"
    with pytest.raises(gig.InputError, match="0 have 'z'"):
        found.of("z")
    assert "Applicant p: score -3, reference 0" in str(found)


def test_hostile_texts_neither_crash_nor_run_in_a_spreadsheet(tmp_path: Path) -> None:
    names = tuple(HOSTILE)
    n = len(names)
    data = pd.DataFrame([HOSTILE], columns=list(names))
    found = gig.reasons(
        made(-np.ones((1, n)), data, names), top=n, statements={h: h for h in HOSTILE}, row_ids=["=1+1"]
    )
    json.loads(found.to_json())
    record = json.loads(json.dumps(found.audit()[0]))
    assert gig.replay_reasons(record) == found[0]
    str(found)
    found.to_parquet(tmp_path / "r.parquet")
    found.to_csv(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    risky = [c for c in cells if c.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert all(float(c) < 0 for c in risky)


def test_no_rows_give_no_reasons(tmp_path: Path) -> None:
    found = gig.reasons(made(np.zeros((0, 3))))
    assert len(found) == 0
    found.to_parquet(tmp_path / "r.parquet")
    assert len(pd.read_parquet(tmp_path / "r.parquet")) == 0
    assert found.audit() == []


# ---------------------------------------------------------------- the record


def test_the_record_alone_gives_the_same_reasons(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    data = pd.DataFrame({"a": rng.normal(size=30), "b": rng.choice(["x", "y"], 30), "c": rng.integers(0, 4, 30),
                         "d": pd.date_range("2020-01-01", periods=30)})  # fmt: skip
    data.loc[3, "a"] = np.nan
    e = made(rng.normal(size=(30, 4)).round(1), data, ("a", "b", "c", "d"))
    book = {"a": [{"statement": "gone", "value": "missing"}, "A"], "g": "G", "d": "D"}
    found = gig.reasons(e, top=2, statements=book, groups={"g": ["b", "c"]}, exclude=["d"], min_share=0.01)
    found.write_audit(tmp_path / "audit.jsonl")
    read = list(gig.read_ledger(tmp_path / "audit.jsonl"))
    assert len(read) == 30
    for again, applicant, record in zip(read, found, found.audit(), strict=True):
        assert again == record
        assert gig.replay_reasons(json.dumps(again)) == applicant
        assert sum(record["feature_credits"][m] for m in record["groups"]["g"]) == pytest.approx(record["credits"]["g"])
        assert record["provenance"] == e.provenance


def test_a_changed_record_is_refused() -> None:
    from gigrad._reasons.audit import fingerprint

    record = gig.reasons(made([[-1.0, -2.0]])).audit()[0]
    for path in (("credits", "a"), ("score", "base"), ("outcome", "shortfall")):
        changed = json.loads(json.dumps(record))
        changed[path[0]][path[1]] = 9.0
        with pytest.raises(gig.InputError, match="was changed"):
            gig.replay_reasons(changed)
    forged = json.loads(json.dumps(record))
    forged["credits"]["a"] = -3.0
    del forged["fingerprint"]
    forged["fingerprint"] = fingerprint(forged)
    with pytest.raises(gig.InputError, match="do not follow"):
        gig.replay_reasons(forged)
    with pytest.raises(gig.InputError, match="format"):
        gig.replay_reasons({})
    with pytest.raises(gig.InputError, match="JSON object"):
        gig.replay_reasons("{")
