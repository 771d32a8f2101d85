"""
Reasons for refused applicants: Taiwan default
==============================================

From a model to four reasons in words for each refused applicant, with a record that replays them.
"""

# %%
# The Taiwan default table is looked for in ``../shared/data`` beside the project; without it, German credit serves.

import os
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

import gigrad as gig
from gigrad.datasets import german_credit

found = [p / "shared" / "data" / "taiwan_credit_default.parquet" for p in Path.cwd().resolve().parents]
path = next((p for p in found if p.exists()), None)
if path is None:
    X, default = german_credit()
else:
    table = pd.read_parquet(path)
    default = table.pop("default_payment_next_month").to_numpy(int)
    X = table.drop(columns=["sex", "marriage", "age"])
model = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=15, verbose=-1).fit(X, default)

# %%
# A risk above the cutoff is refused. The reference is those who pass; the score is explained as a rank.

risk = model.predict_proba(X)[:, 1]
cutoff = float(np.quantile(risk, 0.8))
approved = gig.references.approved(X, risk, cutoff, higher_is_better=False)
reference = gig.references.sample(approved, 100 if os.environ.get("GIGRAD_QUICK") else 500, seed=0)
refused = X[risk > cutoff].head(50)
e = gig.explain(model, refused, reference, output=gig.SmoothedECDF.fit(risk))

# %%
# Months of payment status make one reason together, and so do bills and payments.

groups = {
    name: columns
    for name, start in (("payment status", "pay_"), ("bills", "bill_amt"), ("payments", "pay_amt"))
    if (columns := [c for c in X if c.startswith(start) and not (start == "pay_" and c.startswith("pay_amt"))])
}
statements = {
    "payment status": {"code": "P1", "statement": "Delinquent past or present payments"},
    "bills": {"code": "P2", "statement": "Amount owed on the card"},
    "payments": {"code": "P3", "statement": "Payments too low for the amount owed"},
    "limit_bal": {"code": "L1", "statement": "Credit limit of the card"},
    "education": {"code": "E1", "statement": "Level of education"},
}
statements = {name: text for name, text in statements.items() if name in groups or name in X}
reasons = gig.reasons(e, top=4, groups=groups or None, statements=statements or None)
print(reasons[0])
print(reasons.reference)

# %%
# The record of the first applicant is enough to recompute the reasons.

again = gig.replay_reasons(reasons.audit()[0])
assert [r.feature for r in again.reasons] == [r.feature for r in reasons[0].reasons]
gig.plots.bar(e.group(groups) if groups else e)
