"""PMML Scorecard models: points for the first attribute of each characteristic whose predicate is true.

The file is read by expat with document types refused, so that no entity is ever expanded.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from ...errors import CorruptModelError, InputError, UnsupportedModelError
from .card import Categories, Characteristic, Numbers, Scorecard, representatives

Value = float | str | None  # None is a missing value
Truth = bool | None  # None is "unknown"

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b,
    "notEqual": lambda a, b: a != b,
    "lessThan": lambda a, b: a < b,
    "lessOrEqual": lambda a, b: a <= b,
    "greaterThan": lambda a, b: a > b,
    "greaterOrEqual": lambda a, b: a >= b,
}
_DEEPEST = 100


@dataclass(frozen=True)
class Field:
    """A column of the data dictionary, with its entry in the model's mining schema."""

    name: str
    number: bool
    declared: tuple[str, ...]
    missing_is: str | None
    invalid: str


def read_pmml(path: str | PathLike[str]) -> Scorecard:
    """A scorecard from a .pmml file, with the reason codes of its characteristics."""
    root = parse(Path(path))
    models = [e for e in root if _tag(e) == "Scorecard"]
    if _tag(root) != "PMML" or len(models) != 1:
        found = [_tag(e) for e in root if _tag(e).endswith("Model") or _tag(e) in ("Scorecard", "RuleSet")]
        raise UnsupportedModelError(
            f"{path} must be PMML with one Scorecard; it holds {', '.join(found) or 'no model'}. Other PMML models are "
            "not supported: load them with the library that wrote them."
        )
    model = models[0]
    for e in (*root, *model):
        if _tag(e) in ("TransformationDictionary", "LocalTransformations") and len(e):
            raise UnsupportedModelError(
                f"{path} computes columns ({_tag(e)}), which is not supported. Compute them before, as table columns."
            )
    fields = _fields(root, model)
    made: list[Characteristic] = []
    codes: dict[str, str] = {}
    for number, part in enumerate(_children(_child(model, "Characteristics"), "Characteristic")):
        characteristic, code = _characteristic(part, part.get("name") or f"characteristic {number + 1}", fields)
        if characteristic.name in [c.name for c in made]:
            raise UnsupportedModelError(f"The column {characteristic.name!r} must have one characteristic; it has two.")
        made.append(characteristic)
        if code:
            codes[characteristic.name] = code
    base = _number(model.get("initialScore") or "0", "initialScore")
    return Scorecard(tuple(made), base, codes, label=model.get("modelName") or "Scorecard")


def parse(path: Path) -> Element:
    """The elements of an XML file without a document type."""
    builder, parser = TreeBuilder(), expat.ParserCreate(namespace_separator="}")

    def refuse(*_: Any) -> None:
        raise CorruptModelError(
            f"{path} must not have a document type, which can define entities that expand without end or read other "
            "files. Remove the <!DOCTYPE ...> from the file."
        )

    parser.StartDoctypeDeclHandler = refuse
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise CorruptModelError(f"{path} must not be nested more than {_DEEPEST} deep.")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    try:
        parser.Parse(path.read_bytes(), True)
        return builder.close()
    except expat.ExpatError as error:
        raise CorruptModelError(f"{path} must be XML; it is not ({error}).") from None
    except OSError as error:
        raise InputError(f"The scorecard {path} cannot be read ({error}).") from None


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _children(element: Element, tag: str) -> list[Element]:
    return [e for e in element if _tag(e) == tag]


def _child(element: Element, tag: str) -> Element:
    """The only child with a tag."""
    found = _children(element, tag)
    if len(found) != 1:
        raise CorruptModelError(f"A {_tag(element)} must hold one {tag}; this one holds {len(found)}.")
    return found[0]


def _number(text: str | None, what: str) -> float:
    """A finite number from an attribute."""
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CorruptModelError(f"{what} must be a finite number; got {text!r}.")
    return number


def _fields(root: Element, model: Element) -> dict[str, Field]:
    """The fields that the model reads, with how it treats missing and invalid values."""
    usage = {e.get("name", ""): e for e in _children(_child(model, "MiningSchema"), "MiningField")}
    out: dict[str, Field] = {}
    for e in _children(_child(root, "DataDictionary"), "DataField"):
        name = e.get("name", "")
        if name not in usage:
            continue
        mining = usage[name]
        if mining.get("outliers", "asIs") != "asIs" or _children(e, "Interval"):
            raise UnsupportedModelError(f"The field {name!r} limits its values, which is not supported.")
        valid = [v.get("value", "") for v in _children(e, "Value") if v.get("property", "valid") == "valid"]
        if len(valid) < len(_children(e, "Value")):
            raise UnsupportedModelError(f"The field {name!r} must not declare values as missing or invalid; it does.")
        number = e.get("dataType") in ("double", "float", "integer") and e.get("optype") != "categorical"
        out[name] = Field(
            name, number, tuple(valid), mining.get("missingValueReplacement"),
            mining.get("invalidValueTreatment", "returnInvalid"),
        )  # fmt: skip
    return out


# ---------------------------------------------------------------- predicates


