"""Every constant of the engine, in one place, by what it decides.

Those of speed and memory were measured at half and at twice their values: `benchmarks/limits.py`. Those of accuracy
were changed likewise while random models were compared with the definition: `benchmarks/accuracy_limits.py`. None of
these changes made an error of 510 rows larger than claimed; where a longer run found one, it is said at the constant.
On most of them no random model depends: models made for each are in `benchmarks/accuracy_cases/`, and what these show
at other values is said at the constant, too.
"""

from __future__ import annotations

import numpy as np

# ------------------------------------------------------------
# Accuracy: what is rounding, what is one time, how cautious an estimate is. They follow from float64, not from clocks.

SUM_ROUNDING = 1e-13
"""The rounding error of sums, relative to their terms. Below 1e-17 sums of credits that cancel to 1e-9 are warned about
for their rounding, from 1e-7 on a loss of 1e-9 of such credits is not told."""

JUMP_HALVINGS = 40
"""Bisections in the search for a jump: 40 of them leave 1e-12 of a path; a change that remains there is a jump. With 20
of them a rise within 1e-5 of the path is taken for a jump, with 160 a wrong gradient is no longer named."""

STEP_SHARE = 1e-6
"""A change of an opaque function that keeps more than this share of its size through these bisections is a jump, and
otherwise a rise without a gradient. From 1e-8 on down the rounding of float32 is taken for jumps, from 1e-4 on up a
staircase of 3e4 steps for a rise."""

AGREEING_GRADIENT = 1e-6
"""A function whose change along a path differs from its integrated gradient by less than this share of its values is
not the cause of a gap. From 1e-8 on down a smooth function in float32 is named in place of the one that jumps, from
1e-5 on up a jump of 3e-6 of the values is not named."""

JUMP_SHARE = 1e-3
"""More than this share of such a difference left in the last interval of the bisections is a jump. From 1e-6 on down a
wrong gradient is taken for a jump, from 1e-2 on up none of 200 equal jumps is named."""

SLOPES_DIFFER = 1e-3
"""Relative difference between a function's slope and the one by its gradient that is more than rounding on an interval
of 2^-20 of a path. From 1e-7 on down the kink of a function with values of 1e3 is taken for a wrong gradient, from 1e-2
on up a gradient that is wrong by 1 % is not named."""

MOSTLY = 0.7
"""A gradient is wrong if slopes differ on more than this share of that interval; at a kink they differ on a part. Of
eight parts of the interval a kink changes one: any value from 0.126 to 0.99 gives the same messages."""

UNCHANGED = 1e-9
"""A change below this share of the largest value is rounding. From 1e-12 on down a column that cancels out up to a
rounding of 1e-11 is refused, from 1e-7 on up an effect of 7e-8 without a gradient is accepted. In float32 columns that
cancel out are refused, too."""

ALWAYS_ENUMERATED = 12
"""Corners of up to so many players are never sampled (`kernels/link/corner_policy.hpp`). Any value from 1 to 96 gives
the same bits for corners of 6 to 20 players: it only saves the search for players without effect."""

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Errors below this share of the numbers that they come from are rounding."""

LEVEL_MARGIN = 1e-12
"""A level closer than this to an end of a bracket, relative to the values there, is not crossed inside the bracket."""

SPEED_NOISE = 4e-15
"""The rounding error of the speed of a score at a threshold, relative to the largest sizes of its parts. With 5e-16 the
error was too small by 1.9 for a product that is slow at a threshold, with 1e-16 by 6; from 1e-12 on there are false
warnings."""

STILL = 1e-10
"""A score slower than this at a threshold, relative to the same sizes, has no speed: its direction is extrapolated.
With 1e-16 products that start at the threshold are not at rest."""

REST_REACH = 2.0**-20
"""The distance of the farther of the two points that it is extrapolated from, as a share of the panel; the other is at
half of it. The error is the square of this, plus the noise of a speed that is about as small, 1e-9; at 2^-10 the former
is 1e-6. From 2^-23 on down rounding exceeds tol 1e-6; up to 2^0 the error that is claimed holds."""

REST_LOSS = 1e-7
"""A bound on the error of these extrapolated shares, relative to the jump: 5e-9 was the largest of 360 products of
columns that start at 0 and end at 1e-3 to 1e3. No product was found where another term of the error did not cover it:
with 1e-13 the largest true error was 1e-3 of the error."""

REST_AGREES = 1.25
"""The largest ratio of the parts of the speed, relative to the speed, at the nearer point to those at the farther one:
parts that cancel each other double, parts that vanish together keep their ratio. With half of it products at rest are
warned about. Larger values show in no case since `SPEED_NOISE` counts single columns."""

SHORT_MOVE = 0.05
"""Where a score moves less than this, the chord's slope loses digits: the mean of slopes inside is more accurate."""

