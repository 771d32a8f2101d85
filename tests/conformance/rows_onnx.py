"""The rows of ONNX models in the conformance table: what skl2onnx, onnxmltools, CatBoost and torch write."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import data
from .row import Fitted, Row


def row(model: str, task: str, options: str, build: Callable[[], Fitted]) -> Row:
    return Row("ONNX", "onnx", model, task, options, build)


def written_by_skl2onnx(
    options: str, task: str, fit: Callable[[], Any], table: Callable[[], Any] = data.numbers
) -> Row:
    def build() -> Fitted:
        from skl2onnx import to_onnx

        return to_onnx(fit(), table()[:1].astype(np.float32)), table()

    return row("skl2onnx", task, options, build)


def sklearn(path: str, *inside: Any, **parameters: Any) -> Any:
    from importlib import import_module

    module, name = path.rsplit(".", 1)
    return getattr(import_module(f"sklearn.{module}"), name)(*inside, **parameters)


def pipeline(*steps: Any) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*steps)


def single() -> Any:
    return data.numbers().astype(np.float32)


def single_with_missing() -> Any:
    return data.with_missing().astype(np.float32)


def named_columns() -> Fitted:
    """Numbers imputed and scaled, a label in one-hot form, a flag as it is: every column an input."""
    import pandas as pd
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
    from sklearn.compose import make_column_transformer

    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "amount": single()[:, 0],
            "income": single()[:, 1],
            "job": rng.choice(["clerk", "nurse", "pilot"], data.N),
            "flag": rng.integers(0, 2, data.N),
        }
    )
    steps = make_column_transformer(
        (pipeline(sklearn("impute.SimpleImputer"), sklearn("preprocessing.StandardScaler")), ["amount", "income"]),
        (sklearn("preprocessing.OneHotEncoder", handle_unknown="ignore"), ["job"]),
        ("passthrough", ["flag"]),
    )
    model = pipeline(steps, sklearn("ensemble.RandomForestClassifier", n_estimators=5, max_depth=4, random_state=0))
    model.fit(table, data.binary())
    types = [
        ("amount", FloatTensorType([None, 1])), ("income", FloatTensorType([None, 1])),
        ("job", StringTensorType([None, 1])), ("flag", Int64TensorType([None, 1])),
    ]  # fmt: skip
    return to_onnx(model, initial_types=types), table


def xgboost() -> Fitted:
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=5, max_depth=3).fit(single(), data.class_codes())
    return onnxmltools.convert_xgboost(model, initial_types=[("input", FloatTensorType([None, 4]))]), data.numbers()


def lightgbm() -> Fitted:
    import onnxmltools
    from lightgbm import LGBMClassifier
    from onnxmltools.convert.common.data_types import FloatTensorType

    model = LGBMClassifier(n_estimators=5, verbose=-1).fit(single_with_missing(), data.binary())
    kinds = [("input", FloatTensorType([None, 4]))]
    return onnxmltools.convert_lightgbm(model, initial_types=kinds), data.with_missing()


def catboost() -> Fitted:
    import onnx
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(iterations=5, depth=3, verbose=0, allow_writing_files=False).fit(single(), data.binary())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.save_model(str(path), format="onnx")
        return onnx.load(str(path)), data.numbers()


def torch_net() -> Fitted:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return exported(
        nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 1), nn.Sigmoid()
    )  # fmt: skip


def torch_norms() -> Fitted:
    import torch
    from torch import nn

    torch.manual_seed(1)
    return exported(
        nn.Linear(4, 6), nn.LayerNorm(6), nn.PReLU(6), nn.Linear(6, 3), nn.Hardswish(), nn.Linear(3, 1),
        nn.Hardsigmoid(),
    )  # fmt: skip


def exported(*layers: Any) -> Fitted:
    """What torch writes of some layers."""
    import onnx
    import torch

    net = torch.nn.Sequential(*layers).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        rows = torch.zeros(1, 4)
        torch.onnx.export(net, (rows,), str(path), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
        return onnx.load(str(path)), data.numbers()


def calibrated(method: str) -> Any:
    inside = sklearn("ensemble.RandomForestClassifier", **forest(n_estimators=4, max_depth=3))
    return sklearn("calibration.CalibratedClassifierCV", inside, method=method, cv=2)


def forest(**parameters: Any) -> Any:
    return {"n_estimators": 5, "max_depth": 4, "random_state": 0, **parameters}


ROWS = (
    written_by_skl2onnx(
        "RandomForestClassifier, missing values", "binary",
        lambda: sklearn("ensemble.RandomForestClassifier", **forest()).fit(single_with_missing(), data.binary()),
        data.with_missing,
    ),
    written_by_skl2onnx(
        "SVC, its decision", "any", lambda: sklearn("svm.SVC", kernel="rbf").fit(single(), data.binary()),
    ),
    written_by_skl2onnx(
        "LinearRegression behind PCA", "regression",
        lambda: pipeline(
            sklearn("decomposition.PCA", n_components=2, whiten=True), sklearn("linear_model.LinearRegression")
        ).fit(single(), data.target()),
    ),
    written_by_skl2onnx(
        "forest behind Binarizer", "regression",
        lambda: pipeline(
            sklearn("preprocessing.Binarizer", threshold=0.3), sklearn("ensemble.RandomForestRegressor", **forest())
        ).fit(single(), data.target()),
    ),
    written_by_skl2onnx(
        "MultinomialNB", "multiclass",
        lambda: sklearn("naive_bayes.MultinomialNB").fit(np.abs(single()), data.classes()),
        lambda: np.abs(data.numbers()),
    ),
    written_by_skl2onnx(
        "RandomForestClassifier", "binary",
        lambda: sklearn("ensemble.RandomForestClassifier", **forest()).fit(single(), data.binary()),
    ),
    written_by_skl2onnx(
        "RandomForestClassifier", "multiclass",
        lambda: sklearn("ensemble.RandomForestClassifier", **forest()).fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "ExtraTreesRegressor", "regression",
        lambda: sklearn("ensemble.ExtraTreesRegressor", **forest()).fit(single(), data.target()),
    ),
    written_by_skl2onnx(
        "GradientBoostingClassifier behind MinMaxScaler", "binary",
        lambda: pipeline(
            sklearn("preprocessing.MinMaxScaler"), sklearn("ensemble.GradientBoostingClassifier", n_estimators=5)
        ).fit(single(), data.binary()),
    ),
    written_by_skl2onnx(
        "HistGradientBoostingClassifier, missing values", "binary",
        lambda: sklearn("ensemble.HistGradientBoostingClassifier", max_iter=5).fit(
            single_with_missing(), data.binary()
        ),
        data.with_missing,
    ),
    written_by_skl2onnx(
        "LogisticRegression behind SimpleImputer and StandardScaler", "binary",
        lambda: pipeline(
            sklearn("impute.SimpleImputer"), sklearn("preprocessing.StandardScaler"),
            sklearn("linear_model.LogisticRegression"),
        ).fit(single_with_missing(), data.binary()),
        data.with_missing,
    ),
    written_by_skl2onnx(
        "LogisticRegression", "multiclass",
        lambda: sklearn("linear_model.LogisticRegression").fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "PoissonRegressor", "regression",
        lambda: sklearn("linear_model.PoissonRegressor").fit(single(), data.positive()),
    ),
    written_by_skl2onnx(
        "MLPClassifier", "multiclass",
        lambda: sklearn("neural_network.MLPClassifier", hidden_layer_sizes=(6,), max_iter=20, random_state=0).fit(
            single(), data.classes()
        ),
    ),
    written_by_skl2onnx("SVR", "regression", lambda: sklearn("svm.SVR").fit(single(), data.target())),
    written_by_skl2onnx(
        "StackingClassifier", "binary",
        lambda: sklearn(
            "ensemble.StackingClassifier",
            estimators=[
                ("trees", sklearn("ensemble.RandomForestClassifier", **forest(n_estimators=3))),
                ("line", sklearn("linear_model.LogisticRegression")),
            ],
        ).fit(single(), data.binary()),
    ),
    written_by_skl2onnx(
        "BaggingClassifier, some columns each", "binary",
        lambda: sklearn("ensemble.BaggingClassifier", n_estimators=4, max_features=2, random_state=0).fit(
            single(), data.binary()
        ),
    ),
    written_by_skl2onnx(
        "BaggingRegressor of linear models", "regression",
        lambda: sklearn(
            "ensemble.BaggingRegressor", sklearn("linear_model.Ridge"), n_estimators=3, random_state=0
        ).fit(single(), data.target()),
    ),
    written_by_skl2onnx(
        "GaussianNB", "multiclass", lambda: sklearn("naive_bayes.GaussianNB").fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "BernoulliNB", "multiclass",
        lambda: sklearn("naive_bayes.BernoulliNB", binarize=0.3).fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "QuadraticDiscriminantAnalysis", "multiclass",
        lambda: sklearn("discriminant_analysis.QuadraticDiscriminantAnalysis").fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "CalibratedClassifierCV, isotonic (written as the nearest step)", "binary",
        lambda: calibrated("isotonic").fit(single(), data.binary()),
    ),
    written_by_skl2onnx(
        "CalibratedClassifierCV, isotonic (written as the nearest step)", "multiclass",
        lambda: calibrated("isotonic").fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "CalibratedClassifierCV, sigmoid", "multiclass", lambda: calibrated("sigmoid").fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "AdaBoostClassifier", "binary",
        lambda: sklearn("ensemble.AdaBoostClassifier", n_estimators=6, random_state=0).fit(single(), data.binary()),
    ),
    written_by_skl2onnx(
        "AdaBoostClassifier", "multiclass",
        lambda: sklearn("ensemble.AdaBoostClassifier", n_estimators=6, random_state=0).fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "AdaBoostRegressor", "regression",
        lambda: sklearn("ensemble.AdaBoostRegressor", n_estimators=5, random_state=0).fit(single(), data.target()),
    ),
    written_by_skl2onnx(
        "GaussianProcessRegressor", "regression",
        lambda: sklearn("gaussian_process.GaussianProcessRegressor", alpha=0.1, optimizer=None).fit(
            single()[:60], data.target()[:60]
        ),
        lambda: data.numbers()[:60],
    ),
    written_by_skl2onnx(
        "SVC, votes of one against one", "multiclass", lambda: sklearn("svm.SVC").fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "SGDClassifier, log loss", "multiclass",
        lambda: sklearn("linear_model.SGDClassifier", loss="log_loss", random_state=0).fit(single(), data.classes()),
    ),
    written_by_skl2onnx(
        "OneVsOneClassifier of LogisticRegression", "multiclass",
        lambda: sklearn("multiclass.OneVsOneClassifier", sklearn("linear_model.LogisticRegression")).fit(
            single(), data.class_codes()
        ),
    ),
    written_by_skl2onnx(
        "forest behind KBinsDiscretizer", "regression",
        lambda: pipeline(
            sklearn("preprocessing.KBinsDiscretizer", 4, encode="onehot-dense", strategy="uniform"),
            sklearn("ensemble.RandomForestRegressor", **forest()),
        ).fit(single(), data.target()),
    ),
    written_by_skl2onnx(
        "Ridge behind PolynomialFeatures", "regression",
        lambda: pipeline(sklearn("preprocessing.PolynomialFeatures"), sklearn("linear_model.Ridge")).fit(
            single(), data.target()
        ),
    ),
    written_by_skl2onnx(
        "Ridge behind Normalizer", "regression",
        lambda: pipeline(sklearn("preprocessing.Normalizer"), sklearn("linear_model.Ridge")).fit(
            single() + np.float32(0.05), data.target()
        ),
        lambda: data.numbers() + 0.05,
    ),
    row("skl2onnx", "binary", "ColumnTransformer: imputed, scaled, OneHotEncoder on text, every column an input",
        named_columns),
    row("onnxmltools", "multiclass", "XGBClassifier", xgboost),
    row("onnxmltools", "binary", "LGBMClassifier, missing values", lightgbm),
    row("CatBoost", "binary", "CatBoostClassifier.save_model(format='onnx')", catboost),
    row("torch.onnx", "binary", "Gemm, Gelu, Relu, BatchNormalization, Sigmoid", torch_net),
    row("torch.onnx", "regression", "LayerNormalization, PRelu, HardSwish, HardSigmoid", torch_norms),
)  # fmt: skip
