"""The command `gigrad`: options in, one of the functions of `commands` out.

Only typer is imported at start-up; what a command needs is imported when it runs, so that `--help` is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._common.optional import require
from .options import (
    AnyFile,
    Audit,
    BatchRows,
    Better,
    Columns,
    ConfigFile,
    CornerTol,
    Cutoff,
    Data,
    Discrete,
    Engine,
    Everybody,
    Exclude,
    Folder,
    GigFile,
    Html,
    Id,
    MinShare,
    Model,
    Nominal,
    OnError,
    Out,
    Output,
    Permitted,
    Quiet,
    Reference,
    ReferenceRows,
    Rejects,
    ReportRows,
    Restart,
    SaveConfig,
    Scores,
    Seed,
    Statements,
    Target,
    Threads,
    Title,
    Tol,
    Top,
    Trust,
    TrustPickle,
    Version,
    Weights,
)

if TYPE_CHECKING:
    import typer
else:
    typer = require("typer", "cli")

app = typer.Typer(
    name="gigrad",
    help="Exact credit for the scores of models and ensembles (Generalized Integrated Gradients).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's help takes twice as long as all the rest of it
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a fault of gigrad's own, 2 wrong usage, 3 input that cannot be used, 4 a model that "
    "cannot be used, 5 output that cannot be written, 6 an interrupted run in the way, 7 a package that is not "
    "installed, 130 interrupted.",
)


def _example(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  $ {line}" for line in lines)  # \b: these lines are not to be wrapped


@app.command(
    short_help="The credit of every column for every row's score",
    epilog=_example(
        "gigrad explain model.json applicants.parquet --reference approved.parquet --id number -o credits.parquet",
        "gigrad explain model.txt applicants.csv --reference approved.csv --output margin -o credits.csv",
        "gigrad explain explainer.gig folder/ --on-error skip -o credits/",
    ),
)
def explain(
    model: Model = None, data: Data = None, reference: Reference = None, out: Out = None, output: Output = None,
    scores: Scores = None, target: Target = None, columns: Columns = None, id_cols: Id = None,
    weights: Weights = None, discrete: Discrete = None, nominal: Nominal = None,
    reference_rows: ReferenceRows = None, cutoff: Cutoff = None,
    higher_is_better: Better = None, tol: Tol = None, corner_tol: CornerTol = None, seed: Seed = None,
    threads: Threads = None, batch_rows: BatchRows = None, on_error: OnError = None, rejects: Rejects = None,
    engine: Engine = None, restart: Restart = False, trust_pickle: TrustPickle = None, trust: Trust = None,
    config: ConfigFile = None, save_config: SaveConfig = None, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Explain every row of a table: how much of its score, against a reference, each column deserves.

    Killed at any moment, the same command goes on where it stopped.
    """
    given = _given(locals())
    with _session(resumable=True):
        from . import commands

        commands.explain(_config(given, config, save_config), restart, quiet)


