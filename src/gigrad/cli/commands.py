"""What each command does, once it is known what was asked; everything heavy is imported here, not at start-up."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from .._explain.explainer import Explainer
from .._explain.scorer import Scorer
from .._io.durable import keep_apart, writing
from .._io.tables import listed
from .._output.report import report_path
from ..batch.layout import match
from ..batch.run import run_task
from ..batch.sources import Source
from ..batch.targets import check_writable
from ..batch.tasks import RowReader, Task, credit_task, fail_named, not_finite
from ..errors import InputError, OutputError, UnsupportedModelError
from ..graph import Concat, Elementwise, Graph, Input, Select, TreeEnsemble, evaluate, topological
from ..importers import import_model
from .build import build_explainer, build_model, is_explainer
from .config import Config
from .console import note, progress, say


def explain(config: Config, restart: bool, quiet: bool) -> None:
    """Credits of every row of a table."""
    source = Source.open(config.need("data", "DATA"))
    out = config.need("out", "--out")
    explainer = build_explainer(config)
    if config.engine not in (None, "local", "spark"):
        raise InputError(f"--engine must be local or spark; got {config.engine!r}.")
    if config.engine == "spark":
        _spark(explainer, config, source, out, quiet)
        return
    task = credit_task(explainer, source.schema(), id_cols=config.id or (), columns=config.columns)
    _run(task, source, out, config, restart, quiet)


def reasons(config: Config, restart: bool, quiet: bool) -> None:
    """Reasons of every refused row of a table."""
    from ..batch.reasons import reason_task

    source = Source.open(config.need("data", "DATA"))
    out = config.need("out", "--out")
    explainer = build_explainer(config, refuses=True)
    task = reason_task(
        explainer,
        source.schema(),
        id_cols=config.id or (),
        columns=config.columns,
        top=4 if config.top is None else config.top,
        statements=config.statements,
        groups=config.groups,
        exclude=config.exclude,
        min_share=config.min_share or 0.0,
        higher_is_better=config.higher_is_better,
        cutoff=config.cutoff,
        everybody=bool(config.everybody),
        audit=config.audit is not None,
        permitted=config.permitted,
    )
    _tell_about_texts(task)
    _run(task, source, out, config, restart, quiet)


def _tell_about_texts(task: Task) -> None:
    """Warn of features that the statements leave out, and of texts for what is no feature."""
    texts = {s["feature"] for s in task.record["statements"] or ()}
    features = set(task.record["ranges"])
    if texts and features - texts:
        note(f"Warning: there is no statement for {listed(sorted(features - texts))}.")
    if texts - features:
        note(f"Warning: statements are given for {listed(sorted(texts - features))}, which is no feature or group.")


def _run(task: Task, source: Source, out: str, config: Config, restart: bool, quiet: bool) -> None:
    if not task.explainer.scorer.graph.named and config.columns is None:
        note(f"The model knows no column names: its columns are, in order, {', '.join(task.layout.columns)}.", quiet)
    _keep_apart(config, {"the result": out, "the rejects": config.rejects, "the records": config.audit})
    with progress(quiet) as tell:
        done = run_task(
            task,
            source,
            out,
            on_error=_on_error(config),
            rejects=config.rejects,
            batch_rows=config.batch_rows,
            restart=restart,
            progress=tell,
            records=config.audit,
        )
    if done.resumed:
        note(f"{done.resumed:,} rows were done already by an earlier, interrupted run.", quiet)
    if done.rejected:
        note(f"{done.rejected:,} of {done.rows:,} rows could not be explained; {done.rejects} says which and why.")
    note(f"{done.target}: {done.written:,} lines from {done.rows:,} rows.", quiet)


def _keep_apart(config: Config, written: dict[str, str | None]) -> None:
    names = ("model", "reference", "scores", "statements")
    read = {f"the {name}": getattr(config, name) for name in names}
    members = () if config.ensemble is None else config.ensemble.members
    keep_apart(read | {f"a member of the ensemble, {m.file}": m.file for m in members}, written)


def _on_error(config: Config) -> Any:
    asked = config.on_error or "fail"
    if asked not in ("fail", "skip", "null"):
        raise InputError(f"--on-error must be fail, skip or null; got {asked!r}.")
    return asked


def _spark(explainer: Explainer, config: Config, source: Source, out: str, quiet: bool) -> None:
    """The same by Spark: folders of Parquet files, whole or not at all."""
    from .. import spark

    folder, on_error = Path(out), _on_error(config)
    beside = Path(config.rejects or f"{folder}.rejects")
    _keep_apart(config, {"the result": out, "the rejects": str(beside)})
    keep_apart({"the data": source.path}, {"the result": folder, "the rejects": beside})
    if source.format != "parquet" or folder.suffix:
        raise InputError("--engine spark reads Parquet files and writes a folder; give --out a name without an ending.")
    for path in (folder, beside) if on_error != "fail" else (folder,):
        check_writable(path)
        if path.exists():
            raise OutputError(f"{path} exists already, and Spark does not replace a folder; choose another name.")
    frame = spark.local_session().read.parquet(*(str(file.absolute()) for file in source.files))
    rejected = spark.rejects(frame, explainer, id_cols=config.id or (), columns=config.columns)
    if on_error == "fail":
        first = rejected.head()
        if first is not None:
            *ids, why = first
            fail_named(f"Row {', '.join(map(str, ids))}" if ids else "A row", why)
    found = spark.explain(frame, explainer, id_cols=config.id or (), columns=config.columns, on_error=on_error)
    if on_error != "fail":
        _write_by_spark(rejected, beside)
        count = Source.open(beside).rows()
        if count:
            note(f"{count:,} rows could not be explained; {beside} says which and why.")
    _write_by_spark(found, folder)
    note(f"{folder}: written by Spark.", quiet)


def _write_by_spark(frame: Any, folder: Path) -> None:
    """Aside and then renamed: a job that fails leaves nothing that looks finished."""
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        frame.write.parquet(str(aside.absolute()))
        with writing(folder):
            os.rename(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def report(config: Config, quiet: bool) -> None:
    """One HTML file about the first rows of a table."""
    source = Source.open(config.need("data", "DATA"))
    out = report_path(config.need("out", "--out"))
    explainer = build_explainer(config)
    if len(explainer.scorer.output_names) != 1:
        names = ", ".join(map(repr, explainer.scorer.output_names))
        raise InputError(f"A report is about one output; choose one with --target: {names}.")
    task = credit_task(explainer, source.schema(), id_cols=config.id or (), columns=config.columns)
    rows = 1000 if config.rows is None else config.rows
    if rows < 1:
        raise InputError(f"--rows must be a positive whole number; got {rows}.")
    piece = next(iter(source.pieces(task.layout.needed, rows)), None)
    if piece is None or not piece.table.num_rows:
        raise InputError(f"{source.path} has no rows to report on.")
    total = source.rows()
    if total > rows:
        note(f"The report is about the first {rows:,} of {total:,} rows; --rows changes that.", quiet)
    bad = task.reader.check(piece.table)
    if bad:
        row, why = next(iter(bad.items()))
        raise InputError(f"Row {row} of {source.path} cannot be explained: {why.rstrip('.')}.")
    explanation = explainer(task.layout.model_table(piece.table, explainer.scorer.graph), paths=min(50, rows))
    explanation = task.named(explanation, piece.table, np.arange(len(explanation)), piece.numbers)
    explanation.report(out, title=config.title)
    note(f"{out}: {len(explanation):,} rows.", quiet)


def save(config: Config, quiet: bool) -> None:
    """A portable file: an explainer where there is a reference, else the model alone."""
    out = config.need("out", "--out")
    _keep_apart(config, {"the file": out})
    if config.reference is None:
        import_model(build_model(config)).save(out)
        note(f"{out}: the model, without a reference.", quiet)
        return
    explainer = build_explainer(config)
    explainer.save(out)
    note(f"{out}: the model with {len(explainer.reference):,} reference rows.", quiet)


def check(config: Config, quiet: bool) -> None:
    """Import a model, say what it is made of, and compare it with its own predictions on a table."""
    if config.ensemble is None and is_explainer(config.need("model", "MODEL")):
        graph: Graph = Graph.load(str(config.model))
    else:
        graph = import_model(build_model(config))
    say(f"Model        {graph.label}, {len(graph.columns)} columns{'' if graph.named else ' known by position only'}")
    say(f"Made of      {_parts(graph)}")
    say(f"Outputs      {', '.join(graph.output_names)}")
    say(f"Portable     {_portable(graph)}")
    if config.data is not None:
        _compare(graph, config, quiet)


def _compare(graph: Graph, config: Config, quiet: bool) -> None:
    source = Source.open(str(config.data))
    layout = match(source.schema().names, graph, config.id or (), config.columns)
    scorer = Scorer.of(graph, "margin" if graph.no_score else None, None)
    reader = RowReader(scorer, layout)
    count = bad = 0
    first, worst = "", 0.0
    with progress(quiet) as tell:
        total = source.rows()
        for piece in source.pieces(layout.needed, 8192):
            rows, kept, wrong = reader.read(piece.table)
            if rows is not None:
                own = scorer.own(rows)
                wrong |= not_finite(own, kept)
                graph_says = evaluate((scorer.node,), {graph.input: rows.matrix})[scorer.node]
                worst = max(worst, float(np.nanmax(np.abs(graph_says - own), initial=0.0)))
            found = [(piece.numbers[row], why) for row, why in wrong.items()] + piece.broken
            if found and not first:
                first = "row {}: {}".format(*min(found))
            bad += len(found)
            count += piece.table.num_rows + len(piece.broken)
            if tell is not None:
                tell("comparing", count, total)
    say(f"Rows         {count:,} read, {bad:,} that the model cannot take{f' ({first})' if first else ''}")
    if graph.witnesses:
        say(f"Predictions  the same as the model's own, to its rounding; the largest difference is {worst:.3g}")
    else:
        say("Predictions  not compared: a portable file has no model's library to ask")
    if bad:
        raise InputError(f"{bad:,} of {count:,} rows of {source.path} cannot be explained with this model.")


def _parts(graph: Graph) -> str:
    """What a graph is made of, in the words of its nodes."""
    counts: dict[str, int] = {}
    for node in topological(graph.score, graph.margin):
        if isinstance(node, TreeEnsemble):
            counts["trees"] = counts.get("trees", 0) + len(node.roots)
        elif not isinstance(node, (Input, Select, Concat)):
            name = node.name if isinstance(node, Elementwise) else type(node).__name__
            counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{n:,} {name}" if n > 1 or name == "trees" else name for name, n in counts.items()) or "nothing"


def _portable(graph: Graph) -> str:
    from ..portable.nodes import Writer

    try:
        Writer(graph.input, graph.score, graph.margin)
    except UnsupportedModelError as error:
        return f"no: {error}"
    return "yes"