SMOOTH_GRADIENT = 0.1
"""A gradient is smooth where its middle value is within this share of its change from the mean of both ends."""

SINGLE_KINK = 0.25
"""A change counts as one kink if the rest of its interval has a smaller share of it than this."""

KINKED_GRADIENT = 0.3
"""A gradient has a kink where its rate of change differs by more than this share from that of the next interval."""

SHORTEST_BRACKET = 1e-13
"""No bracket around a kink of an opaque function is made shorter than this in time."""

GRADIENT_ROUNDING = 1e-12
"""Changes of the gradient below this share of its size are rounding."""

KERNEL_CELL = 2.0
"""Length of a cell, in units of the kernel's width: 12 nodes interpolate exp(-d * d) on it to 1e-12."""

KERNEL_REACH = {"gaussian": 6.0, "exponential": 36.0, "matern32": 24.0, "matern52": 20.0, "rational": 12.0}
"""Distances beyond which a kernel is negligible or, for the rational one, varies little over a cell."""

KERNEL_STRETCHES = 32
"""The number of straight lines that approximate a panel if the kernel's input is curved. With 4 a kernel of a width of
1e-3 of a path is overlooked; with 8 it is not."""

TURNING_SHARE = 1 / 64
"""Segments that are a smaller part of their panel than this are not searched for extrema. At 1/2 a score that turns
above a threshold is overlooked between other jumps, up to 1/10 it is found between 1000 of them."""

SHORTEST_PANEL = 1e-9
"""Panels shorter than this in time are not divided any more. Sigmoids up to 1e12 times as steep as a curve are within
`error` with 1e-15 to 1e-3."""

SAME_CUT = 1e-10
"""Kinks of curves closer than this share of their panel are one, and those as close to its ends are its ends."""

SAME_EDGE = 1e-9
"""Edges of a kernel's cells closer than this share of a polyline are one. Gaussian kernels of a width of 1e-1 to 1e-8
of a path are within `error` with 1e-15 to 1e-3."""

JOINT_SHARE = 0.1
"""Share of a path's tolerance that interpolated joints may cause at a corner before they are evaluated there. No case
depends on it from 1e-7 to 1e5: the error counts what is not evaluated."""

SLOW_DECAY = 0.7
"""Legendre coefficients whose ratio from one degree to the next is larger than this count as not falling at all."""

SHORTEST_SEGMENT = 1e-14
"""Segments shorter than this in time are not divided any more. Ranks with knots 1e-1 to 1e-15 apart have the same bits
with 1e-20 to 1e-8."""

TIMES = 2.0**30
"""Equal multiples of 1 / TIMES are one time (spec, section 3). It is the definition's: with half or twice, ties are
shared that are none, or the reverse."""

CLOSEST_KINKS = 1e-13
"""Kinks closer than this share of their piece are one. Ramps of 1e-3 to 1e-15 of a path are within `error` with 1e-19
to 1e-7."""

SLOWEST_JOINT = 1e-12
"""The least movement of a joint that is assumed, as a share of its parts. With 1e-3 the error of a line under a sigmoid
whose two parts cancel to 1e-7 was too small by 300, with 1e-10 it is a third of the error of parts that cancel to
1e-12."""

FINEST_ERROR = 1e-12
"""The smallest error that is aimed at, relative to the largest score on a path. From 1e-15 on down a wave of height 1e6
whose ends are 1 is warned about, from 1e-8 on up a gradient wrong by 1e-9 of it is not."""

