"""The small real table that comes with gigrad, for first steps, examples and the demo."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._common.optional import require

PROTECTED = ("personal_status_and_sex", "foreign_worker", "age")
"""Sex, marital status, nationality and age must not decide about credit: no model of the pages is given them."""


def german_credit(*, protected: bool = False) -> tuple[Any, NDArray[np.int64]]:
    """1,000 loans of a German bank: a pandas table of 17 columns, and which of the loans went bad.

    Text columns are pandas categories. The table is by Hans Hofmann (UCI Machine Learning Repository, CC BY 4.0).

    Parameters
    ----------
    protected : bool
        Whether to keep the three columns on which a lender must not base a decision (`personal_status_and_sex`,
        `foreign_worker` and `age`), say to compare groups that are not inputs of the model.

    Returns
    -------
    X : pandas.DataFrame, (1000, 17)
        (1000, 20) with the protected columns.
    bad : (1000,) int
        1 for a bad loan, 0 for a good one.

    Examples
    --------
    >>> from gigrad.datasets import german_credit
    >>> X, bad = german_credit()
    >>> X.shape, int(bad.sum())
    ((1000, 17), 300)
    """
    pandas = require("pandas", "frames")
    with as_file(files("gigrad") / "data" / "german_credit.csv") as path:
        table = pandas.read_csv(path, keep_default_na=False)
    bad = (table.pop("credit_risk") == "bad").to_numpy().astype(np.int64)
    for name in table.select_dtypes(exclude="number"):
        table[name] = table[name].astype("category")
    return (table if protected else table.drop(columns=list(PROTECTED))), bad
