"""The command `gigrad`: parses options and calls one of the functions of `commands`.

Only typer is imported at start-up; a command imports what it needs when it runs, so that `--help` is quick. The
options of each command are made from the fields of `Config`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from .._common.optional import require
from .._common.reason_options import ReasonOptions
from .options import OPTIONS, Config, Option

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
    rich_markup_mode=None,  # rich's help triples the time of --help
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a bug in gigrad, 2 wrong usage, 3 invalid input, 4 an unusable model, 5 output that "
    "cannot be written, 6 an interrupted run with other inputs or settings, 7 a package that is not installed, 8 less "
    "accurate than --max-error allows, 9 records that do not verify, 130 interrupted, 143 terminated.",
)


def _command(name: str, short: str, text: str, *examples: str, resumable: bool = False) -> None:
    """Register a command that calls the function of `commands` with the same name, with all of its options."""
    taken = {key: option for key, option in OPTIONS.items() if name in option.commands}

    def call(**given: Any) -> None:
        from .console import guarded

        with guarded(resumable):
            from ..batch.summary import watched
            from . import commands

            config = _config(given)
            with watched(config.summary):
                getattr(commands, name)(config)

    hints = get_type_hints(Config)
    kinds = {key: _kind(hints[key], option, name) for key, option in taken.items()}
    call.__annotations__ = {**kinds, "return": None}
    call.__dict__["__signature__"] = inspect.Signature(
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for key, kind in kinds.items()
        ]
    )
    shown = "\b\nExamples:\n" + "\n".join(f"  $ {line}" for line in examples)  # \b: these lines are not to be wrapped
    app.command(name, short_help=short, help=text, epilog=shown)(call)


def _kind(hint: Any, option: Option, command: str) -> Any:
    """The type of an option as typer reads it."""
    if hint == tuple[str, ...] | None:
        hint = str | None if option.commas else list[str] | None
    said = option.helps.get(command, option.help)
    if command in option.argument:
        return Annotated[hint, typer.Argument(help=said, metavar=option.metavar)]
    return Annotated[hint, typer.Option(*option.names, help=said, metavar=option.metavar)]


_command(
    "explain",
    "The credit of every column for every row's score",
    "Explain every row of a table: how much of the difference between its score and the reference is due to each "
    "column.\n\nAn interrupted run is resumed by the same command.",
    "gigrad explain model.json applicants.parquet --reference approved.parquet --id number -o credits.parquet",
    "gigrad explain model.txt applicants.csv --reference approved.csv --output margin -o credits.csv",
    "gigrad explain explainer.gig folder/ --on-error skip -o credits/",
    resumable=True,
)
_command(
    "reasons",
    "Adverse-action reasons of every refused applicant",
    "Write the reasons of every refused applicant, largest first, one line for each reason.\n\n"
    "The reference is the rows of the table of --reference that pass the cutoff.",
    "gigrad reasons model.json applicants.parquet --reference past.parquet --cutoff 0.2 --lower-is-better "
    "--statements reasons.toml --id applicant_id --audit records.jsonl.gz -o reasons.parquet",
    "gigrad reasons card.csv applicants.csv --method below-maximum --cutoff 600 -o old_reasons.csv",
    resumable=True,
)
_command(
    "report",
    "An explanation as one HTML file",
    "Write an explanation as one HTML file that needs no network and no server.",
    "gigrad report model.json applicants.parquet --reference approved.parquet -o report.html",
)
_command(
    "save",
    "A model and its reference as one portable file",
    "Save a model and its reference to one file that explains without the model's library.",
    "gigrad save model.json --reference approved.parquet --output margin -o explainer.gig",
    "gigrad save model.json -o model.gig",
)
_command(
    "check",
    "The parts of a model, and whether it is imported exactly",
    "Import a model, describe its parts, and compare it with its own predictions on a table.",
    "gigrad check model.json applicants.parquet",
    "gigrad check ensemble.gig",
)

_command(
    "verify",
    "Whether audit records are unchanged, and reproduced by the model",
    "Verify a ledger of audit records, or every one in a folder: that no byte was changed since it was written, and "
    "that the model and its reference give every applicant the same credits and reasons.\n\n"
    "Without --model only the ledger itself is verified.",
    "gigrad verify records.jsonl.gz --model model.json --reference past.parquet --cutoff 0.2 --lower-is-better",
    "gigrad verify records/ --model explainer.gig --key-file key",
)

_command(
    "monitor",
    "What has changed between two runs",
    "Compare two results of `gigrad explain` or `gigrad reasons`, or two ledgers: how often each reason is given, how "
    "the credits are distributed, and which rows have other reasons although their data did not change.",
    "gigrad monitor june.parquet --against may.parquet --id number --lower-is-better",
    "gigrad monitor june.jsonl.gz --against may.jsonl.gz -o drift.png",
)


def _example(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  $ {line}" for line in lines)


@app.command(
    short_help="The contents of a result or an explainer",
    epilog=_example("gigrad info credits.parquet", "gigrad info explainer.gig"),
)
def info(
    file: Annotated[Path, typer.Argument(help="A result, a ledger of records or a .gig file", metavar="FILE")],
) -> None:
    """Describe a result or an explainer, and its provenance."""
    from .console import guarded

    with guarded():
        from .info import info as tell

        tell(file)


def _reason_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `gigrad reasons` that are about choosing and wording reasons, as `**rules`."""
    hints = get_type_hints(Config)
    names = [f.name for f in fields(ReasonOptions) if f.name in OPTIONS]
    kinds = {name: _kind(hints[name], OPTIONS[name], function.__name__) for name in names}
    seen = inspect.signature(function, eval_str=True)
    own = [p for p in seen.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in kinds.items()
    ]
    function.__annotations__ = {p.name: p.annotation for p in (*own, *more)} | {"return": None}
    function.__dict__["__signature__"] = seen.replace(parameters=[*own, *more])
    return function