PANEL_ROUNDING = 1e-13
"""The rounding error of one panel, as a share of the numbers that are added up there. From 1e-10 on up tol 1e-9 is
missed where a score is 1e6 inside of a path and 1 at its ends; 1e-19 only costs panels."""

KINK_SHARE = 1e-4
"""The error allowed for the uncertain time of a kink of an opaque function, as a share of the path's tolerance."""

CAUTION = 3.0
"""Safety factor: error estimates from the decay of Legendre coefficients are multiplied by this."""

ROOTS_RATE = 0.5
"""The fastest decay of coefficients that is trusted beside a kernel with a root of the distance (Matern, exponential).
They fall quickly at first, and then slowly: the root is a small part of the kernel, but singular where a path passes
close to a support vector. Without it the error was too small in 14 of 8,000 rows of random such machines at tol 1e-6,
by up to 7.4, and in 3 of 6,000 at 1e-9; with 0.4 in 2, by up to 4.8, with 0.5 in 1, by 2.0, and in none."""

GAP_CAUTION = 2.0
"""Safety factor of the gap in the error of a mixed ensemble: errors of columns may cancel in the gap. With 1 the error
was too small by 1.05 in 2 of 18,700 random compositions; with 3 there are warnings because of rounding alone where a
kernel machine's terms cancel (scores of 1e-4 at tol 1e-9)."""

KINKED_CAUTION = 1.5
"""A further factor of the error of a head over lines with kinks, whose columns' parts are known only of a whole leg.
Without it the error was too small by 1.12 in 1 of 200,000 rows of random compositions."""

SAMPLED_CAUTION = 3.0
"""Safety factor of the difference between n and n / 2 intervals (`loosely`). With 1 the error was too small for 17 of
776 rows of random ensembles, by up to 3.4: under an ECDF whose knots are close the error falls slowly. With 0.3 it was
too small by 1.1 for nets of layers of 120 units."""

SAMPLED_SHARE = 0.25
"""The panels' share of the allowed error where layers are evaluated at a few times, which may use up the rest. With
2.5e-7 to 2.5e5 the errors of such nets hold: it divides the work."""

SAMPLED_STEADY = 0.25
"""Derivatives of the parts of an interval share a direction where their sum has more than this share of the sum of
their squares; four equal ones have 4, four at right angles 1. With 2.5e-7 to 2.5e5 the errors of nets of 120 units
hold; half and twice change no bit."""

SAMPLED_EACH = 2
"""Evaluations of layers in each interval. The paper's ensemble at 16 intervals is off by 7e-4 of the largest credit;
with one evaluation each by 1.4e-3, with four by 2.6e-4 at twice the cost. With 1 to 16 the errors of nets of 120 units
hold."""

SAMPLED_LAYERS = 2
"""In the first so many layers of units all kinks are found; in later ones those between the points of evaluation. With
1 to 16 the errors of nets of three and four layers hold."""

TABLE_CONVERGED = 1e-13
"""The last coefficients of a tabulated head must be below this share of its largest value. With 1e-10 the error of
heads of 80 units was too small by 24; with 1e-19 none is tabulated."""

TABLE_TESTED = 48
"""The number of further points at which a tabulated head is compared with the head itself. With 6 to 384 the same heads
of 80 units are tabulated, to within `error`."""

# ------------------------------------------------------------
# Speed: which of two exact ways is taken. Any value gives the same answers within the tolerance.

TRACED_WEIGHTS = 1 << 13
"""Layers of more weights than this, over two or more layers of units with kinks, are multiplied by NumPy's BLAS for all
paths of a block at once: 128 x 128 takes 0.93 of the core's time there, 256 x 256 0.59."""

ROW_PRODUCT_KINKS = 2
"""Two layers are multiplied into one for a row where the paths to it pass, in all, so many kinks for each lower unit,
as the product takes as long as three paths of 500 kinks gain by it. The paper's net takes 25 ms a pair with 8
references in place of 33 at tol 1e-8, and 51 where layers are not followed together (`two_layers`)."""

KEPT_PRODUCTS = 2
"""The number of rows for which such products are kept, 8 MB each for layers of 1,000: threads may be at neighbouring
rows."""

