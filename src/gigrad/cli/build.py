"""Builds an explainer from a configuration: the model or ensemble, the output, the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import portable, references
from .._explain import compose
from .._explain.explainer import Explainer
from .._explain.scorer import Scorer
from .._io import modelfiles
from .._io.row_checks import bad_rows
from .._io.tables import read_rows
from ..batch.layout import match
from ..batch.sources import Source
from ..errors import InputError
from ..graph import Graph
from ..graph.witness import Memory
from ..importers import import_model
from ..importers.scorecards import Scorecard
from .config import Config, Ensemble, Member
from .options import SHARED


def is_explainer(path: str) -> bool:
    """Whether a model file is a portable explainer, with a reference of its own."""
    return Path(path).suffix == portable.SUFFIX and Path(path).exists() and portable.kind_of(path) == "explainer"


def build_explainer(config: Config, refuses: bool = False) -> Explainer:
    """The explainer that a configuration describes; `refuses` if its cutoff also decides who gets reasons."""
    if config.ensemble is None and is_explainer(config.need("model", "MODEL")):
        fixed = ["reference", "output", "scores", "target", "weights", "reference_rows", "method"]
        fixed += [name for name in SHARED.values() if name != "threads"]
        said = [name for name in (fixed if refuses else [*fixed, "cutoff"]) if getattr(config, name) is not None]
        if said:
            raise InputError(
                f"{config.model} is an explainer, which contains its reference, output and settings; leave out "
                f"{', '.join('--' + name.replace('_', '-') for name in said)}, or give the model itself."
            )
        return portable.load(str(config.model), n_threads=config.threads)
    made = ingredients(config)
    told = {name: said for name, field in SHARED.items() if (said := getattr(config, field)) is not None}
    told["discrete"] = _discrete(config, made.columns)
    explainer = Explainer(made.scorer, made.reference, weights=made.weights, **told)
    made.memory.forget()  # later rows are predicted only once, so caching them has no use
    return explainer


class Ingredients(NamedTuple):
    """The parts of an explainer: the output of the model, which is imported once, the reference, its weights, and a
    cache of the model's predictions for the reference, which are computed once."""

    scorer: Scorer
    reference: Any
    weights: Any
    columns: Sequence[str]
    memory: Memory


def ingredients(config: Config) -> Ingredients:
    """The model, output and reference that a configuration describes."""
    model = build_model(config)
    memory = Memory()
    graph = import_model(model)
    graph = replace(graph, witnesses=memory.witnesses(graph.witnesses))
    if config.method is not None:
        return _classic(config, model, graph, memory)
    table = read_table(config.need("reference", "--reference"), graph, config)
    target = _target(config, graph)
    scorer = Scorer.of(model, _output(config, graph, target, table), target, graph)
    weights = _weights(config)
    reference = _reference(config, scorer, table, weights)
    weights = None if isinstance(reference, references.Reference) else weights
    return Ingredients(scorer, reference, weights, table.column_names, memory)


def _classic(config: Config, model: Any, graph: Graph, memory: Memory) -> Ingredients:
    """A scorecard and the reference of one of the two classic methods."""
    if config.method not in ("below-maximum", "below-average"):
        raise InputError(f"--method must be below-maximum or below-average; got {config.method!r}.")
    if not isinstance(model, Scorecard):
        raise InputError(f"--method {config.method} must have a scorecard (.csv, .toml, .pmml); got {graph.label}.")
    said = [name for name in ("output", "scores", "reference_rows") if getattr(config, name) is not None]
    if said:
        raise InputError(f"--method {config.method} compares points; leave out --{said[0].replace('_', '-')}.")
    higher = True if config.higher_is_better is None else config.higher_is_better
    scorer = Scorer.of(model, None, None, graph)
    if config.method == "below-maximum":
        if config.reference is not None:
            raise InputError("--method below-maximum compares with the card itself; leave out --reference.")
        best = references.best_points(model, higher_is_better=higher)
        return Ingredients(scorer, best, None, graph.feature_names, memory)
    table = read_table(config.need("reference", "--reference"), graph, config)
    reference = references.average_points(model, table, _weights(config), higher_is_better=higher)
    return Ingredients(scorer, reference, None, table.column_names, memory)


def _discrete(config: Config, names: Sequence[str]) -> Any:
    """The discrete columns as `Explainer` takes them: "term=36,60" lists the values of a column, "none" is none."""
    said = config.discrete
    if said is None or ((*said,) == ("none",) and "none" not in names):
        return None if said is None else ()
    out: dict[str, list[float] | None] = {}
    for text in said:
        name, equals, values = (text, "", "") if text in names else text.rpartition("=")
        try:
            out[name if equals else text] = [float(v) for v in values.split(",")] if equals else None
        except ValueError:
            raise InputError(
                f"--discrete must be a column, or a column and its values such as term=36,60; got {text!r}."
            ) from None
    return out


def build_model(config: Config) -> Any:
    """The model that a configuration names, or the graph of its ensemble."""
    if config.ensemble is None:
        return _load(config, config.need("model", "MODEL"))
    if config.model is not None:
        raise InputError("Give a model or an [ensemble], not both.")
    return _ensemble(config, config.ensemble)


