"""
A GBM in probability space
==========================

Gradient boosting on the German credit table, one loan explained against those that went well: in probability, the
number that the model itself gives.
"""

# %%
# Train a model, as usual. Text columns are pandas categories, and XGBoost splits on them natively.

import xgboost

import gigrad as gig
from gigrad.datasets import german_credit

X, bad = german_credit()
model = xgboost.XGBClassifier(n_estimators=100, max_depth=3, enable_categorical=True)
model.fit(X, bad)

# %%
# Explain 200 loans against the good ones. The credits of a loan sum to its risk less the mean risk of the good loans.

good = X[bad == 0]
e = gig.explain(model, X.head(200), good.sample(200, random_state=0))
print(e)
print("largest gap:", abs(e.gap).max())

# %%
# One loan, from the base value to its score.

gig.plots.waterfall(e[1])

# %%
# All of them: which variables matter, and which way.

gig.plots.beeswarm(e)

# %%
# One variable: its credit against its value, coloured by another.

gig.plots.scatter(e, "duration_months", color="checking_account_status")
