"""
A score gap between two groups
==============================

Women and men get different scores on average. Which variables make the difference? A fairness review asks for this
split, with intervals.
"""

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import xgboost

import gigrad as gig
from gigrad.datasets import german_credit

X, bad = german_credit()  # without sex, nationality and age
everyone, _ = german_credit(protected=True)
women = everyone["personal_status_and_sex"].str.startswith("female").to_numpy()
model = xgboost.XGBClassifier(n_estimators=80, max_depth=3, enable_categorical=True)
model.fit(X, bad)

# %%
# The model never saw who is a woman; the difference comes from the other variables, and sums to the gap exactly.

size = 80 if os.environ.get("GIGRAD_QUICK") else 300
gap = gig.explain_gap(model, X[women].head(size), X[~women].head(size), bootstrap=50)
print(gap)

# %%
order = np.argsort(-np.abs(gap.values))[:8][::-1]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.barh([gap.feature_names[j] for j in order], gap.values[order], color="#2a7fb8")
ax.hlines(range(len(order)), gap.low[order], gap.high[order], color="0.2")
ax.axvline(0, color="0.5", lw=0.8)
ax.set_xlabel("part of the difference in mean risk, women less men (95% intervals)")
