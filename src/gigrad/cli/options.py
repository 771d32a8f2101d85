"""The options that commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .._common.optional import require

if TYPE_CHECKING:
    import typer
else:
    typer = require("typer", "cli")

Text = str | None
Many = list[str] | None

Model = Annotated[
    Text,
    typer.Argument(
        help="XGBoost .json/.ubj, LightGBM .txt, CatBoost .cbm/.json, scikit-learn .skops, gigrad .gig", metavar="MODEL"
    ),
]
Data = Annotated[
    Text, typer.Argument(help="A .parquet, .csv or .arrow file, or a folder of .parquet files", metavar="DATA")
]
Reference = Annotated[Text, typer.Option(help="The table that scores are explained against", metavar="TABLE")]
Out = Annotated[
    Text, typer.Option("--out", "-o", help="Where the result goes: .parquet, .csv, .arrow, or a folder", metavar="FILE")
]
Output = Annotated[
    Text, typer.Option(help="What to explain: margin, probability (the default) or rank", metavar="SPACE")
]
Scores = Annotated[
    Text,
    typer.Option(
        help="For --output rank: a table with one column of scores, a saved ECDF (.json), or 'reference'",
        metavar="TABLE",
    ),
]
Target = Annotated[
    Text, typer.Option(help="One of several outputs or classes, by name, else by position", metavar="NAME")
]
Columns = Annotated[
    Text, typer.Option(help="The model's columns by the table's names, in the model's order, with commas between")
]
Id = Annotated[Many, typer.Option("--id", help="A column to carry along; may be given several times", metavar="COLUMN")]
Weights = Annotated[Text, typer.Option(help="The column of the reference that holds its weights", metavar="COLUMN")]
Discrete = Annotated[
    Many,
    typer.Option(
        help="A column without values in between, or with its values: term=36,60; may be given several times, 'none' "
        "for none. By default the reference and the model's thresholds decide",
        metavar="COLUMN",
    ),
]
Nominal = Annotated[
    Many, typer.Option(help="A column of numbers that are codes; may be given several times", metavar="COLUMN")
]
ReferenceRows = Annotated[int | None, typer.Option(help="Draw this many rows from the reference", metavar="N")]
Tol = Annotated[float | None, typer.Option(help="Largest relative error of a credit where quadrature is needed (1e-6)")]
CornerTol = Annotated[
    float | None,
    typer.Option(
        help="Largest error where many columns change at once and orders are sampled, relative to the row's largest "
        "credit (1e-3)"
    ),
]
Seed = Annotated[int | None, typer.Option(help="For whatever is drawn at random (0)", metavar="N")]
Threads = Annotated[int | None, typer.Option(help="All cores by default; answers do not depend on it", metavar="N")]
BatchRows = Annotated[int | None, typer.Option(help="Rows at a time: what bounds the memory", metavar="N")]
OnError = Annotated[
    Text, typer.Option(help="Rows that cannot be explained: fail (before anything is written), skip or null")
]
Rejects = Annotated[Text, typer.Option(help="The file that says which rows and why (OUT.rejects.csv)", metavar="FILE")]
Restart = Annotated[bool, typer.Option("--restart", help="Begin again, whatever an interrupted run has left")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Take everything from a TOML file; options win", metavar="FILE")
]
SaveConfig = Annotated[
    Path | None, typer.Option("--save-config", help="Write what was used to a TOML file", metavar="FILE")
]
TrustPickle = Annotated[
    bool | None, typer.Option("--trust-pickle", help="Load pickle and joblib files, which run code when loaded")
]
Trust = Annotated[Many, typer.Option("--trust", help="A type in a .skops file that may be built", metavar="TYPE")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors")]
Cutoff = Annotated[
    float | None, typer.Option(help="The passing score, in what is explained; the reference is then who passes")
]
Better = Annotated[
    bool | None,
    typer.Option("--higher-is-better/--lower-is-better", help="Whether a high score speaks for an applicant"),
]
Engine = Annotated[Text, typer.Option(help="local (the default) or spark, for folders of Parquet files")]
Statements = Annotated[Text, typer.Option(help="A CSV or TOML file of reason texts and codes", metavar="FILE")]
Top = Annotated[int | None, typer.Option(help="Reasons an applicant, at most (4)", metavar="N")]
Exclude = Annotated[Many, typer.Option(help="A feature or group that must not be given as a reason")]
MinShare = Annotated[float | None, typer.Option(help="Least share of the shortfall that is a reason (0)")]
Permitted = Annotated[Many, typer.Option(help="A column that is meant to be used though it is named like age or sex")]
Everybody = Annotated[bool | None, typer.Option("--all", help="Reasons for those who pass, too")]
Audit = Annotated[
    Text,
    typer.Option(help="Write the record of every applicant, to examine it later: .jsonl or .jsonl.gz", metavar="FILE"),
]
Html = Annotated[Text, typer.Option("--out", "-o", help="The HTML file", metavar="FILE")]
Title = Annotated[Text, typer.Option(help="The title of the page")]
ReportRows = Annotated[int | None, typer.Option(help="How many rows, from the first (1,000)", metavar="N")]
GigFile = Annotated[Text, typer.Option("--out", "-o", help="The .gig file", metavar="FILE")]
AnyFile = Annotated[Path, typer.Argument(help="A result or a .gig file", metavar="FILE")]
Folder = Annotated[str, typer.Argument(help="Where to write its files", metavar="FOLDER")]


def _show_version(asked: bool) -> None:
    if asked:
        from .. import __version__

        typer.echo(f"gigrad {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Show the version and exit", is_eager=True, callback=_show_version)
]
