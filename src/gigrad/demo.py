"""`python -m gigrad.demo`: a lender's story on German credit, from training a model to the letter and its records.

Needs the extra `demo`. Writes into `demo-output/` below the current folder, or where the first argument says.
"""

from __future__ import annotations

import sys
import textwrap
import time
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

import gigrad as gig

from ._common.display import plain, shortened, text
from ._common.optional import require
from .datasets import PROTECTED, german_credit

WIDTH = 98
GROUPS = {"assets": ("savings_account", "property", "housing")}
APPROVED_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class Lender:
    """What every chapter of the story starts from."""

    model: Any
    past: Any  # applicants the model was trained on
    new: Any  # applicants of today
    women: Any  # which of today's applicants are women; not an input of the model

    @cached_property
    def cutoff(self) -> float:
        """The probability of default above which an applicant is refused."""
        return float(np.quantile(self.default_risk(self.past), APPROVED_SHARE))

    @cached_property
    def refused(self) -> Any:
        """Which of today's applicants are refused, (n,) bool."""
        return self.default_risk(self.new) > self.cutoff

    def default_risk(self, applicants: Any) -> Any:
        """The model's own probability of default, (n,)."""
        return self.model.predict_proba(applicants)[:, 1].astype(np.float64)


def main(folder: str | Path = "demo-output") -> None:
    """Tell the story and write its files."""
    started = time.perf_counter()
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    heading("gigrad on German credit: 1,000 loans (Hans Hofmann, UCI, CC BY 4.0)")
    lender = train()
    applicant = explain_one(lender)
    ecdf, reference = rank_space(lender)
    found = give_reasons(lender, applicant, ecdf, reference)
    shake_reasons(lender, applicant, ecdf, reference)
    compare_groups(lender)
    write(found, out)
    print(f"\n  Done in {time.perf_counter() - started:.1f} s.")


def train() -> Lender:
    """Train on 700 past applicants, keep 300 new ones."""
    xgboost = require("xgboost", "demo")
    everything, bad = german_credit(protected=True)
    women = everything["personal_status_and_sex"].str.startswith("female").to_numpy()
    X = everything.drop(columns=list(PROTECTED))
    order = np.random.default_rng(7).permutation(len(X))
    past, new = order[:700], order[700:]
    model = xgboost.XGBClassifier(
        n_estimators=150, max_depth=3, learning_rate=0.06, subsample=0.8, enable_categorical=True, random_state=0,
        n_jobs=2,
    )  # fmt: skip
    model.fit(X.iloc[past], bad[past])
    auc = _auc(model.predict_proba(X.iloc[new])[:, 1], bad[new])
    heading("1  The model")
    say(
        f"XGBoost, 150 trees over {X.shape[1]} variables, trained on 700 past applicants; on the 300 new ones its AUC "
        f"is {auc:.2f}. It never saw {', '.join(PROTECTED[:-1])} or {PROTECTED[-1]}."
    )
    return Lender(model, X.iloc[past], X.iloc[new], women[new])