@app.command(
    short_help="A service that explains records over HTTP",
    epilog=_example(
        "gigrad serve explainer.gig --port 8080",
        "gigrad serve explainer.gig --lower-is-better --statements reasons.toml --permitted age",
    ),
)
@_reason_options
def serve(
    file: Annotated[str, typer.Argument(help="An explainer, as `gigrad save` writes it", metavar="FILE")],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 chooses a free port; the address is printed", min=0)] = 8080,
    name: Annotated[str | None, typer.Option(help="The name of the model in URLs (the file's name)")] = None,
    workers: Annotated[int | None, typer.Option(help="Requests processed at the same time (one for each core)")] = None,
    queue: Annotated[int, typer.Option(help="Requests that may wait; further ones are rejected with 503")] = 64,
    connections: Annotated[int, typer.Option(help="Open connections; further ones are rejected with 503")] = 1000,
    max_rows: Annotated[int, typer.Option(help="Largest number of records in a request")] = 100,
    max_body: Annotated[int, typer.Option(help="Largest size of a request in bytes")] = 2**20,
    timeout: Annotated[float, typer.Option(help="Seconds until a response must be ready")] = 10.0,
    patience: Annotated[float, typer.Option(help="Seconds for a client to send a request or read a response")] = 10.0,
    log_level: Annotated[str | None, typer.Option(help="debug, info or warning")] = None,
    **rules: Any,
) -> None:
    """Explain records over HTTP, one applicant at a time: credits, reasons, metadata, health, metrics, KServe V2.

    It prints its address. After SIGTERM it answers every accepted request and exits. There is no
    authentication: run it behind a gateway that has one.
    """
    from .console import guarded, listen

    with guarded():
        from .serving import serve as start

        listen(log_level)
        limits = {
            "workers": workers, "queue": queue, "rows": max_rows, "body": max_body, "timeout": timeout,
            "patience": patience, "connections": connections,
        }  # fmt: skip
        given = {key: value for key, value in rules.items() if value is not None}
        start(file, name, host, port, limits, given)


@app.command(short_help="A lender's workflow on the German credit data")
def demo(
    folder: Annotated[str, typer.Argument(help="Where to write its files", metavar="FOLDER")] = "demo-output",
) -> None:
    """Run a lender's workflow on the German credit data, and write its files."""
    from .console import guarded

    with guarded():
        from .._io.durable import writing
        from ..demo import main as tell

        with writing(Path(folder)):
            Path(folder).mkdir(parents=True, exist_ok=True)
        tell(folder)


def _show_version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"gigrad {__version__}")
        raise typer.Exit


@app.callback()
def gigrad(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass  # the callback of --version has run already


def _config(given: dict[str, Any]) -> Config:
    """The configuration: options given on the command line override those of a file; no input may be an output."""
    from .._io.durable import keep_apart
    from .config import read_config, write_config
    from .console import listen

    said: dict[str, Any] = {key: value for key, value in given.items() if value not in (None, [])}
    if isinstance(said.get("columns"), str):
        said["columns"] = tuple(name.strip() for name in said["columns"].split(","))
    said |= {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
    config = Config(**said)
    listen(config.log_level)
    if config.config is not None:
        config = config.over(read_config(Path(config.config)))
    keep_apart(config.files("read"), config.files("write"))
    if config.save_config is not None:
        write_config(config, Path(config.save_config))
    return config
