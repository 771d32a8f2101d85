// What the sweep and the rest of the kernel share: plain data, nothing that a compiler would emit twice.
//
// A sweep takes one pair through all trees side by side, where the vector walks of lanes.hpp take many pairs through one
// node. It needs no company: a single reference, a pair of its own, or a link that wants each pair's jumps by themselves.
//
// When a pair crosses each test (a distinct split) is written down once, as a *key*: its time in the upper bits, the side
// that comes first in the next one, the test's number in the lower ones. The least and the largest of two keys then tell
// when and by which test at once, and every node asks a table instead of the two rows. As in the vector walks, times
// decide only what is beyond doubt; a leaf in doubt goes to the exact walk.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gigrad {

// A node: its test in the lower half, how far on its left child lies (whose neighbour is the right one), and in the two
// highest bits whether the right and the left child are leaves. A leaf is a node of no way, both of whose children are
// leaves: itself.
constexpr int SWEEP_OFFSET_SHIFT = 16;
constexpr uint32_t SWEEP_TEST = 0xffff, SWEEP_MAX_TESTS = SWEEP_TEST - 1, SWEEP_MAX_OFFSET = (1u << 14) - 1;
constexpr uint32_t SWEEP_LEFT_LEAF = 1u << 31, SWEEP_RIGHT_LEAF = 1u << 30;
// A path's own ends open and close one leaf of every tree. A sum of all these in one place would wait for itself at every
// step, so they have several numbers in place of one: first those of starts, then those of ends.
constexpr int32_t SWEEP_STARTS = 8, SWEEP_NONES = 2 * SWEEP_STARTS;
constexpr int32_t SWEEP_LEAF = INT32_MIN;  // the sign of a place says that it is a leaf's

// Parts of the pair's path: the place of the node that each is at, and the keys between which it is there.
struct SweepParts {
    int32_t *place, *lo, *hi;
};

struct SweepJob {
    const uint32_t* nodes;
    const int32_t* keys;      // by test; the last one, of leaves, is never crossed
    const int32_t* roots;
    size_t n_trees;
    int id_bits;              // of a key
    int32_t doubt;            // keys closer than this are too close to tell
    int32_t first, last;      // keys of the path's own ends
    SweepParts parts, extra;  // with room for as many parts as there are leaves, and a vector more
    SweepParts leaves;        // what is found: places without their sign; the tests (not keys) that open and close them
    size_t n_leaves;
    size_t n_unclear;         // leaves in doubt, whose places are left in `extra`
};

using SweepWalk = void (*)(SweepJob&);

}  // namespace gigrad
