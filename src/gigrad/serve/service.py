"""Records in, credits or reasons out: JSON bytes to JSON bytes, independent of HTTP; runs in a worker thread."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .._common.display import plain
from .._explain.explainer import Explainer
from .._explain.explanation import Explanation
from .._io.records import inexact, is_inexact
from .._reasons import reasons
from .._reasons.doubts import warn_of_columns
from .._reasons.statements import read_statements
from ..errors import InputError
from ..references.direction import agreed_direction
from .limits import Limits
from .problems import Problem


class Answered(NamedTuple):
    """The body of a response, and its number of records."""

    body: bytes
    rows: int


class Service:
    """One explainer, its name, and the rules of its reasons.

    Parameters
    ----------
    explainer : Explainer
        Best with n_threads=1, since requests are spread over threads.
    name : str
        The model's name in paths and metrics.
    limits : Limits, optional
    **rules
        Keywords of `gigrad.reasons`: `top`, `statements`, `groups`, `exclude`, `min_share`, `higher_is_better`,
        `permitted`. Ties are broken by `Explainer.credit_ranges`, so that an applicant's reasons do not depend on
        other requests.

    Examples
    --------
    >>> import gigrad as gig
    >>> from gigrad.serve import Service
    >>> service = Service(gig.Explainer(tree, [[0, 0]]), "tree")
    >>> service.explain(b'{"records": [{"x0": 1, "x1": 1}]}').body
    b'{"explanations": [{"prediction": 4.0, "base": 0.0, "credits": {"x0": 2.0, "x1": 2.0}, "gap": 0.0, "error": 0.0}]}'
    """

    def __init__(self, explainer: Explainer, name: str, limits: Limits | None = None, **rules: Any) -> None:
        self.explainer, self.name, self.limits = explainer, name, limits or Limits()
        self.version = str(explainer.provenance["output"]["fingerprint"])[:12]
        self.rules, self.no_reasons = self._rules(**rules)
        columns = zip(explainer.reference.names, explainer.scorer.columns, strict=True)
        self._numeric = [name for name, column in columns if column.labels is None and column.kind != "unused"]
        nothing = dict.fromkeys(explainer.reference.names)
        _try(lambda: explainer.one(nothing))  # warm-up: lazily built parts are built now

    def _rules(self, **rules: Any) -> tuple[dict[str, Any], str]:
        """The keywords for every call of `reasons`, and, if reasons cannot be given, why."""
        explainer, groups = self.explainer, rules.get("groups") or None
        if len(explainer.scorer.output_names) != 1:
            return {}, "Reasons need an explainer of one score; this one has several outputs."
        try:
            better = agreed_direction(explainer.provenance["reference"], rules.get("higher_is_better"))
        except InputError as error:
            if rules.get("higher_is_better") is not None:
                raise
            return {}, f"The server was started without options that reasons need: {error}"
        book = [s.as_record() for s in read_statements(rules.get("statements"))] or None
        ranges = explainer.credit_ranges(groups)
        members = {**explainer.grouping.groups, **(groups or {})}
        used = [c for name, size in ranges.items() if size > 0 for c in members.get(name, (name,))]
        warn_of_columns(used, explainer.reference.names, rules.get("permitted"))
        told = {**rules, "statements": book, "groups": groups, "higher_is_better": better, "ranges": ranges}
        return told, ""

    # ------------------------------------------------------------ answers

    def explain(self, body: bytes) -> Answered:
        """The response with the credits of the records in a request's body."""
        records, ids = self._request(body)
        told = [_credits(e) for e in self._explained(records)]
        for one, row_id in zip(told, ids or (), strict=False):
            one["id"] = row_id
        return Answered(dumped({"explanations": told}), len(told))

    def reasons(self, body: bytes) -> Answered:
        """The response with the reasons of the records in a request's body."""
        if self.no_reasons:
            raise Problem("invalid_request", self.no_reasons)
        records, ids = self._request(body)
        found = [
            reasons(e, **self.rules, row_ids=[i if ids is None else ids[i]])
            for i, e in enumerate(self._explained(records))
        ]
        told = [{k: v for k, v in vars(f[0]).items() if k not in ("reasons", "excluded")} for f in found]
        for one, f in zip(told, found, strict=True):
            one["id"] = one.pop("row_id")
            one["reasons"] = [dict(vars(r)) for r in f[0].reasons]
            one["excluded"] = [dict(vars(x)) for x in f[0].excluded]
        return Answered(dumped({"reference": found[0].reference, "applicants": told}), len(told))

    def metadata(self) -> dict[str, Any]:
        """What is served: the columns that a record must have, the outputs, and the provenance of the explainer."""
        graph, names = self.explainer.scorer.graph, self.explainer.reference.names
        return {
            "name": self.name,
            "version": self.version,
            "columns": [
                {
                    "name": name,
                    "kind": column.kind,
                    "labels": None if column.labels is None else [plain(v) for v in column.labels],
                    "may_be_missing": column.missing,
                }
                for name, column in zip(names, graph.columns, strict=True)
            ],
            "features": list(self.explainer.grouping.members),
            "outputs": list(self.explainer.scorer.output_names),
            "reasons": not self.no_reasons,
            "limits": {"rows": self.limits.rows, "body": self.limits.body, "timeout": self.limits.timeout},
            "provenance": self.explainer.provenance,
        }

    # ------------------------------------------------------------ requests

    def explained(self, records: Sequence[Mapping[str, Any]]) -> list[Explanation]:
        """Every record's own explanation; a Problem names the first that cannot be used."""
        return self._explained(self._within(records))

    def _explained(self, records: Sequence[Any]) -> list[Explanation]:
        """The explanation of each record; the problem says which one cannot be read."""
        out = []
        for number, record in enumerate(records):
            try:
                self._see_exact(record)
                out.append(self.explainer.one(record))
            except InputError as error:
                where = f"Record {number}: " if len(records) > 1 else ""
                raise Problem("invalid_record", f"{where}{error}") from None
        return out

    def _see_exact(self, record: Any) -> None:
        """Raise for integers that float64 cannot represent, as batch runs do."""
        for name in self._numeric if isinstance(record, dict) else ():
            value = record.get(name)
            if type(value) is int and is_inexact(value):
                raise InputError(inexact(name, value))

    def _request(self, body: bytes) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """The records of a request's body, and their ids if given."""
        asked = parsed(body)
        if not isinstance(asked, dict) or not {"records"} <= asked.keys() <= {"records", "ids"}:
            _refuse(
                'The body must be an object such as {"records": [{"age": 41}], "ids": ["a1"]}; ids may be left out.'
            )
        records, ids = asked["records"], asked.get("ids")
        if not isinstance(records, list) or not records:
            _refuse("records must be a list of at least one record.")
        if ids is not None and (not isinstance(ids, list) or len(ids) != len(records)):
            _refuse(f"ids must be a list with one entry for each of the {len(records)} records.")
        if ids is not None and not all(isinstance(i, (str, int)) or _is_finite(i) for i in ids):
            _refuse("ids must be texts or finite numbers.")
        return self._within(records), ids

    def _within(self, records: Sequence[Any]) -> Sequence[Any]:
        """The records, unless there are too many for one request."""
        if len(records) > self.limits.rows:
            raise Problem(
                "too_large",
                f"A request may have {self.limits.rows} records; got {len(records)}. Send several requests.",
            )
        return records


