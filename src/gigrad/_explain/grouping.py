"""Columns that act, and are shown, as one variable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._common import checks
from ..errors import InputError


@dataclass(frozen=True)
class Grouping:
    """Which columns make which feature.

    Attributes
    ----------
    names : tuple of str
        The columns.
    members : dict of str to tuple of int
        For every feature the positions of its columns. A group stands where its first member stood.
    """

    names: tuple[str, ...]
    members: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, names: Sequence[str], groups: Mapping[str, Sequence[str]] | None) -> Grouping:
        """Columns gathered into groups; those in no group stay features of their own."""
        home: dict[str, str] = {}
        groups = checks.mapping(groups, "groups", '{"housing": ["rent", "owns"]}') if groups else {}
        for name, members in groups.items():
            if not isinstance(name, str):
                raise InputError(f"The name of a group must be a text; got {name!r}.")
            if isinstance(members, str) or not isinstance(members, Collection) or len(members) == 0:
                raise InputError(f"The group {name!r} must be a list of features, at least one; got {members!r}.")
            for member in members:
                if member not in names:
                    raise InputError(
                        f"The group {name!r} must hold features of the explanation; {member!r} is not one."
                    )
                if member in home:
                    raise InputError(f"A feature may be in one group; {member!r} is in {home[member]!r} and {name!r}.")
                home[member] = name
        clash = next((n for n in groups if n in names and n not in home), None)
        if clash is not None:
            raise InputError(f"A group needs a name of its own; {clash!r} is also a feature outside of it.")
        merged: dict[str, list[int]] = {}
        for i, column in enumerate(names):
            merged.setdefault(home.get(column, column), []).append(i)
        return cls(tuple(names), {name: tuple(columns) for name, columns in merged.items()})

    @cached_property
    def players(self) -> NDArray[np.int64] | None:
        """For every column the number of its feature; None where every column is a feature."""
        if len(self.members) == len(self.names):
            return None
        out = np.empty(len(self.names), np.int64)
        for number, columns in enumerate(self.members.values()):
            out[list(columns)] = number
        return out

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The positions of all columns, with the columns of each feature next to each other."""
        return np.array([c for columns in self.members.values() for c in columns], np.int64)

    @cached_property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """The features that are not simply one column of the same name, with the names of their columns."""
        return {
            name: tuple(self.names[c] for c in columns)
            for name, columns in self.members.items()
            if len(columns) != 1 or self.names[columns[0]] != name
        }