@app.command(
    short_help="Adverse-action reasons of every refused applicant",
    epilog=_example(
        "gigrad reasons model.json applicants.parquet --reference past.parquet --cutoff 0.2 --lower-is-better "
        "--statements reasons.toml --id applicant_id --audit records.jsonl.gz -o reasons.parquet"
    ),
)
def reasons(
    model: Model = None, data: Data = None, reference: Reference = None, out: Out = None, cutoff: Cutoff = None,
    higher_is_better: Better = None, statements: Statements = None, top: Top = None, exclude: Exclude = None,
    min_share: MinShare = None, permitted: Permitted = None, everybody: Everybody = None, audit: Audit = None,
    output: Output = None, scores: Scores = None, target: Target = None, columns: Columns = None, id_cols: Id = None,
    weights: Weights = None, discrete: Discrete = None, nominal: Nominal = None, reference_rows: ReferenceRows = None,
    tol: Tol = None, corner_tol: CornerTol = None, seed: Seed = None, threads: Threads = None,
    batch_rows: BatchRows = None, on_error: OnError = None, rejects: Rejects = None, restart: Restart = False,
    trust_pickle: TrustPickle = None, trust: Trust = None, config: ConfigFile = None, save_config: SaveConfig = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Give every refused applicant the reasons, worst first, as a table with a line a reason.

    The reference is those of the table of --reference who pass the cutoff.
    """
    given = _given(locals())
    with _session(resumable=True):
        from . import commands

        commands.reasons(_config(given, config, save_config), restart, quiet)


@app.command(
    short_help="One HTML file that shows an explanation",
    epilog=_example("gigrad report model.json applicants.parquet --reference approved.parquet -o report.html"),
)
def report(
    model: Model = None, data: Data = None, reference: Reference = None, out: Html = None, title: Title = None,
    rows: ReportRows = None, output: Output = None, scores: Scores = None, target: Target = None,
    columns: Columns = None, id_cols: Id = None, weights: Weights = None,
    discrete: Discrete = None, nominal: Nominal = None, reference_rows: ReferenceRows = None,
    cutoff: Cutoff = None, higher_is_better: Better = None, tol: Tol = None, corner_tol: CornerTol = None,
    seed: Seed = None, threads: Threads = None, trust_pickle: TrustPickle = None, trust: Trust = None,
    config: ConfigFile = None, save_config: SaveConfig = None, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write one HTML file that shows an explanation: no network, no server."""
    given = _given(locals())
    with _session():
        from . import commands

        commands.report(_config(given, config, save_config), quiet)


@app.command(
    short_help="A model and its reference as one file that explains anywhere",
    epilog=_example(
        "gigrad save model.json --reference approved.parquet --output margin -o explainer.gig",
        "gigrad save model.json -o model.gig",
    ),
)
def save(
    model: Model = None, reference: Reference = None, out: GigFile = None, output: Output = None,
    scores: Scores = None, target: Target = None, columns: Columns = None, id_cols: Id = None,
    weights: Weights = None, discrete: Discrete = None, nominal: Nominal = None,
    reference_rows: ReferenceRows = None, cutoff: Cutoff = None,
    higher_is_better: Better = None, tol: Tol = None, corner_tol: CornerTol = None, seed: Seed = None,
    trust_pickle: TrustPickle = None,
    trust: Trust = None, config: ConfigFile = None, save_config: SaveConfig = None, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Save a model and its reference to one file that explains anywhere, without the model's library."""
    given = _given(locals())
    with _session():
        from . import commands

        commands.save(_config(given, config, save_config), quiet)


@app.command(
    short_help="What a model is made of, and whether it is imported exactly",
    epilog=_example("gigrad check model.json applicants.parquet", "gigrad check ensemble.gig"),
)
def check(
    model: Model = None, data: Data = None, columns: Columns = None, id_cols: Id = None,
    trust_pickle: TrustPickle = None, trust: Trust = None, config: ConfigFile = None, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Import a model, say what it is made of, and compare it with its own predictions on a table."""
    given = _given(locals())
    with _session():
        from . import commands

        commands.check(_config(given, config, None), quiet)


@app.command(
    short_help="What a result or an explainer holds",
    epilog=_example("gigrad info credits.parquet", "gigrad info explainer.gig"),
)
def info(file: AnyFile) -> None:
    """Say what a result or an explainer holds, and what it stands on."""
    with _session():
        from .info import info as tell

        tell(file)


@app.command(short_help="A lender's story on the German credit data")
def demo(folder: Folder = "demo-output") -> None:
    """Tell a lender's story on the German credit data, and write its files."""
    with _session():
        from .._io.durable import writing
        from ..demo import main as tell

        with writing(Path(folder)):
            Path(folder).mkdir(parents=True, exist_ok=True)
        tell(folder)


@app.callback()
def gigrad(version: Version = False) -> None:
    pass  # what it takes is done before a command is looked for


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options as a configuration names them, without those that are about this call alone."""
    skip = ("restart", "quiet", "config", "save_config")
    names = {"id_cols": "id"}
    found = {names.get(k, k): v for k, v in options.items() if k not in skip and v is not None}
    if "columns" in found:
        found["columns"] = tuple(name.strip() for name in found["columns"].split(","))
    return {k: tuple(v) if isinstance(v, list) else v for k, v in found.items() if v != []}


def _config(given: dict[str, Any], path: Path | None, save_to: Path | None) -> Any:
    from .config import Config, read_config, write_config

    config = Config(**given)
    if path is not None:
        config = config.over(read_config(path))
    if save_to is not None:
        write_config(config, save_to)
    return config


def _session(resumable: bool = False) -> Any:
    from .console import guarded

    return guarded(resumable)
