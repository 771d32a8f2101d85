"""The commands themselves; heavy packages are imported here, not at start-up."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._common.reason_options import ReasonOptions
from .._explain.explanation import Explanation
from .._explain.scorer import Scorer
from .._io.durable import permissions, replacing
from .._io.tables import listed
from .._output.report import report_path
from .._reasons.ledger import is_signed, read_ledger
from .._reasons.verification import verify_ledger
from ..batch.drift import Drift
from ..batch.drift import monitor as compare
from ..batch.ids import checked_policy
from ..batch.layout import match
from ..batch.reasons import reason_task
from ..batch.run import Job, run_task, settler_of
from ..batch.sources import Source
from ..batch.targets import head_of_source
from ..batch.tasks import RowReader, Task, check_on_error, credit_task, not_finite
from ..errors import InputError, LedgerError, UnsupportedModelError
from ..graph import Graph, TreeEnsemble, topological
from ..importers import import_model
from .build import build_explainer, build_model, ingredients, is_explainer
from .config import Config
from .console import note, progress, say


def explain(config: Config) -> None:
    """Write the credits of every row of a table."""
    source = Source.open(config.need("data", "DATA"))
    out = config.need("out", "--out")
    by_spark = _by_spark(config)
    explainer = build_explainer(config)
    if by_spark:
        from .sparkjob import explain as explain_by_spark

        explain_by_spark(explainer, config, source)
        return
    task = credit_task(
        explainer, source.schema(), id_cols=config.id or (), columns=config.columns,
        settler=settler_of(explainer, config.settle, **_settling(config)),
    )  # fmt: skip
    _run(task, source, out, config)


def reasons(config: Config) -> None:
    """Write the reasons of every refused row of a table."""
    source = Source.open(config.need("data", "DATA"))
    out = config.need("out", "--out")
    by_spark = _by_spark(config)
    explainer = build_explainer(config, refuses=True)
    if by_spark:
        from .sparkjob import reasons as reasons_by_spark

        reasons_by_spark(explainer, config, source)
        return
    settler = settler_of(explainer, config.settle, **_settling(config))
    task = reason_task(explainer, source.schema(), id_cols=config.id or (), settler=settler, **reason_options(config))
    _tell_about_texts(task)
    _run(task, source, out, config)


def reason_options(config: Config) -> dict[str, Any]:
    """The options for reasons, as keywords of `reason_task`."""
    given = {f.name: value for f in fields(ReasonOptions) if (value := getattr(config, f.name)) is not None}
    return given | {
        "columns": config.columns,
        "cutoff": config.cutoff,
        "everybody": bool(config.everybody),
        "audit": config.audit is not None,
    }


def _settling(config: Config) -> dict[str, Any]:
    """The options for --settle beside its confidence, as keywords of `settler_of`."""
    top = 4 if config.top is None else config.top
    return {"top": top, "higher_is_better": config.higher_is_better, "seed": config.seed or 0}


def _by_spark(config: Config) -> bool:
    """Whether --engine chooses Spark."""
    if config.engine not in (None, "local", "spark"):
        raise InputError(f"--engine must be local or spark; got {config.engine!r}.")
    if config.engine == "spark" and config.settle is not None:
        raise InputError("--settle needs --engine local.")
    return config.engine == "spark"


def _tell_about_texts(task: Task) -> None:
    """Warn of features without statements, and of statements for unknown features."""
    texts = {s["feature"] for s in task.record["statements"] or ()}
    features = set(task.record["ranges"])
    if texts and features - texts:
        note(f"Warning: there is no statement for {listed(sorted(features - texts))}.")
    if texts - features:
        note(f"Warning: statements are given for {listed(sorted(texts - features))}, not a feature or group.")


def _run(task: Task, source: Source, out: str, config: Config) -> None:
    """Run a batch job with the options of a command, and say what was written."""
    quiet = bool(config.quiet)
    if not task.explainer.scorer.graph.named and config.columns is None:
        note(
            f"The model has no column names: its columns are, in order, {', '.join(task.layout.columns)}.",
            bool(config.quiet),
        )
    with progress(quiet) as tell:
        job = Job(
            on_error=on_error_of(config), rejects=config.rejects, batch_rows=config.batch_rows,
            restart=bool(config.restart), progress=tell, records=config.audit, max_error=config.max_error,
            ids=checked_policy(config.ids or "warn"), summary=config.summary,
            skip_if_done=bool(config.skip_if_done), mode=mode_of(config), key=key_of(config),
        )  # fmt: skip
        done = run_task(task, source, out, job)
    if done.skipped:
        note(f"{done.target}: done already, {done.written:,} lines from {done.rows:,} rows.", bool(config.quiet))
        return
    if done.resumed:
        note(f"{done.resumed:,} rows were done already by an earlier, interrupted run.", bool(config.quiet))
    if done.rejected:
        note(f"{done.rejected:,} of {done.rows:,} rows could not be explained; {done.rejects} has the reasons.")
    note(f"{done.target}: {done.written:,} lines from {done.rows:,} rows.", bool(config.quiet))


def on_error_of(config: Config) -> Any:
    asked = config.on_error or "fail"
    check_on_error(asked)
    return asked


def mode_of(config: Config) -> int | None:
    """The mode of new files: octal digits, as chmod takes them."""
    if config.file_mode is None:
        return None
    try:
        mode = int(config.file_mode, 8)
    except ValueError:
        mode = 0
    if mode & 0o600 != 0o600 or mode & ~0o666:
        raise InputError(
            f"--file-mode must be octal digits and let the owner read and write, as 640; got {config.file_mode!r}."
        )
    return mode


def report(config: Config) -> None:
    """Write an HTML report about the first rows of a table."""
    source = Source.open(config.need("data", "DATA"))
    out = report_path(config.need("out", "--out"))
    _see_all_rows(config.against)
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
        note(f"The report is about the first {rows:,} of {total:,} rows; --rows changes that.", bool(config.quiet))
    bad = task.reader.check(piece.table)
    if bad:
        row, why = next(iter(bad.items()))
        raise InputError(f"Row {row} of {source.path} cannot be explained: {why.rstrip('.')}.")
    explanation = explainer(task.layout.model_table(piece.table, explainer.scorer.graph), paths=min(50, rows))
    explanation = task.named(explanation, piece.table, np.arange(len(explanation)), piece.numbers)
    drift = _drift_of(explanation, config, source) if config.against is not None else None
    with permissions(mode_of(config)):
        explanation.report(out, title=config.title, drift=drift)
    note(f"{out}: {len(explanation):,} rows.", bool(config.quiet))


def _drift_of(explanation: Explanation, config: Config, source: Source) -> Drift:
    """The drift of the rows of a report against an earlier run."""
    earlier = str(config.against)
    found = compare(
        explanation, earlier, ids=config.id, against_data=config.against_data,
        top=4 if config.top is None else config.top, higher_is_better=config.higher_is_better, seed=config.seed or 0,
    )  # fmt: skip
    return replace(found, this=source.path.name, that=Path(earlier).name)


def _see_all_rows(earlier: str | None) -> None:
    """Raise, before anything is explained, unless an earlier run is about all applicants, as a report is."""
    if earlier is None:
        return
    is_ledger = earlier.endswith((".jsonl", ".jsonl.gz"))
    if is_ledger or head_of_source(Source.open(earlier, "--against")).get("kind") == "reasons":
        raise InputError(
            f"--against of a report must be a result of `gigrad explain`, which has all rows; {earlier} has only "
            "rows with reasons. Compare such results with `gigrad monitor`."
        )


def verify(config: Config) -> None:
    """Verify ledgers by their own hashes, the key, and the model."""
    place, key = Path(config.need("ledger", "LEDGER")), key_of(config)
    found = [place]
    if place.is_dir():
        found = sorted(p for p in place.rglob("*.jsonl*") if p.suffix in (".jsonl", ".gz"))
    if not found:
        raise InputError(f"{place} must be a ledger or a folder of them; the folder has no .jsonl or .jsonl.gz file.")
    against = _verified_against(config)
    for path in found:
        if against is None:
            count = sum(1 for _ in read_ledger(path, key))
            told = f"{path}: {count:,} records, unchanged"
        else:
            done = verify_ledger(path, key=key, n_threads=config.threads, **against)
            if not done.ok:
                row, differences = done.different[0]
                raise LedgerError(
                    f"{len(done.different):,} of {done.records:,} records of {path} are not reproduced by the model; "
                    f"first that of {row!r}: {'; '.join(differences)}."
                )
            told = (
                f"{path}: {done.records:,} records, unchanged, and reproduced by the model (largest difference of a "
                f"credit {done.largest_credit_difference:.3g})"
            )
        unchecked = key is None and is_signed(path)
        say(f"{told}{', signed by this key' if key else '; its signature was not checked (--key-file)' * unchecked}")


def _verified_against(config: Config) -> dict[str, Any] | None:
    """The model and reference as `verify_ledger` takes them; None where there are none."""
    if config.model is None and config.ensemble is None:
        return None
    if config.ensemble is None and is_explainer(str(config.model)):
        return {"model": build_explainer(config, refuses=True)}
    made = ingredients(config)
    return {"model": made.scorer, "reference": made.reference, "weights": made.weights}


def key_of(config: Config) -> bytes | None:
    """The key that records are signed with."""
    if config.key_file is None:
        return None
    try:
        key = Path(config.key_file).read_bytes()
    except OSError as error:
        raise InputError(
            f"The key {config.key_file} cannot be read: {(error.strerror or str(error)).lower()}."
        ) from None
    if len(key) < 16:
        raise InputError(f"A key must have 16 bytes or more; {config.key_file} has {len(key)}.")
    return key


def monitor(config: Config) -> None:
    """Compare two runs, and print or write the drift."""
    out = None if config.out is None else Path(config.out)
    if out is not None and out.suffix.lower() not in (".json", ".csv", ".png", ".svg", ".pdf"):
        raise InputError(f"--out must end in .json, .csv, .png, .svg or .pdf; got {out}.")
    found = compare(
        config.need("this", "THIS"), config.need("against", "--against"), ids=config.id, data=config.this_data,
        against_data=config.against_data, top=4 if config.top is None else config.top,
        higher_is_better=config.higher_is_better, seed=config.seed or 0,
    )  # fmt: skip
    say(str(found))
    if out is None:
        return
    with permissions(mode_of(config)):
        if out.suffix.lower() == ".json":
            found.to_json(out)
        elif out.suffix.lower() == ".csv":
            found.to_csv(out)
        else:
            from ..plots import drift

            figure = drift(found)
            with replacing(out) as aside:
                figure.savefig(aside, format=out.suffix[1:].lower())
    note(f"{out}: written.", bool(config.quiet))


def save(config: Config) -> None:
    """Write a portable file: an explainer if there is a reference, else the model alone."""
    out = config.need("out", "--out")
    if config.reference is None and config.method is None:
        with permissions(mode_of(config)):
            import_model(build_model(config)).save(out)
        note(f"{out}: the model, without a reference.", bool(config.quiet))
        return
    explainer = build_explainer(config)
    if config.distill is not None:
        explainer = explainer.distilled(config.distill)
    with permissions(mode_of(config)):
        explainer.save(out)
    note(f"{out}: the model with {len(explainer.reference):,} reference rows.", bool(config.quiet))


def check(config: Config) -> None:
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
        _compare(graph, config)


def _compare(graph: Graph, config: Config) -> None:
    """`check` with data: count rows where the graph and the model itself give other scores."""
    source = Source.open(str(config.data))
    layout = match(source.schema().names, graph, config.id or (), config.columns)
    scorer = Scorer.of(graph, "margin" if graph.no_score else None, None)
    reader = RowReader(scorer, layout)
    count = bad = 0
    first, worst = "", 0.0
    with progress(bool(config.quiet)) as tell:
        total = source.rows()
        for piece in source.pieces(layout.needed, 8192):
            rows, kept, wrong = reader.read(piece.table)
            if rows is not None:
                own = scorer.own(rows)
                wrong |= not_finite(own, kept)
                graph_says = scorer.evaluated(rows.matrix)
                worst = max(worst, float(np.nanmax(np.abs(graph_says - own), initial=0.0)))
            found = [(piece.numbers[row], why) for row, why in wrong.items()] + piece.broken
            if found and not first:
                first = "row {}: {}".format(*min(found))
            bad += len(found)
            count += piece.table.num_rows + len(piece.broken)
            if tell is not None:
                tell("comparing", count, total)
    say(f"Rows         {count:,} read, {bad:,} that the model cannot score{f' ({first})' if first else ''}")
    if graph.witnesses:
        say(f"Predictions  equal to the model's own, up to its rounding; the largest difference is {worst:.3g}")
    else:
        say("Predictions  not compared: a portable file has no model library to compare with")
    if bad:
        raise InputError(f"{bad:,} of {count:,} rows of {source.path} cannot be explained with this model.")


def _parts(graph: Graph) -> str:
    """A description of the nodes of a graph."""
    counts: dict[str, int] = {}
    for node in topological(graph.score, graph.margin):
        if isinstance(node, TreeEnsemble):
            counts["trees"] = counts.get("trees", 0) + len(node.roots)
        elif node.summary_name:
            counts[node.summary_name] = counts.get(node.summary_name, 0) + 1
    return ", ".join(f"{n:,} {name}" if n > 1 or name == "trees" else name for name, n in counts.items()) or "nothing"


def _portable(graph: Graph) -> str:
    """Whether the model can be saved as a portable file, and why not."""
    from ..portable.nodes import Writer

    try:
        Writer(graph.input, graph.score, graph.margin)
    except UnsupportedModelError as error:
        return f"no: {error}"
    return "yes"
