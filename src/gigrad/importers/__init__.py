"""Model object -> Graph: the registry of importers, filled without importing any model library.

A type is looked up by its dotted name, and by those of its base classes; only then is the importer's module loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from types import MethodType
from typing import Any

from ..errors import InputError, UnsupportedModelError, kind_of
from ..graph import Graph

Importer = Callable[[Any], Graph]

# "package.Class" of a model -> "module:function" in this folder, or a registered function
_REGISTRY: dict[str, str | Importer] = {}


def _declare(where: str, package: str, *classes: str) -> None:
    _REGISTRY.update({f"{package}.{name}": where for name in classes})


_declare("xgboost:import_xgboost", "xgboost", "Booster", "XGBModel")
_declare("lightgbm:import_lightgbm", "lightgbm", "Booster", "LGBMModel")
_declare("catboost:import_catboost", "catboost", "CatBoost")
_declare(
    "sklearn.trees:import_trees",
    "sklearn",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
)
_declare("sklearn.trees:import_gradient_boosting", "sklearn", "GradientBoostingClassifier", "GradientBoostingRegressor")
_declare(
    "sklearn.hist:import_hist_gradient_boosting",
    "sklearn",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
)
_declare(
    "sklearn.linear:import_linear_regressor",
    "sklearn",
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lars",
    "LarsCV",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "LinearRegression",
    "LinearSVR",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "PassiveAggressiveRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "SGDRegressor",
    "TheilSenRegressor",
)
_declare("sklearn.linear:import_glm", "sklearn", "GammaRegressor", "PoissonRegressor", "TweedieRegressor")
_declare(
    "sklearn.linear:import_linear_classifier",
    "sklearn",
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
)
_declare("sklearn.linear:import_one_class_sgd", "sklearn", "SGDOneClassSVM")
_declare("sklearn.bayes:import_qda", "sklearn", "QuadraticDiscriminantAnalysis")
_declare("sklearn.bayes:import_gaussian_nb", "sklearn", "GaussianNB")
_declare("sklearn.bayes:import_multinomial_nb", "sklearn", "MultinomialNB")
_declare("sklearn.bayes:import_complement_nb", "sklearn", "ComplementNB")
_declare("sklearn.bayes:import_bernoulli_nb", "sklearn", "BernoulliNB")
_declare("sklearn.bayes:import_categorical_nb", "sklearn", "CategoricalNB")
_declare("sklearn.linear:import_pls", "sklearn", "CCA", "PLSCanonical", "PLSRegression")
_declare("sklearn.constant:import_dummy", "sklearn", "DummyClassifier", "DummyRegressor")
_declare("sklearn.chains:import_chain", "sklearn", "ClassifierChain", "RegressorChain")
_declare("sklearn.gaussian_classes:import_gaussian_classifier", "sklearn", "GaussianProcessClassifier")
_declare("sklearn.net:import_mlp", "sklearn", "MLPClassifier", "MLPRegressor")
_declare("sklearn.kernel:import_svm", "sklearn", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR")
_declare("sklearn.kernel:import_kernel_ridge", "sklearn", "KernelRidge")
_declare("sklearn.kernel:import_gaussian_process", "sklearn", "GaussianProcessRegressor")
_declare("sklearn.isotonic:import_isotonic", "sklearn", "IsotonicRegression")
_declare("torch:import_module", "torch", "Module")
_declare("keras:import_keras", "keras", "Model")
_declare("onnx:import_onnx", "onnx", "ModelProto")
_declare("spark:import_pipeline", "pyspark", "PipelineModel", "CrossValidatorModel", "TrainValidationSplitModel")
_declare("spark:import_alone", "pyspark", "JavaModel")
_declare("spark:import_alone", "xgboost", "_SparkXGBModel")
_declare("glum:import_glum", "glum", "GeneralizedLinearRegressorBase")
_declare("interpret:import_ebm", "interpret", "EBMModel")
_declare("statsmodels:import_results", "statsmodels", "ResultsWrapper", "Results")
_declare("survival.lifelines:import_cox", "lifelines", "CoxPHFitter")
_declare("survival.sksurv:import_cox", "sksurv", "CoxPHSurvivalAnalysis", "CoxnetSurvivalAnalysis")
_declare("survival.sksurv:import_trees", "sksurv", "SurvivalTree", "RandomSurvivalForest", "ExtraSurvivalTrees")
_declare("survival.sksurv:import_boosting", "sksurv", "GradientBoostingSurvivalAnalysis")
_declare("survival.sksurv:import_componentwise", "sksurv", "ComponentwiseGradientBoostingSurvivalAnalysis")
_declare("scorecards:import_card", "gigrad", "Scorecard")
_declare("scorecards:import_optbinning", "optbinning", "Scorecard")
_declare("skorch:import_skorch", "skorch", "NeuralNet")
_declare("pipeline.importer:import_pipeline", "sklearn", "Pipeline")
_declare("sklearn.meta:import_search", "sklearn", "BaseSearchCV")
_declare("sklearn.meta:import_wrapped", "sklearn", "FrozenEstimator")
_declare(
    "sklearn.meta:import_tuned", "sklearn", "FixedThresholdClassifier", "RANSACRegressor", "SelfTrainingClassifier",
    "TunedThresholdClassifierCV",
)  # fmt: skip
_declare("sklearn.meta:import_voting", "sklearn", "VotingClassifier", "VotingRegressor")
_declare("sklearn.meta:import_transformed_target", "sklearn", "TransformedTargetRegressor")
_declare("sklearn.meta:import_multi_output", "sklearn", "MultiOutputClassifier", "MultiOutputRegressor")
_declare("sklearn.meta:import_one_vs_rest", "sklearn", "OneVsRestClassifier")
_declare("sklearn.meta:import_one_vs_one", "sklearn", "OneVsOneClassifier")
_declare("sklearn.calibration:import_calibrated", "sklearn", "CalibratedClassifierCV")
_declare("sklearn.stacking:import_stacking", "sklearn", "StackingClassifier", "StackingRegressor")
_declare("sklearn.bagging:import_bagging", "sklearn", "BaggingClassifier", "BaggingRegressor")
_declare("sklearn.bagging:import_ada_boost", "sklearn", "AdaBoostClassifier")
_declare("sklearn.bagging:import_ada_boost_regressor", "sklearn", "AdaBoostRegressor")
_declare("sklearn.bagging:import_isolation_forest", "sklearn", "IsolationForest")

_NEIGHBOURS = (
    "{} searches the nearest training rows, so its score jumps along oblique boundaries everywhere, which no single "
    "variable crosses. Use {}."
)
_DISTANCES = "a support vector machine, KernelRidge or a Gaussian process, which weight all rows smoothly"

# Models that cannot be imported, and why: the error message for them, instead of the list of supported ones.
REFUSED: dict[str, str] = {
    **{
        f"sklearn.{name}": _NEIGHBOURS.format(name, _DISTANCES)
        for name in ("KNeighborsClassifier", "KNeighborsRegressor", "RadiusNeighborsClassifier",
                     "RadiusNeighborsRegressor")
    },
    "sklearn.LocalOutlierFactor": _NEIGHBOURS.format("LocalOutlierFactor", "IsolationForest or OneClassSVM"),
    "sklearn.NearestCentroid": (
        "NearestCentroid predicts the class of the nearest centre and nothing in between. Use "
        "LinearDiscriminantAnalysis or GaussianNB, which have probabilities."
    ),
    "sklearn.OutputCodeClassifier": (
        "OutputCodeClassifier predicts the class of the nearest code word and has no score. Use OneVsRestClassifier."
    ),
    "sklearn.LabelPropagation": (
        "LabelPropagation scores rows by their distances to all training rows, labelled or not, which is not imported. "
        "Use SelfTrainingClassifier over a supported model."
    ),
    "sklearn.LabelSpreading": (
        "LabelSpreading scores rows by their distances to all training rows, labelled or not, which is not imported. "
        "Use SelfTrainingClassifier over a supported model."
    ),
    "sklearn.EllipticEnvelope": (
        "EllipticEnvelope's distances are not imported. Use IsolationForest or OneClassSVM."
    ),
}  # fmt: skip


def register_importer(name: str) -> Callable[[Importer], Importer]:
    """Use the decorated function to import models of the class `name`.

    Parameters
    ----------
    name : str
        "package.module.Class"; the modules between the package and the class may be left out.

    Examples
    --------
    >>> import gigrad as gig
    >>> class Doubled:
    ...     def __init__(self, model):
    ...         self.model = model
    >>> @gig.register_importer(f"{Doubled.__module__}.{Doubled.__qualname__}")
    ... def import_doubled(model):
    ...     return gig.stack([model.model], head=[2.0])
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor().fit([[0], [1]], [0, 3])
    >>> gig.explain_pairs(Doubled(tree), [[0]], [[1]]).values
    array([[6.]])
    """

    if not isinstance(name, str) or "." not in name:
        raise InputError(f'The name of a class must be its dotted one, "package.Class"; got {name!r}.')

    def register(function: Importer) -> Importer:
        _REGISTRY[name] = function
        return function

    return register


def supported() -> dict[str, str]:
    """The classes that can be imported: dotted name -> where the importer is.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> import gigrad as gig
    >>> "xgboost.Booster" in gig.supported()
    True
    """
    return {
        name: entry if isinstance(entry, str) else f"{entry.__module__}:{entry.__qualname__}"
        for name, entry in sorted(_REGISTRY.items())
    }


def import_model(model: Any) -> Graph:
    """The graph of a fitted model; a Graph is returned as it is.

    Parameters
    ----------
    model : fitted model or Graph

    Returns
    -------
    Graph

    Raises
    ------
    UnsupportedModelError
        For a type without an importer; the message lists the supported ones.

    Examples
    --------
    >>> import gigrad as gig
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> graph = gig.import_model(tree)
    >>> graph.label, graph.feature_names
    ('DecisionTreeRegressor', ('x0', 'x1'))
    """
    if isinstance(model, Graph):
        return model
    for cls in type(model).__mro__:
        full, short = f"{cls.__module__}.{cls.__qualname__}", f"{cls.__module__.split('.')[0]}.{cls.__qualname__}"
        entry = _REGISTRY.get(full) or _REGISTRY.get(short)
        if entry is not None:
            graph = _load(entry)(model)
            if not isinstance(graph, Graph):
                raise UnsupportedModelError(
                    f"The importer of {full} must give a gigrad.Graph; it gave {kind_of(graph)}."
                )
            return graph
        if short in REFUSED:
            raise UnsupportedModelError(REFUSED[short])
    raise UnsupportedModelError(_unknown(model))


def _unknown(model: Any) -> str:
    """The error message for a model without an importer: the supported ones, and what to do instead."""
    name = f"{type(model).__module__}.{type(model).__qualname__}"
    if said := _mistaken(model):
        return said
    classes: dict[str, list[str]] = {}
    for full in sorted(_REGISTRY):
        classes.setdefault(full.split(".")[0], []).append(full.split(".")[-1])
    listed = "; ".join(
        f"{library}: {', '.join(names[:6])}{f' and {len(names) - 6} more' if len(names) > 6 else ''}"
        for library, names in classes.items()
    )
    how = (
        "For a function with a gradient there is gigrad.function(f, gradient)."
        if callable(model)
        else f"To add it, write a function from the model to a gigrad.Graph and decorate it with "
        f'@gigrad.register_importer("{name}").'
    )
    return f"A {name} cannot be imported. Supported are {listed} (gigrad.supported() lists all). {how}"


def _mistaken(model: Any) -> str:
    """The error message for something that is not a model; "" for a model of an unknown library."""
    if isinstance(model, MethodType):
        return f"A model must be passed itself, not its method {model.__name__!r}: gigrad reads its fitted parameters."
    if model is None:
        return "A model must be a fitted object; got None."
    if isinstance(model, type):
        return f"A model must be a fitted object; got the class {model.__name__}. Pass {model.__name__}(...).fit(...)."
    if isinstance(model, (str, PathLike)):
        return (
            f"A model must be a fitted object; got the text or path {str(model)!r:.60}. Load it with its own library "
            "first; the command line (gigrad explain) reads model files itself."
        )
    if isinstance(model, (list, tuple)):
        return (
            f"A model must be one fitted object; got {kind_of(model)} of {len(model)}. Join several with "
            "gigrad.stack or gigrad.average."
        )
    if not callable(model) and type(model).__module__.split(".")[0] in ("numpy", "pandas", "polars", "pyarrow"):
        return f"A model must be a fitted object; got {kind_of(model)}. The model comes first, tables after it."
    return ""


def _load(entry: str | Importer) -> Importer:
    """An importer, imported where it is named as "module:function"."""
    if not isinstance(entry, str):
        return entry
    module, function = entry.split(":")
    importer: Importer = getattr(import_module(f".{module}", __name__), function)
    return importer
