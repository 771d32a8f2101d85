"""
A stack of three libraries on Adult
===================================

XGBoost, a scikit-learn pipeline around a net, and a calibrated LightGBM, joined by a logistic regression, on a table
with raw strings and missing values. Credit goes to the columns of the table.
"""

# %%
# The Adult table is not part of gigrad; this example looks for it in ``../shared/data`` beside the project and
# otherwise makes do with the German credit table.

import os
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gigrad as gig
from gigrad.datasets import german_credit

files = [p / "shared/data/adult.parquet" for p in Path.cwd().resolve().parents]
path = next((p for p in files if p.exists()), None)
if path is None:
    X, y = german_credit()
else:
    size = 1_500 if os.environ.get("GIGRAD_QUICK") else 20_000
    table = pd.read_parquet(path).sample(size, random_state=0)
    y = (table["income"].astype(str) == ">50K").to_numpy(int)
    persons = ["age", "sex", "race", "marital_status", "relationship"]
    persons += ["native_country"]
    X = table.drop(columns=["income", "split", *persons]).reset_index(drop=True)
numbers = list(X.select_dtypes("number"))
texts = [c for c in X.columns if c not in numbers]

# %%
# Three models, each with its own way of reading the table.

boosted = xgboost.XGBClassifier(
    n_estimators=40, max_depth=4, enable_categorical=True
)
boosted.fit(X, y)
prepared = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
)
net = MLPClassifier((16,), max_iter=60, early_stopping=True, random_state=0)
piped = make_pipeline(prepared, net).fit(X, y)
lgbm = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1)
calibrated = CalibratedClassifierCV(lgbm, cv=3).fit(X, y)

# %%
# A head joins their scores; the whole is one function of the raw columns.

models = [boosted, piped, calibrated]
scores = np.column_stack([m.predict_proba(X)[:, 1] for m in models])
f = gig.stack(models, head=LogisticRegression().fit(scores, y))

size = 6 if os.environ.get("GIGRAD_QUICK") else 50
rows, reference = X.head(size), X.tail(size)
e = gig.explain(f, rows, reference)
print(e)

# %%
gig.plots.waterfall(e[0])
