"""
Reasons for refused applicants: Taiwan default
==============================================

From a model to four reasons in words for each refused applicant, with a record that replays them.
"""

# %%
# The Taiwan default table is looked for in ``../shared/data`` beside the project; without it, German credit serves.
# Columns that say the same thing make one reason together.

import os
import textwrap
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

import gigrad as gig
from gigrad.datasets import german_credit

here = Path.cwd().resolve()
files = [p / "shared/data/taiwan_credit_default.parquet" for p in here.parents]
path = next((p for p in files if p.exists()), None)
if path is None:
    X, default = german_credit()
    groups = {"assets": ["savings_account", "property", "housing"]}
    statements = {"assets": {"code": "A1", "statement": "Insufficient assets"}}
else:
    table = pd.read_parquet(path)
    default = table.pop("default_payment_next_month").to_numpy(int)
    X = table.drop(columns=["sex", "marriage", "age"])
    payments = [c for c in X if c.startswith("pay_amt")]
    groups = {
        "payment status": [
            c for c in X if c.startswith("pay_") and c not in payments
        ],
        "bills": [c for c in X if c.startswith("bill_amt")],
        "payments": payments,
    }
    statements = {
        "payment status": {"code": "P1", "statement": "Delinquent payments"},
        "bills": {"code": "P2", "statement": "Amount owed on the card"},
        "payments": {"code": "P3", "statement": "Payments too low for what is owed"},
        "limit_bal": {"code": "L1", "statement": "Credit limit of the card"},
        "education": {"code": "E1", "statement": "Level of education"},
    }
model = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=15, verbose=-1)
model.fit(X, default)

# %%
# A risk above the cutoff is refused. The reference is those who pass; the score is explained as a rank.

risk = model.predict_proba(X)[:, 1]
cutoff = float(np.quantile(risk, 0.8))
approved = gig.references.approved(X, risk, cutoff, higher_is_better=False)
size = 100 if os.environ.get("GIGRAD_QUICK") else 500
reference = gig.references.sample(approved, size, seed=0)
refused = X[risk > cutoff].head(50)
e = gig.explain(model, refused, reference, output=gig.SmoothedECDF.fit(risk))

# %%
# Four reasons each, in words. What has no statement is kept, and said to have none.

reasons = gig.reasons(e, top=4, groups=groups, statements=statements)
print(reasons[0])
print(textwrap.fill(reasons.reference, 80))

# %%
# The record of the first applicant is enough to recompute the reasons.

again = gig.replay_reasons(reasons.audit()[0])
assert [r.feature for r in again.reasons] == [r.feature for r in reasons[0].reasons]
gig.plots.bar(e.group(groups))
