// Data shared by the sweep and the rest of the kernel: plain structs, nothing that a compiler would emit twice.
//
// A sweep takes one pair through all trees in parallel, where the vector walks of lanes.hpp take many pairs through one
// node. It is for pairs that are computed singly: a single reference, one reference for each row, or a link that needs
// the jumps of each pair.
//
// When a pair crosses each test (a distinct split) is stored once, as a *code*: fifteen bits of time, and the side that
// comes first in the lowest bit. Every node reads this table, which fits in cache, instead of the two rows. A code
// above the number of its test is a *key*: the smaller and the larger of two keys give the time and the test at once.
// As in the vector walks, codes decide only unambiguous cases; an ambiguous leaf goes to the exact walk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "limits.hpp"

namespace gigrad {

// A node: its test in the lower half, how far on its left child lies (whose neighbour is the right one), and in the two
// highest bits whether the right and the left child are leaves. A leaf points to itself: its offset is 0,
// and both bits are set, so that a sweep that has reached it stays there.
constexpr int SWEEP_OFFSET_SHIFT = 16;
constexpr uint32_t SWEEP_TEST = 0xffff, SWEEP_MAX_TESTS = SWEEP_TEST - 1, SWEEP_MAX_OFFSET = (1u << 14) - 1;
constexpr uint32_t SWEEP_LEFT_LEAF = 1u << 31, SWEEP_RIGHT_LEAF = 1u << 30;
// A path's own ends open and close one leaf of every tree. A single accumulator for all of them would be a dependency
// chain, so there are several: first those of starts, then those of ends.
constexpr int32_t SWEEP_STARTS = 8, SWEEP_NONES = 2 * SWEEP_STARTS;
constexpr int32_t SWEEP_LEAF = INT32_MIN;  // the sign bit of a place marks a leaf

// Codes: a time t from 0 to 1 has 2 * floor(SWEEP_UNITS * t) - SWEEP_ORIGIN, and a side. Before and after all of them are
// those of the path's own ends, and then those of tests that are not crossed.
constexpr int32_t SWEEP_UNITS = 32704, SWEEP_ORIGIN = 32704;
constexpr int32_t SWEEP_FIRST = -32720, SWEEP_LAST = 32720, SWEEP_NEVER[2] = {-32736, 32736};
// Keys: codes above the numbers of tests. Rounding moves a code by less than a unit, so keys further apart are in order.
constexpr int SWEEP_CODE_SHIFT = 16;
constexpr int32_t SWEEP_DOUBT = 2 * 2 << SWEEP_CODE_SHIFT;
constexpr int32_t sweep_key(int32_t code, int32_t test) { return code * (1 << SWEEP_CODE_SHIFT) + test; }

// Parts of the pair's path: the place of the node that each is at, and the keys between which it is there.
struct SweepParts {
    int32_t *place, *lo, *hi;
};

struct SweepJob {
    const uint32_t* nodes;
    const int16_t* codes;  // by test; the last one, of leaves, is never crossed
    const int32_t* roots;
    size_t n_trees;
    int32_t none;             // the test of the path's own ends
    SweepParts parts, extra;  // with room for as many parts as there are leaves, and a vector more
    SweepParts leaves;        // the result: places without their sign; the tests (not keys) that open and close them
    size_t n_leaves;
    size_t n_unclear;  // ambiguous leaves, whose places are in `extra`
};

using SweepWalk = void (*)(SweepJob&);

}  // namespace gigrad
