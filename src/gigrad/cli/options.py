"""All options of `gigrad`, defined once: command lines, configurations and messages are made from this.

A new option is a new field of `Config`: its help, the commands that take it, and whether it names a file that is read
or written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from .._common.reason_options import ReasonOptions
from .._explain.options import Options
from ..errors import InputError

BUILD = ("explain", "reasons", "report", "save")
RUN = ("explain", "reasons")
SHOWN = (*RUN, "report")
ALL = (*BUILD, "check", "verify", "monitor")

DIRECTION = "--higher-is-better/--lower-is-better"


@dataclass(frozen=True)
class Option:
    """One option of some commands.

    Attributes
    ----------
    help : str
    commands : tuple of str
        Those that take it.
    names : tuple of str
        Its names on the command line; by default that of the field.
    metavar : str or None
    argument : tuple of str
        The commands in which it is a positional argument.
    file : "read", "write" or None
        Whether the file that it names is read or written; no file may be both.
    called : str
        The name of that file in messages.
    in_file : bool
        Whether a configuration file may set it. Options that grant trust, or are about one call alone, must be typed.
    commas : bool
        Whether a list is typed as one text with commas, instead of repeating the option.
    helps : dict
        Other help texts, by command.
    """

    help: str
    commands: tuple[str, ...]
    names: tuple[str, ...] = ()
    metavar: str | None = None
    argument: tuple[str, ...] = ()
    file: Literal["read", "write"] | None = None
    called: str = ""
    in_file: bool = True
    commas: bool = False
    helps: dict[str, str] = field(default_factory=dict)


def _opt(help: str, commands: tuple[str, ...], *names: str, **more: Any) -> Any:
    return field(default=None, metadata={"option": Option(help, commands, names, **more)})


SHARED = {f.name: f.metadata["name"] or f.name for f in fields(Options) if "help" in f.metadata}
"""The keywords of `gigrad.explain` that commands have as options, and the fields of `Config` that hold them."""


def _shared(name: str, commands: tuple[str, ...], *names: str, **more: Any) -> Any:
    """The option for a keyword of `gigrad.explain` or of `gigrad.reasons`, with its help."""
    (told,) = (f.metadata["help"] for f in (*fields(Options), *fields(ReasonOptions)) if f.name == name)
    return _opt(told, commands, *names, **more)


@dataclass(frozen=True)
class Member:
    """One model of an ensemble: its file, and optionally scores by which its output is turned into a rank first."""

    file: str
    scores: str | None = None


@dataclass(frozen=True)
class Ensemble:
    """Several models joined.

    Attributes
    ----------
    kind : "stack" or "average"
    members : tuple of Member
    head : str or None
        The file of the model that reads the members' scores; `weights` instead of it are a weighted sum.
    weights : tuple of float or None
    passthrough : bool
        Whether the head also reads the columns themselves.
    output : str or None
        "margin" to join raw scores.
    """

    kind: str
    members: tuple[Member, ...]
    head: str | None = None
    weights: tuple[float, ...] | None = None
    passthrough: bool = False
    output: str | None = None


@dataclass(frozen=True)
class Config:
    """The values of all options of `gigrad`; None means the command's default."""

    ledger: str | None = _opt(
        "A ledger of audit records, or a folder of them", ("verify",), metavar="LEDGER", argument=("verify",),
        file="read", called="the ledger",
    )  # fmt: skip
    this: str | None = _opt(
        "A result of `gigrad explain` or `gigrad reasons`, or a ledger", ("monitor",), metavar="THIS",
        argument=("monitor",), file="read", called="the result",
    )  # fmt: skip
    against: str | None = _opt(
        "The result or ledger to compare with, such as last month's", ("monitor", "report"), metavar="THAT",
        file="read", called="the other result",
        helps={"report": "A result of `gigrad explain`, such as last month's, to compare with (drift)"},
    )  # fmt: skip
    model: str | None = _opt(
        "XGBoost .json/.ubj, LightGBM .txt, CatBoost .cbm/.json, Keras .keras, ONNX .onnx, scikit-learn .skops, "
        "scorecards .csv/.toml/.pmml, gigrad .gig",
        (*BUILD, "check", "verify"), metavar="MODEL", argument=(*BUILD, "check"), file="read", called="the model",
    )  # fmt: skip
    data: str | None = _opt(
        "A .parquet, .csv or .arrow file, or a folder of .parquet files", (*SHOWN, "check"), metavar="DATA",
        argument=(*SHOWN, "check"), file="read", called="the data",
    )  # fmt: skip
    this_data: str | None = _opt(
        "The table that THIS was computed from, to find rows whose data changed", ("monitor",), metavar="TABLE",
        file="read", called="the data",
    )  # fmt: skip
    against_data: str | None = _opt(
        "The table that THAT was computed from",
        ("monitor", "report"),
        metavar="TABLE",
        file="read",
        called="the other data",
    )
    reference: str | None = _opt(
        "The table that scores are explained against", (*BUILD, "verify"), metavar="TABLE", file="read",
        called="the reference",
    )  # fmt: skip
    out: str | None = _opt(
        "The output: .parquet, .csv, .arrow, or a folder", (*BUILD, "monitor"), "--out", "-o",
        metavar="FILE", file="write", called="the result",
        helps={"report": "The HTML file", "save": "The .gig file",
               "monitor": "Write the comparison: .json, .csv or a picture (.png, .svg, .pdf)"},
    )  # fmt: skip
    cutoff: float | None = _opt(
        "The passing score, in the space of --output; the reference is then limited to rows that pass",
        (*BUILD, "verify"),
    )
    method: str | None = _opt(
        "For scorecards: below-maximum (needs no --reference) or below-average (of all rows of --reference); by "
        "default GIG against the reference", (*BUILD, "verify"), metavar="NAME",
    )  # fmt: skip
    higher_is_better: bool | None = _shared("higher_is_better", (*BUILD, "verify", "monitor"), DIRECTION)
    statements: str | None = _shared("statements", ("reasons",), metavar="FILE", file="read", called="the statements")
    top: int | None = _shared("top", ("reasons", "monitor", "report"), metavar="N")
    exclude: tuple[str, ...] | None = _shared("exclude", ("reasons",))
    min_share: float | None = _shared("min_share", ("reasons",))
    permitted: tuple[str, ...] | None = _shared("permitted", ("reasons",))
    everybody: bool | None = _opt("Give reasons to applicants who pass, too", ("reasons",), "--all")
    audit: str | None = _opt(
        "Write the audit record of every applicant: .jsonl or .jsonl.gz", ("reasons",),
        metavar="FILE", file="write", called="the records",
    )  # fmt: skip
    key_file: str | None = _opt(
        "A file with the key that signs the records, at least 16 bytes, for example from `openssl rand -out key 32`",
        ("reasons", "verify"), metavar="FILE", file="read", called="the key",
    )  # fmt: skip
    title: str | None = _opt("The title of the page", ("report",))
    rows: int | None = _opt("How many rows, from the first (1,000)", ("report",), metavar="N")
    output: str | None = _opt(
        "What to explain: margin, probability (the default) or rank", (*BUILD, "verify"), metavar="SPACE"
    )
    scores: str | None = _opt(
        "For --output rank: a table with one column of scores, a saved ECDF (.json), or 'reference'",
        (*BUILD, "verify"), metavar="TABLE", file="read", called="the scores",
    )  # fmt: skip
    target: str | None = _opt(
        "One of several outputs or classes, by name, else by position", (*BUILD, "verify"), metavar="NAME"
    )
    columns: tuple[str, ...] | None = _opt(
        "The table's names of the model's columns, in the model's order, separated by commas",
        (*BUILD, "check", "verify"), commas=True,
    )  # fmt: skip
    id: tuple[str, ...] | None = _opt(
        "A column to copy to the result; may be given several times", (*BUILD, "check", "monitor"), metavar="COLUMN",
        helps={"monitor": "A column that identifies rows in both results; may be given several times"},
    )  # fmt: skip
    weights: str | None = _opt(
        "The column of the reference that holds its weights", (*BUILD, "verify"), metavar="COLUMN"
    )
    discrete: tuple[str, ...] | None = _shared("discrete", BUILD, metavar="COLUMN")
    nominal: tuple[str, ...] | None = _shared("nominal", BUILD, metavar="COLUMN")
    reference_rows: int | None = _opt("Draw this many rows from the reference", (*BUILD, "verify"), metavar="N")
    distill: int | None = _opt(
        "Save this many weighted rows that approximate the reference, instead of all: a different reference, with "
        "less personal data", ("save",), metavar="N",
    )  # fmt: skip
    tol: float | None = _shared("tol", BUILD)
    corner_tol: float | None = _shared("corner_tol", BUILD)
    max_error: float | None = _opt(
        "Largest error of a credit that is accepted, in units of the score: else exit code 8 and no result, or "
        "with --on-error skip or null the row is rejected", RUN,
    )  # fmt: skip
    settle: float | None = _opt(
        "Explain each row against only as many references as determine its reasons at this confidence, such as 0.99; "
        "credits are then estimates", RUN, metavar="CONFIDENCE",
    )  # fmt: skip
    seed: int | None = _shared("seed", (*BUILD, "verify", "monitor"), metavar="N")
    threads: int | None = _shared("n_threads", (*SHOWN, "verify"), metavar="N")
    batch_rows: int | None = _opt("Rows processed at a time, which bounds the memory", RUN, metavar="N")
    on_error: str | None = _opt("Rows that cannot be explained: fail (before anything is written), skip or null", RUN)
    rejects: str | None = _opt(
        "The file that lists rejected rows with the reasons (OUT.rejects.csv)", RUN, metavar="FILE", file="write",
        called="the rejects",
    )  # fmt: skip
    ids: str | None = _opt("Rows with a missing or repeated id: warn (the default), fail, allow", RUN)
    engine: str | None = _opt("local (the default) or spark, for folders of Parquet files", RUN)
    file_mode: str | None = _opt("The mode of new files, such as 640 (600)", (*BUILD, "monitor"), metavar="MODE")
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ensemble: Ensemble | None = None
    # about one call alone
    summary: str | None = _opt(
        "Write a summary of the run as JSON, for schedulers and monitoring", RUN, metavar="FILE", file="write",
        called="the summary",
    )  # fmt: skip
    skip_if_done: bool | None = _opt(
        "Do nothing if the result of the same inputs, model and settings exists", RUN, "--skip-if-done",
        in_file=False,
    )  # fmt: skip
    restart: bool | None = _opt(
        "Start over, discarding what an interrupted run has computed", RUN, "--restart", in_file=False
    )
    trust_pickle: bool | None = _opt(
        "Load pickle and joblib files, which run code when loaded", (*BUILD, "check", "verify"), "--trust-pickle",
        in_file=False,
    )  # fmt: skip
    trust: tuple[str, ...] | None = _opt(
        "A type in a .skops file that may be instantiated", (*BUILD, "check", "verify"), metavar="TYPE", in_file=False
    )
    config: str | None = _opt(
        "Read options from a TOML file; those on the command line take precedence", ALL, metavar="FILE", file="read",
        called="the configuration", in_file=False,
    )  # fmt: skip
    save_config: str | None = _opt(
        "Write the options of this run to a TOML file", BUILD, metavar="FILE", file="write",
        called="the saved configuration", in_file=False,
    )  # fmt: skip
    log_level: str | None = _opt(
        "Show log messages from this level on: debug, info, warning", ALL, metavar="LEVEL",
        in_file=False,
    )  # fmt: skip
    quiet: bool | None = _opt("Print only warnings and errors", ALL, "--quiet", "-q", in_file=False)

    def over(self, file: Config) -> Config:
        """These options where they are set, those of a file elsewhere."""
        given = {f.name: v for f in fields(self) if (v := getattr(self, f.name)) not in (None, {})}
        return replace(file, **given)

    def need(self, name: str, option: str) -> str:
        """The value of an option that the command requires; an InputError if it is missing."""
        value = getattr(self, name)
        if value is None:
            raise InputError(f"{option} must be given, on the command line or as {name!r} in the file of --config.")
        return str(value)

    def files(self, use: Literal["read", "write"]) -> dict[str, str]:
        """The files that are read, or written: their name in messages -> path."""
        found: dict[str, str] = {}
        for name, option in OPTIONS.items():
            path = getattr(self, name)
            if option.file == use and path is not None and not (name == "scores" and path == "reference"):
                found[option.called] = path
        if use == "write":
            return found | ({} if self.out is None else self._named_after(self.out))
        for m in () if self.ensemble is None else self.ensemble.members:
            found[f"a member of the ensemble, {m.file}"] = m.file
            if m.scores is not None:
                found[f"the scores of {m.file}"] = m.scores
        if self.ensemble is not None and self.ensemble.head is not None:
            found["the head of the ensemble"] = self.ensemble.head
        return found

    def _named_after(self, out: str) -> dict[str, str]:
        """The files that are written beside a result and named after it: name in messages -> path."""
        names = {"the parts of the result": f"{out}.unfinished"}
        if self.on_error in ("skip", "null") and self.rejects is None:
            names["the rejects"] = f"{out}.rejects.csv"
        if out.endswith(".csv"):
            names["the record of the result"] = f"{out}.provenance.json"
        return names


OPTIONS: dict[str, Option] = {f.name: f.metadata["option"] for f in fields(Config) if "option" in f.metadata}
PATHS = tuple(name for name, option in OPTIONS.items() if option.file is not None and option.in_file)