KINKS_TOGETHER = 64
"""Kinks of lower units that are multiplied together, by the upper units that have another slope than at the row at any
of them or later: the paper's ensemble takes 31.7 ms a pair with 32 and 64, 32.1 with 128."""

WIDE_UNITS = 128
"""Layers of so many tanh or sigmoid units over lines with kinks are evaluated at the ends of panels. Without it the
paper's net takes 1.5 times as long at tol 1e-8."""

PULLED_UNITS = 8
"""Units that are pulled back together: the width of such layers is a multiple of it."""

SAMPLED_UNITS = 24
"""With more than one interval for so many units with kinks, following every kink is cheaper: for 2,000 units 64
intervals, with the 32 that they are compared with, take two thirds of that time."""

SAMPLED_ERROR = 0.6
"""The assumed error estimate at n intervals, relative to the score, times n * n; it sets the first number of intervals.
On the paper's ensemble it is 0.2 to 1; too small a value costs one more walk, too large a value more intervals than
needed."""

LOOSE_PATHS = 128
"""Paths whose rows are judged together: errors of paths have either sign, and four blocks of 32 would add up to twice
as much."""

ALONE_NUMBERS = 1 << 20
"""A path whose lines hold more numbers than this is computed alone: with others it would not fit in the caches."""

BREAK_POINTS = 2048
"""Points at which an opaque function is evaluated in one call: more would not fit in the caches."""

SMALL_GAME = 8
"""Corners of up to this many players are computed in batches; larger ones one by one, as a game of their own."""

FEW_JUMPING = 8
"""Up to so many columns that jump at once all count as players, whether they have an effect or not."""

WIDEST_LINE = 64
"""Lines of more columns than this are taken to be moved by one column of the rows each."""

PANEL_NODES = 12
"""Panels that need more nodes than this are halved."""

FIRST_DIGITS = {True: 2 / 3, False: 0.85}
"""The share of the wanted digits that the first panels aim at, where lines are straight and where they have kinks."""

FIRST_NODES = ((0.01, 2), (0.04, 3), (0.12, 5), (0.3, 8), (np.inf, PANEL_NODES))
"""Nodes of a first panel up to each length, where nothing else is known."""

NODES_PER_DIGIT = 1.1
"""First nodes of half a path for each digit of 10 / tol, where nothing else is known: at tol 1e-6 the 8 of a kernel
machine give errors of 1e-13 where 1e-9 is claimed, in 0.58 (SVC), 0.81 (SVR) and 0.9 (Gaussian process) of the time."""

NARROW_CURVES = 16
"""Curves of no more columns than this in all are evaluated on every segment, as a part of the head."""

SEGMENT_NODES = (1, 2, 4, 8)
"""Nodes on a segment of the head: an interpolant is orthogonal to what it misses up to that degree."""

NODES_BETWEEN_KINKS = 6
"""Nodes of the panels between kinks of an opaque function."""

TABLE_WIDTH = 64
"""A head of fewer units is as quick as a series. Without tables the paper's ensemble takes 1.50 times as long."""

TABLE_AXES = 3
"""A head that reads more numbers is not tabulated."""

TABLE_NODES = (8, 12, 16, 24, 32, 48, 64)
"""How many nodes an axis of a table may have."""

TABLE_ROOM = 0.2
"""By what share of its width the box of a table reaches beyond what was seen, at either side."""

# ------------------------------------------------------------
# Memory: how many numbers are held at once.

LISTED_STARTS = 1024
"""Paths whose jumps are listed at once: it bounds the table of credits of their corners."""

SCORED_POINTS = 20_000
"""Points of paths at which the score is computed in one block."""

LEAF_PAIRS = 1 << 12
"""Pairs of trees with linear leaves that are done at once."""

SCORE_BLOCK = 1 << 20
"""How many numbers the moves of the paths that are done at once may have."""

BLOCK_NUMBERS = 1 << 25
"""How many numbers the lines of a block of paths may hold, roughly."""

BREAK_NUMBERS = 1 << 24
"""Numbers that all points of a search for kinks may hold; what has not been found then stays in its panel."""

DISTANCES = 1 << 22
"""Distances between points of paths and support vectors that are held at once."""

