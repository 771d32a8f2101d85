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
    from pyspark.sql import SparkSession

    import gigrad.spark

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    table = X.assign(loan=range(len(X)))
    credits = gigrad.spark.explain(spark.createDataFrame(table), explainer, id_columns=["loan"])
    credits.orderBy("loan").show(5)
    spark.stop()


if shutil.which("java") is None:
    print("skipped: Spark needs Java, which is not here")
else:
    main()