def explain_one(lender: Lender) -> Any:
    """One refused applicant against the approved, in probability space; gives the applicant's row id."""
    past_risk, cutoff = lender.default_risk(lender.past), lender.cutoff
    reference = gig.references.approved(lender.past, past_risk, cutoff, higher_is_better=False)
    refused = lender.new[lender.refused]
    heading("2  The decision")
    say(
        f"A probability of default above {cutoff:.3f} is refused, as for the riskiest 30% of past applicants: "
        f"{len(refused)} of the {len(lender.new)} new ones. The reference: {reference.provenance}."
    )
    place = int(np.argsort(lender.default_risk(refused))[6 * len(refused) // 10])
    e = gig.explain(lender.model, refused.iloc[[place]], reference)
    shown = f"{100 * e.predictions[0]:.1f}% and the approved at {100 * e.base_values[0]:.1f}% on average?"
    heading(f"3  Why is applicant {e.ids[0]} at {shown}")
    print(credit_table(e))
    return plain(e.ids[0])


def credit_table(e: gig.Explanation, most: int = 9) -> str:
    """The largest credits of one explained row, and the sum that they make."""
    credits, typical = e.values[0], e.provenance["reference"]["typical"]
    order = np.argsort(-np.abs(credits), kind="stable")
    scale = float(np.abs(credits).max())

    def line(name: str, value: str, usual: str, number: str, bar: str = "") -> str:
        cells = (
            f"{shortened(name, 31):<31}",
            f"{shortened(value, 20):<20}",
            f"{shortened(usual, 20):<20}",
            number,
            bar,
        )
        return "  " + " ".join(cells).rstrip()

    rule = "  " + "─" * (WIDTH - 2)
    lines = [line("", "the applicant", "approved, typically", "     %"), rule]
    lines.append(line("approved applicants, mean", "", "", f"{100 * e.base_values[0]:6.2f}"))
    for j in order[:most]:
        name, raw = e.feature_names[j], e.raw(int(j))
        value = "" if raw is None else text(raw[0])
        lines.append(line(name, value, text(typical[name]), f"{100 * credits[j]:+6.2f}", _bar(credits[j] / scale)))
    rest = credits[order[most:]].sum()
    lines.append(line(f"{len(order) - most} more variables", "", "", f"{100 * rest:+6.2f}", _bar(rest / scale)))
    lines += [rule, line("sum", "", "", f"{100 * (e.base_values[0] + credits.sum()):6.2f}")]
    lines.append(line("the model's own prediction", "", "", f"{100 * e.predictions[0]:6.2f}",
                      f"equal to {abs(e.gap[0]):.0e}"))  # fmt: skip
    return "\n".join(lines)


def rank_space(lender: Lender) -> tuple[gig.SmoothedECDF, gig.Reference]:
    """The rank of a risk among past applicants, and the approved ones by it."""
    past_risk = lender.default_risk(lender.past)
    ecdf = gig.SmoothedECDF.fit(past_risk)
    cutoff = float(ecdf(lender.cutoff))
    return ecdf, gig.references.approved(lender.past, ecdf(past_risk), cutoff, higher_is_better=False)


def give_reasons(lender: Lender, applicant: Any, ecdf: gig.SmoothedECDF, reference: gig.Reference) -> gig.Reasons:
    """Every refused applicant in rank space, with reasons in words."""
    e = gig.explain(lender.model, lender.new[lender.refused], reference, output=ecdf)
    with as_file(files("gigrad") / "data" / "german_credit_statements.toml") as path:
        found = gig.reasons(e, top=4, statements=path, groups=GROUPS)
    own = found.of(applicant)
    heading("4  The letter")
    say(
        f"Ranked among past applicants, from 0 for the safest to 1, applicant {applicant} stands at "
        f"{own.prediction:.2f}, the approved at {own.base:.2f} on average. The principal reasons for the refusal:"
    )
    for r in own.reasons:
        said = f"{r.rank}. {r.statement} [{r.code}]"
        print(f"     {said:<66} {100 * (r.share or 0.0):3.0f}% of the distance")
    return found


def shake_reasons(lender: Lender, applicant: Any, ecdf: gig.SmoothedECDF, reference: gig.Reference) -> None:
    """Would the letter have said something else?"""
    found = gig.reason_stability(
        lender.model, lender.new.loc[[applicant]], reference, output=ecdf, groups=GROUPS,
        measurement_error={"credit_amount": "2%"},
    )  # fmt: skip
    heading("5  Would the letter have named another reason?")
    names = {"reference": "with other approved applicants (bootstrap)", "margin": "explained in log-odds",
             "prediction": "explained in probability", "measurement": "with the amount off by up to 2%",
             "half-way": "with flags and counts not changing half-way"}  # fmt: skip
    for c in found.changes:
        weak = min(c.kept, key=lambda name: c.kept[name])
        much = "no" if c.changed == 0 else f"in {c.changed * c.trials:.0f} of {c.trials} trials; least firm: {weak}"
        print(f"     {names[c.kind]:<44} {much}")


def compare_groups(lender: Lender) -> None:
    """Why women score differently from men although sex is not an input of the model."""
    gap = gig.explain_gap(lender.model, lender.new[lender.women], lender.new[~lender.women], groups=GROUPS)
    heading("6  A fairness review asks: why do women and men differ?")
    print(textwrap.indent("\n".join(str(gap).splitlines()[:6]), "  "))
    print(f"    ... and {len(gap.values) - 5} more; * where the interval excludes zero")


def write(found: gig.Reasons, out: Path) -> None:
    """The files that a lender keeps."""
    found.to_parquet(out / "reasons.parquet")
    found.to_json(out / "reasons.json")
    found.write_audit(out / "audit.jsonl")
    found.explanation.report(out / "report.html", title="German credit: the refused applicants, in rank space")
    records = gig.read_ledger(out / "audit.jsonl")
    equal = sum(gig.replay_reasons(record) == own for record, own in zip(records, found, strict=True))
    heading("7  Files")
    for name, what in (
        ("reasons.parquet", f"the reasons of all {len(found)} refused applicants"),
        ("reasons.json", "the same, for a letter generator"),
        ("audit.jsonl", f"a record for each; replayed from the file, {equal} of {len(found)} are equal"),
        ("report.html", "one page that shows everything; open it in a browser"),
    ):
        print(f"     {out / name!s:<32} {what}")


def heading(message: str) -> None:
    """The title of a chapter; bold where the terminal can."""
    print(f"\n\033[1m{message}\033[0m" if sys.stdout.isatty() else f"\n{message}")


def say(message: str) -> None:
    """A paragraph."""
    print(textwrap.fill(message, WIDTH, initial_indent="  ", subsequent_indent="  "))


def _bar(part: float, width: int = 8) -> str:
    """A credit as a bar to the left or the right of a middle line."""
    length = round(abs(part) * width)
    return f"{' ' * (width - length)}{'░' * length}│" if part < 0 else f"{' ' * width}│{'█' * length}"


def _auc(scores: Any, bad: Any) -> float:
    """The share of (bad, good) pairs in which the bad one scores higher, ties counting half."""
    more = scores[bad == 1][:, None] - scores[bad == 0][None]
    return float(np.mean((more > 0) + 0.5 * (more == 0)))


if __name__ == "__main__":
    main(*sys.argv[1:2])