COALITIONS = 1 << 16
"""The largest number of coalitions that are evaluated in one block."""

CROSSING_BLOCK = 2048
"""How many threshold crossings of scores are shared out at once: a few megabytes beside some hundred joints."""

LOOSE_NUMBERS = 1 << 18
"""Units times intervals of all paths whose layers are evaluated together: products of 500 rows reach full speed."""

SCORED_NUMBERS = 1 << 22
"""The largest number of intermediate values in one block when all starts and ends are evaluated."""

BATCH_NUMBERS = 1 << 21
"""How many numbers a batch of panels may hold at once, roughly."""

# ------------------------------------------------------------
# Work: how often something is tried before its loss is counted in `error`.

FIRST_RETRIED = 16
"""Rows that do not add up and are recomputed first; if that helps none of them, the others are not recomputed."""

PROBED_PATHS = 8
"""Paths on which an opaque function is compared with its gradient before anything is explained."""

BREAK_STEPS = 64
"""Steps of the search for kinks of an opaque function, at most."""

BREAK_POINTS_EACH = 512
"""Points that a panel is expected to need, where panels are searched for kinks together."""

SEGMENT_HALVINGS = 40
"""How often the segments that lose too much are halved."""

SEGMENT_GROWTH = 16
"""The largest number of segments, as a multiple of the initial one: beyond it the loss is counted as error."""

RETRIES = 2
"""How often paths that were not accurate enough are recomputed."""

PANEL_GROWTH = 16
"""Panels are refined up to this many times their first number, and 64 a leg."""

TABLE_POINTS = 1 << 13
"""The largest number of head evaluations for one table."""

TABLE_TRIES = 4
"""How often a table may be recomputed because a path left its box."""

# ------------------------------------------------------------
# Sampling of large corners and merging of equal starts.

PILOT_GROUPS = 48
"""The number of groups of orders in a row's pilot, allocated to its corners by weight."""

SAMPLING_STAGES = 3
"""The number of stages, the pilot and up to two later samples: the error probability is divided among them."""

LEAST_GROUPS = (4.0, 10.0)
"""The least number of groups of a corner, in the pilot and after it: fewer do not suffice to estimate a variance."""

SAMPLED_NUMBERS = (2.0**25, 2.0**26, 2.0**29)
"""Numbers that may be computed for a row after its pilot: so many for each sampled corner, within the other two.

A number takes about 6 ns under a link. Rows of 24 to 32 categories that all matter need 2^25 to 2^29 of them to come
within 1e-3 of their largest credit.
"""

STAGE_CARE = (1.0, 1.1, 1.3)
"""Safety factor of each stage: its sample is planned for an error smaller than the target by this factor."""

SAMPLE_GROWTHS = 1.1 ** np.arange(-20, 140)
"""The costs of a later sample that are considered, as multiples of that of the pilot: up to half a million."""

EVEN_SHARE = 0.3
"""The part of a row's cost that is allocated evenly: the spread of a few groups is an unreliable estimate."""

GAME_BLOCK = 1 << 13
"""Coalitions whose score is computed in one block, so that it stays in a cache."""

ORDER_NUMBERS = 1 << 17
"""The largest cost of the coalitions of one order, in numbers; where it is larger, fewer players are enumerated."""

QUOTA_ERRORS = 4.0
"""Standard errors that the target is taken for; the bound has six or more, but most corners vary less than they may."""

LINK_PILOT_GROUPS = 3.0
"""Groups of orders of a corner in the pilot, at least: their spread determines how many it needs."""

MERGED_SHARE = 0.75
"""Equal starts are merged if at most this share of them is distinct. On tables with an amount or an income hardly any
two rows are equal; of 2,000 rows of 10 flags a quarter was distinct, of the 9 categories of Adult three fifths.
"""

STORED_COALITIONS = 1 << 14
"""The largest number of coalitions for which values of smooth parts are stored; with more, only those of sampled orders
are evaluated."""

CONTROL_VARIATES = 16
"""The largest number of control variates: scores with known Shapley values that reduce the variance of sampling."""

HEAD_COST = 4
"""Numbers computed by a head that cost as much as one unit of the policy's costs, about 4 ns."""
