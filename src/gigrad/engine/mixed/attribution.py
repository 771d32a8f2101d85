"""Credit for any composition `g(x, d(x))` of trees and continuous parts.

Along a path the trees jump at corners and are constant in between. A corner's jump goes to the variables that cross
there (`corners`). In between, the continuous credit is the integral of the score's derivatives with respect to curves
and lines (`head`, `integrate`), times the derivatives of those with respect to the columns (`panels`, `lines`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from ... import kernels
from ...graph import Array, Input, Node
from .. import limits
from ..paths import WHOLE, Block, Bools, Chosen, Paths
from ..roles import KeptRoles, Roles
from ..settings import Credits, Settings
from .corner_samples import sample_rows
from .jumps import EndValues
from .large_games import LargeCorner
from .loosely import first_intervals, walk_loosely
from .program import with_narrow_curves
from .retries import improve
from .table import Table
from .walk import PathCredits, Plan, walk
from .workers import in_order


def attribute(
    term: Node, source: Input, paths: Paths | Chosen, categories: Bools, allowed: Array, settings: Settings
) -> Credits:
    """Credit of every end for the node `term`.

    Parameters
    ----------
    categories : (p,)
        The columns that change at once.
    allowed : (n, k)
        Largest error that each row's credits may have.
    """
    players = np.arange(source.width) if settings.players is None else settings.players
    values = np.zeros((len(paths.ends), int(players.max(initial=-1)) + 1, term.width))
    error, finest, sampled = (np.zeros((len(paths.ends), term.width)) for _ in range(3))
    most, large = np.zeros(len(paths.ends), np.int64), list[LargeCorner]()
    roles = plan(term, source, settings)
    tell = told(paths.count)
    with kernels.watched(None):  # progress is reported by block, not by native calls inside of it
        for walked in walks(roles, paths, categories, allowed, settings, loosely=True):
            block = walked.block
            tell(len(block.row))
            credit = walked.credit[:, 0] * block.weight[:, None, None]
            kernels.add_rows(values.reshape(len(values), -1), block.row, credit.reshape(len(credit), -1))
            np.add.at(error, block.row, walked.error * block.weight[:, None])
            np.add.at(finest, block.row, limits.FINEST_ERROR * walked.tallest * block.weight[:, None])
            # The last row of a block may continue in the next one; all paths of the other rows are done now.
            large += walked.large
            done = [c for c in large if c.row != block.row[-1]]
            large = [c for c in large if c.row == block.row[-1]]
            sample_rows(roles, done, values, settings).add_to(values, sampled, most)
        sample_rows(roles, large, values, settings).add_to(values, sampled, most)
    return Credits(values, error + sampled, finest, sampled, most)


def told(total: int) -> Callable[[int], None]:
    """A progress callback: to be called with each number of paths that were completed."""
    watcher, done = kernels.watcher(), 0

    def tell(paths: int) -> None:
        nonlocal done
        done += paths
        if watcher is not None:
            watcher(done / max(total, 1))

    return tell


def plan(term: Node, source: Input, settings: Settings) -> Roles:
    """The role of each node of a term along a path: found once for each term, with the programs of the native core."""
    kept: KeptRoles = term.__dict__.setdefault("_roles", KeptRoles())
    key = (source, settings.native)
    if key not in kept:
        roles = Roles.of(term, source)
        kept[key] = with_narrow_curves(roles) if settings.native else roles
    return kept[key]


def walks(
    roles: Roles,
    paths: Paths | Chosen,
    categories: Bools,
    allowed: Array,
    settings: Settings,
    edges: Array = WHOLE,
    loosely: bool = False,
) -> Iterator[PathCredits]:
    """The credits of all paths, block by block, separately for each interval of time between neighbouring `edges`.

    With `loosely` set, a loose tolerance may be met by evaluating wide layers at a few times; results then have only
    the corners of the first such walk. The other arguments are those of `attribute`.
    """
    _keep_freed_memory()
    players = np.arange(roles.source.width) if settings.players is None else settings.players
    ends = EndValues.of(roles, paths)
    table = Table.of(roles, ends)
    chain, intervals = roles.sampled_chain if loosely else None, 0
    if chain is not None:  # by how many paths of a row are walked together
        each = min(paths.count / max(len(paths.ends), 1), limits.LOOSE_PATHS)
        intervals = first_intervals(chain, settings, each)
    size = limits.LOOSE_PATHS if intervals else _block_size(roles, settings, len(edges) - 1)

    def walked(block: Block, settings: Settings) -> list[PathCredits]:
        plan = Plan(roles, ends, table, players, settings, edges)
        if chain is not None and intervals:
            found = walk_loosely(plan, block, allowed, chain, intervals)
        else:
            found = [walk(plan, block, allowed[block.row], settings.careful)]
        return [improve(plan, part, allowed) for part in found]

    blocks = paths.blocks(size, categories)
    begun = [block for block in (next(blocks, None), next(blocks, None)) if block is not None]
    if table is not None or len(begun) == 1:  # one block has all threads to itself
        yield from (part for block in begun[:1] for part in walked(block, settings))
        begun = begun[1:]
    if table is not None:
        table.settle(paths.count // size)
    # Blocks do not depend on the number of threads, and the table is final: so the result is the same to the bit.
    threads = kernels.threads(settings.n_threads)
    alone = replace(settings, n_threads=1) if threads > 1 else settings
    for parts in in_order(lambda block: walked(block, alone), itertools.chain(begun, blocks), threads):
        yield from parts


@cache
def _keep_freed_memory() -> None:
    """Free one large, untouched block of memory, once in a process, which raises glibc's mmap threshold.

    Until it has freed a block this large, glibc returns the memory of freed arrays to the system and faults it in again
    page by page: without this the paper's ensemble takes 1.35 times as long (`benchmarks/results/limits.md`). The
    threshold adapts up to 32 MB; other allocators ignore it.
    """
    np.empty(31 << 17)


def _block_size(roles: Roles, settings: Settings, pieces: int) -> int:
    """The number of paths in a block: fewer if wide layers with kinks make many grid points on each."""
    kinks = sum(n.width for n in roles.lines if n.kinks)
    widest = max((n.width for n in roles.lines), default=1)
    each = 6.0 * widest * (2.0 * pieces + 0.6 * kinks)
    return 1 if each > limits.ALONE_NUMBERS else int(np.clip(limits.BLOCK_NUMBERS / each, 1, settings.block))
