"""
A Spark job
===========

A DataFrame in, a DataFrame of credits out: the portable explainer is broadcast, each task explains its own batches on
one thread, and the workers need no model library.
"""

# %%
import shutil

import xgboost

import gigrad as gig
from gigrad.datasets import german_credit

X, bad = german_credit()
X = X.select_dtypes("number")
model = xgboost.XGBClassifier(n_estimators=40, max_depth=3).fit(X, bad)
explainer = gig.Explainer(model, X[bad == 0].head(50))

# %%
# Spark needs Java; without it there is nothing to show.


def main() -> None:
    import gigrad.spark

    spark = gigrad.spark.local_session(cores=2)  # on a cluster, the session you have
    spark.sparkContext.setLogLevel("ERROR")
    table = X.assign(loan=range(len(X)))
    loans = spark.createDataFrame(table)
    credits = gigrad.spark.explain(loans, explainer, id_cols=["loan"])
    shown = ["loan", "base_value", "prediction", "credit_duration_months"]
    credits.orderBy("loan").select(shown).show(5)
    spark.stop()


if shutil.which("java") is None:
    print("skipped: Spark needs Java, which is not here")
else:
    main()
