"""Writes small models with the libraries that are installed, for a later gigrad to read: python write_models.py FOLDER.

Runs under the old Pythons that old releases need, so it uses nothing newer than Python 3.8. Every file comes with what
its own release predicted for the rows of rows.csv, in predictions/RELEASE.json.
"""

import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(sys.argv[1])
ROWS = np.genfromtxt(str(FOLDER / "rows.csv"), delimiter=",", skip_header=1)
NAMES = (FOLDER / "rows.csv").read_text().splitlines()[0].split(",")
LEVELS = 4  # of the column "purpose", the last one
WRITTEN: "dict[str, object]" = {}


def training(seed=3, n=400):
    """Rows like those of rows.csv (flag, count, two measures with missing values, a category), and what happened."""
    rng = np.random.RandomState(seed)
    x = np.column_stack(
        [
            rng.randint(0, 2, n),
            rng.poisson(2, n),
            np.round(rng.gamma(2.0, 20.0, n), 1),
            np.round(rng.normal(0.4, 0.2, n), 3),
            rng.randint(0, LEVELS, n),
        ]
    ).astype(float)
    z = 0.8 * x[:, 0] - 0.4 * x[:, 1] + 0.02 * x[:, 2] + 2 * x[:, 3] + (x[:, 4] == 2) * x[:, 0] - 1.2
    y = (z + rng.logistic(size=n) > 0).astype(int)
    for column in (2, 3):
        x[rng.rand(n) < 0.1, column] = np.nan
    return x, y, z


X, Y, Z = training()


def record(name, predicted):
    """What the release itself says about the rows."""
    WRITTEN[name] = np.asarray(predicted, dtype=float).tolist()


def write_xgboost(release):
    import xgboost as xgb

    def save(model, name, endings, x=ROWS):
        for ending in endings:
            model.save_model(str(FOLDER / (name + ending)))
            predict = getattr(model, "predict_proba", None)
            record(name + ending, predict(x)[:, 1] if predict else model.predict(x))

    small = {"n_estimators": 6, "max_depth": 3, "random_state": 0, "tree_method": "hist"}
    save(xgb.XGBClassifier(**small).fit(X, Y), release + "-binary", [".json", ".ubj"])
    save(xgb.XGBRegressor(**small).fit(X, Z), release + "-regression", [".json"])
    save(xgb.XGBRegressor(booster="dart", rate_drop=0.5, **small).fit(X, Z), release + "-dart", [".json"])
    kinds = ["q", "q", "q", "q", "c"]
    params = {"objective": "binary:logistic", "max_depth": 3, "tree_method": "hist", "max_cat_to_onehot": 2}
    data = xgb.DMatrix(X, Y, feature_names=NAMES, feature_types=kinds, enable_categorical=True)
    rows = xgb.DMatrix(ROWS, feature_names=NAMES, feature_types=kinds, enable_categorical=True)
    booster = xgb.train(params, data, num_boost_round=6)
    booster.save_model(str(FOLDER / (release + "-categories.json")))
    record(release + "-categories.json", booster.predict(rows))


def write_lightgbm(release):
    import lightgbm as lgb

    small = {"num_leaves": 6, "verbose": -1, "seed": 0, "min_data_in_leaf": 10}

    def save(name, params, y, **more):
        data = lgb.Dataset(X, y, feature_name=NAMES, params={"verbose": -1}, **more)
        booster = lgb.train(dict(small, **params), data, num_boost_round=6)
        booster.save_model(str(FOLDER / (release + "-" + name + ".txt")))
        record(release + "-" + name + ".txt", booster.predict(ROWS))

    save("binary", {"objective": "binary"}, Y)
    save("categories", {"objective": "binary", "min_data_per_group": 5, "cat_smooth": 1}, Y, categorical_feature=[4])
    save("regression", {"objective": "regression"}, Z)
    save("forest", {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}, Y)


def write_catboost(release):
    import catboost

    small = {"iterations": 6, "depth": 3, "random_seed": 0, "verbose": False, "allow_writing_files": False}

    def save(name, model, x, y, rows, endings, **more):
        model.fit(x, y, **more)
        for ending, form in endings:
            model.save_model(str(FOLDER / (release + "-" + name + ending)), format=form)
            predict = getattr(model, "predict_proba", None)
            record(release + "-" + name + ending, predict(rows)[:, 1] if predict else model.predict(rows))

    binary = catboost.CatBoostClassifier(**small)
    save("binary", binary, X, Y, ROWS, [(".cbm", "cbm"), (".json", "json")])
    save("regression", catboost.CatBoostRegressor(**small), X, Z, ROWS, [(".cbm", "cbm")])

    def labelled(x):
        out = x.astype(object)
        out[:, 4] = [str(int(v)) for v in x[:, 4]]
        return out

    categories = catboost.CatBoostClassifier(one_hot_max_size=8, **small)
    save("categories", categories, labelled(X), Y, labelled(ROWS), [(".cbm", "cbm")], cat_features=[4])


def write_sklearn(release):
    import skops.io
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = {
        "hist": HistGradientBoostingClassifier(max_iter=6, max_depth=3, random_state=0),
        "forest": make_pipeline(SimpleImputer(), RandomForestClassifier(4, max_depth=3, random_state=0)),
        "logistic": make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), LogisticRegression()),
        "net": make_pipeline(SimpleImputer(), StandardScaler(), MLPClassifier((4,), max_iter=60, random_state=0)),
    }
    for name, model in models.items():
        model.fit(X, Y)
        skops.io.dump(model, str(FOLDER / (release + "-" + name + ".skops")))
        record(release + "-" + name + ".skops", model.predict_proba(ROWS)[:, 1])


if __name__ == "__main__":
    library = sys.argv[2]
    version = __import__({"sklearn": "sklearn"}.get(library, library)).__version__
    own = library + "-" + version
    globals()["write_" + library](own)
    folder = FOLDER / "predictions"
    folder.mkdir(exist_ok=True)
    note = {"release": own, "numpy": np.__version__, "python": sys.version.split()[0], "predicted": WRITTEN}
    (folder / (own + ".json")).write_text(json.dumps(note, indent=0) + "\n")