def read_table(path: str, graph: Graph, config: Config) -> Any:
    """A whole table on disk as the model reads it, for a reference or a check."""
    source = Source.open(path, "reference")
    names = source.schema().names
    ids = [name for name in config.id or () if name in names]  # a reference need not have them
    layout = match(names, graph, ids, config.columns)
    whole = source.read(layout.needed)
    table = layout.model_table(whole, graph, integers=True)
    bad = layout.inexact(whole, graph) | bad_rows(table, graph)
    if bad:
        row, why = next(iter(bad.items()))
        raise InputError(f"Row {row} of {path} cannot be used: {why.rstrip('.')}.")
    return table


def _load(config: Config, path: str) -> Any:
    return modelfiles.load_model(path, trust_pickle=bool(config.trust_pickle), trusted=config.trust or ())


def _ensemble(config: Config, ensemble: Ensemble) -> Graph:
    """The average or stack that a configuration describes."""
    if ensemble.output not in (None, "margin", "probability", "prediction"):
        raise InputError(f'output of the ensemble must be "probability" or "margin"; got {ensemble.output!r}.')
    output = "margin" if ensemble.output == "margin" else None
    members = [_member(config, m) for m in ensemble.members]
    if ensemble.kind == "average":
        if ensemble.head is not None:
            raise InputError('An ensemble of kind "average" has weights, not a head; for a head use kind "stack".')
        return compose.average(members, ensemble.weights, output=output)
    if ensemble.kind != "stack":
        raise InputError(f'The kind of an ensemble must be "stack" or "average"; got {ensemble.kind!r}.')
    if (ensemble.head is None) == (ensemble.weights is None):
        raise InputError('An ensemble of kind "stack" must have a head or weights, and not both.')
    head = list(ensemble.weights or ()) if ensemble.head is None else _load(config, ensemble.head)
    return compose.stack(members, head, passthrough=ensemble.passthrough, output=output)


def _member(config: Config, member: Member) -> Graph:
    graph = import_model(_load(config, member.file))
    return graph if member.scores is None else graph.then(_ecdf(member.scores))


def _output(config: Config, graph: Graph, target: Any, table: Any) -> Any:
    """What to explain: None, "margin" or an ECDF."""
    asked = config.output or "probability"
    if asked not in ("probability", "prediction", "margin", "rank"):
        raise InputError(f"--output must be margin, probability or rank; got {asked!r}.")
    if asked != "rank":
        if config.scores is not None:
            raise InputError("--scores must be given with --output rank only; leave it out.")
        return "margin" if asked == "margin" else None
    if config.scores is None:
        raise InputError("--output rank needs --scores: a file with one column of scores, or 'reference' for its own.")
    if config.scores != "reference":
        return _ecdf(config.scores)
    own = Scorer.of(graph, None, target).own(read_rows(table, graph, what="reference"))
    if own.shape[1] != 1:
        raise InputError("--scores reference needs one score a row; choose one output with --target.")
    return compose.SmoothedECDF.fit(own[:, 0])


def _ecdf(path: str) -> compose.SmoothedECDF:
    """A saved ECDF, or one fitted to a table of scores with one column."""
    if Path(path).suffix == ".json":
        return compose.SmoothedECDF.load(path)
    source = Source.open(path, "scores")
    names = source.schema().names
    if len(names) != 1:
        raise InputError(f"scores must be a table with one column; {path} has {len(names)}.")
    return compose.SmoothedECDF.fit(_numbers(source.read().column(0), f"The scores in {path}"))


def _numbers(column: Any, what: str) -> Any:
    """A column of a table, of numbers or text, as float64."""
    try:
        return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)
    except (ValueError, NotImplementedError) as error:
        raise InputError(f"{what} must be numbers: {' '.join(str(error).split()).rstrip('.')}.") from None


def _weights(config: Config) -> Any:
    """The reference's weights, from the column that --weights names."""
    if config.weights is None:
        return None
    path = config.need("reference", "--reference")
    return _numbers(Source.open(path, "reference").read([config.weights]).column(0), f"The weights in {path}")


def _reference(config: Config, scorer: Scorer, table: Any, weights: Any) -> Any:
    """The reference: the whole table, or its rows that pass the cutoff; sampled if a number of rows is given."""
    if config.cutoff is None and config.reference_rows is None:
        return table
    own = scorer.own(read_rows(table, scorer.graph, what="reference"))
    if own.shape[1] != 1 and config.cutoff is not None:
        raise InputError("--cutoff needs one score a row; choose one output with --target.")
    scores = own[:, 0] if own.shape[1] == 1 else None
    if config.cutoff is None:
        chosen = references.all_applicants(table, weights, scores=scores, higher_is_better=config.higher_is_better)
    else:
        if config.higher_is_better is None:
            raise InputError("--cutoff needs --higher-is-better or --lower-is-better, which decides who passes.")
        chosen = references.approved(
            table, scores, config.cutoff, higher_is_better=config.higher_is_better, weights=weights
        )
    rows = config.reference_rows
    if rows is not None and rows < 1:
        raise InputError(f"--reference-rows must be a positive whole number; got {rows}.")
    return chosen if rows is None or rows >= len(chosen) else references.sample(chosen, rows, config.seed or 0)


def _target(config: Config, graph: Graph) -> Any:
    """An output by name or position: digits are a position unless an output or class has that name."""
    asked = config.target
    if asked is None or asked in graph.labels or not asked.isdigit():
        return asked
    return int(asked)
