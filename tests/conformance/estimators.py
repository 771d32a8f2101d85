"""Every estimator of scikit-learn: whether gigrad explains it or takes it as a step, and why not; for docs/sklearn.md.

The page is written from the registry of models, the table of steps and the refusals, so that it says what they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import sklearn

from gigrad import supported
from gigrad.importers import REFUSED as REFUSED_MODELS
from gigrad.importers.pipeline import REFUSED as REFUSED_STEPS
from gigrad.importers.pipeline import TRANSFORMERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sklearn.md"

_CLUSTERS = "finds groups of rows and gives no score of a row; explain a classifier of the groups"
_COVARIANCE = "estimates a covariance and predicts nothing"
_PICTURE = "places its training rows alone and cannot take a new one; PCA and KernelPCA can"
_TEXT = "reads texts or mappings, not columns of a table; explain the model behind it on the columns it makes"
_TARGETS = "transforms targets, not columns"
_DENSITY = "gives the density of a row, which is not imported; IsolationForest and OneClassSVM score outliers"

# Estimators that are neither models with a score nor steps for the columns of a table, and why.
OTHERS: dict[str, str] = {
    **dict.fromkeys(
        ("AffinityPropagation", "AgglomerativeClustering", "DBSCAN", "HDBSCAN", "MeanShift", "OPTICS",
         "SpectralBiclustering", "SpectralClustering", "SpectralCoclustering"), _CLUSTERS),
    **dict.fromkeys(
        ("EmpiricalCovariance", "GraphicalLasso", "GraphicalLassoCV", "LedoitWolf", "MinCovDet", "OAS",
         "ShrunkCovariance"), _COVARIANCE),
    **dict.fromkeys(("ClassicalMDS", "MDS", "SpectralEmbedding", "TSNE"), _PICTURE),
    **dict.fromkeys(
        ("CountVectorizer", "DictVectorizer", "FeatureHasher", "HashingVectorizer", "TfidfVectorizer"), _TEXT),
    **dict.fromkeys(("LabelBinarizer", "LabelEncoder", "MultiLabelBinarizer"), _TARGETS),
    **dict.fromkeys(("BayesianGaussianMixture", "GaussianMixture", "KernelDensity"), _DENSITY),
    "KernelCenterer": "centres a kernel that was computed before; KernelPCA does both",
    "NearestNeighbors": "finds training rows and gives no score",
    "PatchExtractor": "cuts pictures into patches",
    "PLSSVD": "hands on scores of columns and targets together, which no pipeline takes; PLSRegression predicts",
}  # fmt: skip

VERSION = f"scikit-learn {sklearn.__version__.rsplit('.', 1)[0]}."

INTRO = f"""# Every estimator of scikit-learn

Written by a test that walks `sklearn.utils.all_estimators()`, of {VERSION}
*Model* says that a fitted one is explained; *step*, that a pipeline may hold it before a model of any kind, trees
included. Options that are refused are named when they are met, each with what to do instead;
[what is supported](models.md) lists the options that the tests fit and compare.
"""


def estimators() -> list[tuple[str, type]]:
    """The name and the class of every estimator, experimental ones included."""
    from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer
    from sklearn.utils import all_estimators

    assert enable_halving_search_cv is not None  # importing them is enough
    assert enable_iterative_imputer is not None
    return list(all_estimators())


def is_model(cls: type) -> bool:
    return any(f"sklearn.{base.__name__}" in supported() for base in cls.__mro__)


def is_step(cls: type) -> bool:
    return any(f"sklearn.{base.__name__}" in TRANSFORMERS for base in cls.__mro__)


def why_not(name: str) -> str:
    """Why an estimator is neither; "" where nothing says so."""
    if f"sklearn.{name}" in REFUSED_MODELS:
        return REFUSED_MODELS[f"sklearn.{name}"]
    if name in REFUSED_STEPS:
        why, instead = REFUSED_STEPS[name]
        return f"It {why}. Instead, {instead}."
    return f"It {OTHERS[name]}." if name in OTHERS else ""


def lines() -> Iterator[str]:
    for name, cls in estimators():
        model, step = is_model(cls), is_step(cls)
        reason = "" if model or step else why_not(name)
        yield f"| `{name}` | {'yes' if model else 'no'} | {'yes' if step else 'no'} | {reason} |"


def page() -> str:
    found = list(lines())
    yes = sum("yes" in line.split("|", 4)[2] + line.split("|", 4)[3] for line in found)
    total = f"Of {len(found)} estimators {yes} are explained or taken as steps.\n"
    return "\n".join([INTRO, total, "| estimator | model | step | why not |", "|---|---|---|---|", *found, ""])
