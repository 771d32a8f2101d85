"""Reasons in batches: what they take from the reference, and what must agree with it."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression

import gigrad as gig
from gigrad.batch.reasons import reason_task


def test_a_direction_against_the_references_own_is_refused() -> None:
    X = pd.DataFrame({"income": [20.0, 30.0, 40.0, 50.0]})
    model = LinearRegression().fit(X, [0.9, 0.6, 0.4, 0.1])
    approved = gig.references.approved(X, model.predict(X), 0.5, higher_is_better=False, min_rows=1)
    explainer = gig.Explainer(model, approved)
    with pytest.raises(gig.InputError, match="True here and False in the reference"):
        reason_task(explainer, pa.Schema.from_pandas(X), higher_is_better=True)