class _Predicate:
    """A predicate of one column: its truth for a value, and the values that occur in it."""

    def __init__(self, element: Element, fields: Mapping[str, Field], what: str) -> None:
        self.kind, self.element, self.what = _tag(element), element, what
        self.operator = element.get("operator") or element.get("booleanOperator") or ""
        self.parts = [_Predicate(e, fields, what) for e in element if _tag(e) in _PREDICATES]
        self.columns: set[str] = {c for p in self.parts for c in p.columns}
        self.named: list[Any] = [v for p in self.parts for v in p.named]
        if self.kind in ("SimplePredicate", "SimpleSetPredicate"):
            name = element.get("field", "")
            if name not in fields:
                raise UnsupportedModelError(
                    f"The characteristic {what!r} must read a column of the data dictionary; it reads {name!r}."
                )
            self.columns = {name}
            self.values = [_as(fields[name], v, what) for v in self._texts()]
            self.named = self.values
        known = self.kind in ("True", "False") or self.operator in _OPERATORS.get(self.kind, ())
        if not known:
            raise UnsupportedModelError(
                f"The characteristic {what!r} has a {self.kind} with the unsupported operator {self.operator!r}."
            )

    def _texts(self) -> list[str]:
        """The values that the predicate compares with, as texts."""
        if self.kind == "SimplePredicate":
            return [] if self.operator.endswith("issing") else [self.element.get("value", "")]
        text = _child(self.element, "Array").text or ""
        try:
            return shlex.split(text)
        except ValueError:
            raise CorruptModelError(
                f"The Array of the characteristic {self.what!r} cannot be read: {text!r}."
            ) from None

    def __call__(self, x: Value) -> Truth:
        if self.kind in ("True", "False"):
            return self.kind == "True"
        if self.kind == "CompoundPredicate":
            return _joined(self.operator, [p(x) for p in self.parts])
        if self.operator in ("isMissing", "isNotMissing"):
            return (x is None) == (self.operator == "isMissing")
        if x is None:
            return None
        if self.kind == "SimpleSetPredicate":
            return (x in self.values) == (self.operator == "isIn")
        return _COMPARE[self.operator](x, self.values[0])


_PREDICATES = ("SimplePredicate", "SimpleSetPredicate", "CompoundPredicate", "True", "False")
_OPERATORS: dict[str, tuple[str, ...]] = {
    "SimplePredicate": (*_COMPARE, "isMissing", "isNotMissing"),
    "SimpleSetPredicate": ("isIn", "isNotIn"),
    "CompoundPredicate": ("and", "or", "xor"),
}


def _joined(operator: str, parts: Sequence[Truth]) -> Truth:
    """The result of an operator in PMML's three-valued logic."""
    if operator == "xor":
        return None if None in parts else sum(map(bool, parts)) % 2 == 1
    decided = operator == "or"
    if decided in parts:
        return decided
    return None if None in parts else not decided


def _as(field: Field, text: str, what: str) -> float | str:
    return _number(text, f"A value of the characteristic {what!r}") if field.number else text


def _characteristic(found: Element, what: str, fields: Mapping[str, Field]) -> tuple[Characteristic, str | None]:
    """A characteristic with the points of its attributes, and its reason code."""
    attributes: list[tuple[_Predicate, float]] = []
    code = found.get("reasonCode")
    for e in _children(found, "Attribute"):
        if _children(e, "ComplexPartialScore"):
            raise UnsupportedModelError(f"The characteristic {what!r} computes its points, which is not supported.")
        predicates = [p for p in e if _tag(p) in _PREDICATES]
        if len(predicates) != 1:
            raise CorruptModelError(f"Every Attribute of {what!r} must have one predicate; one has {len(predicates)}.")
        points = _number(e.get("partialScore"), f"partialScore of {what!r}")
        attributes.append((_Predicate(predicates[0], fields, what), points))
        code = code or e.get("reasonCode")
    columns = {c for p, _ in attributes for c in p.columns}
    if len(columns) != 1:
        raise UnsupportedModelError(
            f"The characteristic {what!r} must read one column to be imported; it reads {len(columns)} "
            f"({', '.join(sorted(columns)) or 'none'})."
        )
    field = fields[columns.pop()]

    def points_of(x: Value) -> float | None:
        return next((points for p, points in attributes if p(x) is True), None)

    named = [v for p, _ in attributes for v in p.named]
    replaced = None if field.missing_is is None else _as(field, field.missing_is, what)
    missing = points_of(replaced)
    return (_numbers if field.number else _categories)(field, what, named, points_of, missing), code


def _numbers(
    field: Field, what: str, named: Sequence[Any], points_of: Callable[[Value], float | None], missing: float | None
) -> Characteristic:
    """The points of a number, between the values that predicates name."""
    breaks = tuple(sorted(set(named)))
    found = []
    for x in representatives(breaks):
        points = points_of(x)
        if points is None:
            raise UnsupportedModelError(
                f"The characteristic {what!r} has no points for {x:g}, so such rows have no score. Add an "
                "Attribute for them."
            )
        found.append(points)
    return Numbers(field.name, breaks, tuple(found), missing)


def _categories(
    field: Field, what: str, named: Sequence[Any], points_of: Callable[[Value], float | None], missing: float | None
) -> Characteristic:
    """The points of each label, and of labels that no predicate names."""
    labels = list(dict.fromkeys((*field.declared, *named)))
    points = {label: points_of(label) for label in labels}
    if field.declared and any(label not in field.declared for label in labels):
        raise CorruptModelError(f"The characteristic {what!r} names a value that {field.name!r} does not declare.")
    known = {label: p for label, p in points.items() if p is not None}
    other = None
    if field.invalid == "asMissing":
        other = missing
    elif field.invalid == "asIs" or not field.declared:
        other = points_of("\0 a value that no file names")
    if other is not None and len(known) < len(labels):
        label = next(v for v in labels if v not in known)
        raise UnsupportedModelError(
            f"{what!r} has points for unknown values and none for {label!r}, which is not supported."
        )
    return Categories(field.name, tuple(known), tuple(known.values()), other, missing)
