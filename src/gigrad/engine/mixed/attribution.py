"""Credit for any composition `g(x, d(x))` of trees and continuous parts.

Along a path the trees jump at corners and are constant in between. A corner's jump goes to the variables that cross
there (`corners`). In between, the continuous credit is the integral of the score's derivatives by curves and lines
(`head`, `integrate`), times the derivatives of those by the columns, known at a few nodes a path (`panels`, `lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain

import numpy as np

from .. import kernels
from ..graph import Array, Elementwise, Input, Node, PiecewiseLinear
from .jumps import EndValues
from .large_games import LargeCorner, sample_rows
from .paths import WHOLE, Block, Bools, Chosen, Paths
from .program import with_narrow_curves
from .retries import FINEST, improve
from .roles import Roles
from .settings import Credits, Settings
from .table import Table
from .walk import Walk
from .workers import in_order

BLOCK = 1 << 25
"""How many numbers the lines of a block of paths may hold, roughly."""

ENOUGH = 1 << 20
"""A path whose lines hold more numbers than this is walked alone: with others it would only leave the caches."""


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
    with kernels.watched(None):  # native calls are parts of blocks: what they have done says nothing
        for walk, credit, lost in walks(roles, paths, categories, allowed, settings):
            block = walk.block
            tell(len(block.row))
            np.add.at(values, block.row, credit[:, 0] * block.weight[:, None, None])
            np.add.at(error, block.row, lost * block.weight[:, None])
            np.add.at(finest, block.row, FINEST * walk.tallest * block.weight[:, None])
            # The last row of a block may go on in the next one; of all others every path is known now.
            large += walk.large
            done = [c for c in large if c.row != block.row[-1]]
            large = [c for c in large if c.row == block.row[-1]]
            sample_rows(roles, done, values, sampled, most, settings)
        sample_rows(roles, large, values, sampled, most, settings)
    return Credits(values, error + sampled, finest, sampled, most)


def told(total: int) -> Callable[[int], None]:
    """A function to call with every number of paths that are done, for whoever watches how far the work is."""
    watcher, done = kernels.watcher(), 0

    def tell(paths: int) -> None:
        nonlocal done
        done += paths
        if watcher is not None:
            watcher(done / max(total, 1))

    return tell


def plan(term: Node, source: Input, settings: Settings) -> Roles:
    """What each node of a term does along a path."""
    roles = Roles.of(term, source)
    return with_narrow_curves(roles) if settings.native else roles


def walks(
    roles: Roles,
    paths: Paths | Chosen,
    categories: Bools,
    allowed: Array,
    settings: Settings,
    edges: Array = WHOLE,
) -> Iterator[tuple[Walk, Array, Array]]:
    """Walk all paths block by block.

    Gives each block's walk, the credit (paths, pieces, players, k) gathered between any two neighbours of `edges`, and
    its estimated error (paths, k), both without the corners that are left to be sampled, which are `large` of the walk.
    The other arguments are those of `attribute`.
    """
    _keep_freed_memory()
    players = np.arange(roles.source.width) if settings.players is None else settings.players
    ends = EndValues.of(roles, paths)
    table = Table.of(roles, ends)
    size = _block_size(roles, settings, len(edges) - 1)

    def walked(block: Block, settings: Settings) -> tuple[Walk, Array, Array]:
        limit, careful = allowed[block.row], settings.careful
        walk = Walk(roles, block, ends, table, limit, players, settings, edges, careful=careful)
        credit, lost = walk.credits()
        improve(walk, ends, allowed, credit, lost)
        return walk, credit, lost

    blocks = paths.blocks(size, categories)
    begun = [block for block in (next(blocks, None), next(blocks, None)) if block is not None]
    if table is not None or len(begun) == 1:  # one block has all threads to itself
        yield from (walked(block, settings) for block in begun[:1])
        begun = begun[1:]
    if table is not None:
        table.settle(paths.count // size)
    # Blocks do not depend on the number of threads, and the table changes no more: neither does any bit of the answers.
    threads = kernels.threads(settings.n_threads)
    alone = replace(settings, n_threads=1) if threads > 1 else settings
    yield from in_order(lambda block: walked(block, alone), chain(begun, blocks), threads)


@cache
def _keep_freed_memory() -> None:
    """Free one large block of memory, which was never touched, once in a process.

    Until it has seen a block this large freed, glibc gives what arrays leave behind back to the system and takes it
    anew page by page: a fifth of the time of a single row. It learns from blocks of up to 32 MB; others do not mind.
    """
    np.empty(31 << 17)


def _block_size(roles: Roles, settings: Settings, pieces: int) -> int:
    """How many paths to walk together: fewer where layers of many units with kinks make many points of each."""
    kinks = sum(n.width for n in roles.lines if isinstance(n, (Elementwise, PiecewiseLinear)) and n.kinks)
    widest = max((n.width for n in roles.lines), default=1)
    each = 6.0 * widest * (2.0 * pieces + 0.6 * kinks)
    return 1 if each > ENOUGH else int(np.clip(BLOCK / each, 1, settings.block))
