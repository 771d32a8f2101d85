// Every constant of the native core that could have another value, by the folder that uses it. Those of speed give the
// same credits to 1e-12 at any value; they were measured at half and at twice of it (benchmarks/kernel_limits.py). Those
// of accuracy were measured beside the definition (benchmarks/accuracy_limits.py). The codes of formats (crossing times in `lanes/lanes.hpp` and `sweep/sweep.hpp`, lanes of
// a processor, coefficients of functions) are not choices and stand beside what they encode.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

// For measurements alone: constants that are not sizes of arrays are read from the environment, by name.
#ifdef GIGRAD_TUNED
#include <cstdlib>
#include <type_traits>
namespace gigrad {
template <class Number>
Number tuned(const char* name, Number value) {
    const char* text = std::getenv(name);
    return text ? static_cast<Number>(std::atof(text)) : value;
}
}  // namespace gigrad
#define GIGRAD_LIMIT(type, name, value) inline const type name = tuned<type>(#name, value)
#else
#define GIGRAD_LIMIT(type, name, value) constexpr type name = value
#endif

namespace gigrad {

// ---- Numbers

// Differences e - s whose inverse float32 can represent, with a margin of 1e5 to either end of its range; the others are
// computed in float64. With 1e-36 credits of columns of 2^-127 of their size are wrong; with 1e27 to 1e39 as the largest
// the same columns times 2^60 to 2^140 have theirs.
GIGRAD_LIMIT(double, LEAST_WAY, 1e-33);
GIGRAD_LIMIT(double, LARGEST_WAY, 1e33);
// Errors below this share of their terms are rounding: 16 units of float64.
GIGRAD_LIMIT(double, ROUNDING, 16.0 * 2.220446049250313e-16);
// The rounding of a coefficient of a corner's game, relative to its terms: of up to 50 leaves.
// With 1e-17 a corner of 30 players of which 15 cancel is sampled; with 1e-16 to 1e-6 players that cancel to 1e-12 to 1e-3
// of their terms keep their credit.
GIGRAD_LIMIT(double, TERM_ROUNDING, 1e-14);
// A level closer than this to an end of a bracket, relative to the values there, counts as not passed inside of it.
GIGRAD_LIMIT(double, LEVEL_MARGIN, 1e-12);
// A kink closer than this to an end of its piece, as a share of the piece, or to the kink before it, is ignored. Ramps of
// 1e-3 to 1e-15 of a path are within `error` with 1e-19 to 1e-7.
GIGRAD_LIMIT(double, CLOSEST_KINKS, 1e-13);
// Segments shorter than this in time are not divided any more.
GIGRAD_LIMIT(double, SHORTEST_SEGMENT, 1e-14);
// Rounding errors above this share of the allowed error are avoided, where a chord would cancel. With 2.5e-6 the error of a
// line under a sigmoid whose parts cancel to 1e-12 was too small by 38; with 2.5e-5 to 250 no case depends on it.
GIGRAD_LIMIT(double, SEEN_NOISE, 2.5e-4);
// Segments that are a smaller part of their panel than this are not searched for extrema.
GIGRAD_LIMIT(double, TURNING_SHARE, 1.0 / 64.0);
// Parts of a whole path in which a head that reads lines alone, and is not linear in them, is searched for kinks.
GIGRAD_LIMIT(double, FIRST_PARTS, 8.0);

// ---- Work: what is tried before its loss is counted in the error, or the call is refused

// A child may have two parents. Each path from a root to a leaf may cost a visit, so with more of them than this a walk
// would not end: at 10 ns each a pair would take 0.7 s.
constexpr double MAX_WAYS = 1 << 26;
// How often segments are halved: 40 times leave 1e-12 of a path.
constexpr int SEGMENT_HALVINGS = 40;
// The largest number of segments, as a multiple of the initial one.
constexpr size_t SEGMENT_GROWTH = 16;
// The most coefficients that a panel may have.
constexpr size_t MAX_DEGREES = 64;
// The largest number of a variable that a caller may name as a player of a corner: it sizes a table.
constexpr int32_t LAST_PLAYER = 1 << 24;
// How long it may take until a signal is noticed, in the thread of the call: unnoticeable for who presses Ctrl-C, and a
// check takes the GIL.
constexpr std::chrono::milliseconds POLL{50};

// ---- Units of work of a thread. The same for any number of threads, so that all give the same bits.

// Pairs of the portable walk: enough to fill the lists of a tree's nodes, few enough for their columns to stay in cache.
GIGRAD_LIMIT(size_t, BLOCK, 1024);
// Pairs that are swept one after the other.
GIGRAD_LIMIT(size_t, SWEEP_BLOCK, 64);
// Starts of a block of a population.
GIGRAD_LIMIT(size_t, START_BLOCK, 128);
// Starts whose credit is summed before it is added up: where there are too few rows, threads share these.
GIGRAD_LIMIT(size_t, START_CHUNK, 2048);
// Starts of a block with linear leaves, which are set up for every row and block: 200 starts in one block take 9.4 us a
// pair, in two 11 (100 trees of 31 leaves).
GIGRAD_LIMIT(size_t, LINE_STARTS, 512);
// The number of vectors whose traces are stored at once, and of pairs without vectors: about twenty kilobytes for each
// pair.
GIGRAD_LIMIT(size_t, TRACE_VECTORS, 32);
GIGRAD_LIMIT(size_t, TRACE_PAIRS, 64);
// Queries of scores at corners, and corners that are solved or sampled.
GIGRAD_LIMIT(size_t, QUERIES, 64);
GIGRAD_LIMIT(size_t, SOLVED_CORNERS, 16);
constexpr size_t SAMPLED_CORNERS = 8;
// Segments of heads that are processed together, about.
GIGRAD_LIMIT(size_t, TASK, 512);

// ---- What is done together, for caches and registers

// Rows that fit in the L1 cache while they are read column by column.
constexpr size_t READ_TOGETHER = 32;
// Predictions: rows that go down a tree in parallel, rows for which a tree is loaded once, and trees that one row goes
// down in parallel.
constexpr size_t ROWS_TOGETHER = 8;
GIGRAD_LIMIT(size_t, PREDICTED_ROWS, 64);
constexpr size_t TREES_TOGETHER = 16;
// Rows whose values are ranked together for a sweep.
constexpr size_t RANKED_TOGETHER = 8;
// Groups of lanes whose nodes a sweep fetches before it compares them: a short loop that only loads them has many loads
// in flight.
constexpr size_t FETCHED_GROUPS = 32;
// The largest number of levels of a column whose sides a sweep tabulates, and of numbers of the table.
constexpr size_t MOST_LEVELS = 1 << 12, MOST_SIDES = 1 << 18;
// Splits of the paths to leaves, at most, for a sweep to compute ambiguous leaves in vectors: one bit of 16 for each, and
// one to spare.
constexpr size_t SWEEP_CORNER_DEPTH = 15;
// Where at most so many lanes reach a subtree of at least so many nodes, the exact walk takes over.
constexpr int FEW_LANES = 2, FEW_BELOW = 32;
// Rows and columns of a product of small matrices that stay in registers: 16 of AVX2.
constexpr size_t TILE_ROWS = 4, TILE_COLUMNS = 8;
// Points of a panel's series: the recurrence of one point is a dependency chain, those of several run in parallel.
constexpr size_t SERIES_TOGETHER = 8;
// The most points that a program of a head is run for at once.
constexpr size_t POINTS = 64;
// Units with kinks that are checked together for a change of sign, on the pieces of a path and in rows of numbers.
constexpr size_t CHECKED_UNITS = 16;
constexpr size_t CHECKED_COLUMNS = 64;
// Units of a layer that are pulled back together in registers: two vectors of AVX2. Wide layers have a multiple of it.
constexpr size_t PULLED_UNITS = 8;

// ---- Which walk (`policy.hpp`)

// Paths to leaves for each node of the trees. Trees that share no children have about one half. From here on vectors,
// which follow every path, are slower than the walk node by node, which follows only those that some coalition takes.
constexpr double TANGLED_WAYS = 4.0;
// Above this number of nodes the splits are not sorted, which a sweep needs: sorting would take longer than most walks.
constexpr size_t MOST_NODES = 1 << 20;
// Distinct tests of a sweep for each tree. A sweep computes the side of every test, a walk only of those on its path:
// about eleven in a tree of depth 6. Measured with AVX-512 on 100 trees of depth 6 over 20 columns: a pair takes 5.9 us
// with 16 and 5.8 us with 28 tests for each tree (sweep), 12.7 us with 40 (lanes).
GIGRAD_LIMIT(size_t, MOST_TESTS, 32);
// With at most this many starts the vectors of a block are so empty that sweeping each pair is faster: a vector has 8
// or 16 lanes. Measured on the same trees, for a row: 11, 22 and 44 us with 2, 4 and 8 starts (sweep), 71 us with 9, 84
// us with 12 and 81 us with 16 (lanes): the sweep would be the faster one up to about 14.
GIGRAD_LIMIT(size_t, FEW_STARTS, 8);

// ---- Corners of many variables (`link/corner_policy.hpp`)

// Corners of at most this many players are always enumerated.
GIGRAD_LIMIT(size_t, ALWAYS_ENUMERATED, 12);
// The largest number of players whose coalitions are all enumerated. Twenty take 6 ms under a sigmoid, each further one
// doubles the time.
constexpr size_t MAX_ENUMERATED = 24;
// Corners of a path that is drawn, each solved alone: 0.4 ms for sixteen players.
constexpr size_t MAX_TRACED = 16;
// Numbers of a table of coalitions, at most: 8 MB a thread. Larger games are done in parts.
GIGRAD_LIMIT(size_t, TABLE_NUMBERS, size_t{1} << 20);
// Numbers of a part of the zeta transform that is done level by level: 16 KB, half an L1 cache.
GIGRAD_LIMIT(size_t, ZETA_NUMBERS, size_t{1} << 11);
// Moebius coefficients that are compared to find out whether a player has no effect.
GIGRAD_LIMIT(size_t, COMPARED_COEFFICIENTS, size_t{1} << 18);
// Enumerating this many numbers costs less than the smallest sample: its set-up, with another walk through the trees,
// took 0.35 ms for 300 trees of depth 6 and each group of orders 0.027 ms, and a number takes about 5 ns.
constexpr double LEAST_SAMPLE = 1 << 17;
// Numbers that may be computed for the coalitions of a corner, at about 6 ns each, for a row with a single reference:
// sampling it to within DEFAULT_TARGET would cost more. With the weight 1 / r the number of samples falls with r^2, and
// a pilot sample decides whether sampling costs less (sampling.py).
constexpr double ROW_NUMBERS = 1 << 26;
constexpr double DEFAULT_TARGET = 1e-3;
// Bytes that a call keeps of corners that will be sampled, so that they need not be walked to again, which took a tenth of
// the time of census data: about 20 KB each there. Beyond it they are walked to again, with the same bits.
GIGRAD_LIMIT(size_t, STORED_BYTES, size_t{1} << 28);
// The largest number of players of a sampled corner whose coalitions are enumerated for every order of the others: one
// block of a fold. With six the variance was twice as large, with ten the time.
constexpr size_t STRONG_PLAYERS = 8;
// The same for one margin, where WeakCubic leaves little variance: on synthetic census data (XGBoost 300 x 6) the
// standard deviation of a group was 0.43, 0.31, 0.21 and 0.15 thousandths with five to eight, its time 9, 14, 22 and 34
// us.
constexpr size_t STRONG_OF_ONE_MARGIN = 6;
// Leaves that require up to this many weak players out are expanded into conditions without such players: different
// leaves share these, and each is met only once in an order, while a leaf is added and removed. WeakCubic has the
// largest effect if all are expanded.
constexpr uint32_t TAKEN_APART = 6;
// The most groups of orders that are drawn on the evidence of one: it may have been an outlier.
constexpr double MOST_GROUPS = 96.0;
// Safety factor of that estimate: it has one degree of freedom, and few groups have a wide bound.
constexpr double GROUP_CAUTION = 6.0;

}  // namespace gigrad