def parsed(body: bytes) -> Any:
    """The parsed JSON of a body; a Problem if it is not JSON, has a duplicate key, or a NaN or infinity."""
    try:
        return json.loads(body, parse_constant=_no_number, object_pairs_hook=_object)
    except RecursionError:
        raise Problem("invalid_json", "The body must be JSON of few levels; it is nested too deeply.") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise Problem("invalid_json", f"The body must be JSON in UTF-8; it is not ({error}).") from None


def _no_number(word: str) -> NoReturn:
    raise Problem("invalid_json", f"{word} is not a JSON number; write null for a missing value.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, whose keys must differ."""
    out = dict(pairs)
    if len(out) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise Problem("invalid_json", f"An object must have each key once; {twice!r} occurs several times.")
    return out


def _refuse(sentence: str) -> NoReturn:
    raise Problem("invalid_request", sentence)


def _credits(e: Explanation) -> dict[str, Any]:
    """One record's explanation as plain values for JSON; by output where there are several."""
    names = e.feature_names
    if e.values.ndim == 2:
        return {
            "prediction": _number(e.predictions[0]),
            "base": _number(e.base_values[0]),
            "credits": dict(zip(names, map(_number, e.values[0].tolist()), strict=True)),
            "gap": _number(e.gap[0]),
            "error": _number(e.error[0]),
        }

    def by_output(row: Any) -> dict[str, Any]:
        return dict(zip(e.output_names, map(_number, row.tolist()), strict=True))

    return {
        "prediction": by_output(e.predictions[0]),
        "base": by_output(e.base_values[0]),
        "credits": {
            output: dict(zip(names, map(_number, e.values[0, :, k].tolist()), strict=True))
            for k, output in enumerate(e.output_names)
        },
        "gap": by_output(e.gap[0]),
        "error": by_output(e.error[0]),
    }


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and isfinite(value)  # JSON may say 1e999, which Python reads as infinity


def _number(value: Any) -> float | None:
    """A number for JSON: None (null) for NaN and infinities, which a model may give."""
    return float(value) if np.isfinite(value) else None


def dumped(answer: Any) -> bytes:
    """An answer as JSON."""
    return json.dumps(answer, allow_nan=False).encode()


def _try(function: Any) -> None:
    """Call a function for its side effects, ignoring an InputError."""
    try:
        function()
    except InputError:  # a model that takes no missing values
        return
