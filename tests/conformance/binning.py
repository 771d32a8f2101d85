"""KBinsDiscretizer with the quantiles that are the same in all versions of scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any


def quantile_bins(n: int, **options: Any) -> Any:
    """`n` bins. From scikit-learn 1.7 on quantiles have a method, and its default warns."""
    from sklearn.preprocessing import KBinsDiscretizer

    if "quantile_method" in inspect.signature(KBinsDiscretizer).parameters:
        options["quantile_method"] = "averaged_inverted_cdf"
    return KBinsDiscretizer(n, **options)
