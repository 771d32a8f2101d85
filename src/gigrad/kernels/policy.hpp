// Which walk runs when: every such decision, and the counts that it is made from. Measured times, threads and other
// rows are not used, so that the same call takes the same walk, and gives the same bits, on every run. All walks give
// the same credits to 1e-12; what the processor can run at all is in dispatch.hpp, and which corners are enumerated in
// link/corner_policy.hpp.
#pragma once

#include <cstddef>

namespace gigrad {

enum class Route {
    node_by_node,  // walk/: in float64, on any processor
    lanes,         // lanes/: one row and many starts through a tree at once
    sweep          // sweep/: one pair through all trees at once
};

// Paths to leaves for each node of the trees. Trees that share no children have about one half. From here on vectors,
// which follow every path, are slower than the walk node by node, which follows only those that some coalition takes.
constexpr double TANGLED_WAYS = 4.0;
inline bool is_tangled(double ways, size_t nodes) { return ways > TANGLED_WAYS * static_cast<double>(nodes); }

// Above this number of nodes the splits are not sorted, which a sweep needs: sorting would take longer than most walks.
constexpr size_t MOST_NODES = 1 << 20;
// Distinct tests of a sweep for each tree. A sweep computes the side of every test, a walk only of those on its path:
// about eleven in a tree of depth 6. Measured with AVX-512 on 100 trees of depth 6 over 20 columns: a pair takes 5.9 us
// with 16 and 5.8 us with 28 tests for each tree (sweep), 12.7 us with 40 (lanes).
constexpr size_t MOST_TESTS = 32;
inline bool sweep_pays(size_t tests, size_t trees) { return tests <= MOST_TESTS * trees; }

// With at most this many starts the vectors of a block are so empty that sweeping each pair is faster: a vector has 8
// or 16 lanes. Measured on the same trees, for a row: 11, 22 and 44 us with 2, 4 and 8 starts (sweep), 71 us with 9, 84
// us with 12 and 81 us with 16 (lanes): the sweep would be the faster one up to about 14.
constexpr size_t FEW_STARTS = 8;

// Below, `kernel` is null where vectors are not used, and the trees' `sweep_trees()`, null where they do not fit a sweep, are
// built only where they may be needed.

// Every start with every end, trees alone.
template <class Forest, class Kernel>
Route route_of_population(const Forest& forest, const Kernel* kernel, size_t starts) {
    if (!kernel) return Route::node_by_node;
    return starts <= FEW_STARTS && forest.sweep_trees() ? Route::sweep : Route::lanes;
}

// Start i with end i: there are no vectors of starts to fill.
template <class Forest, class Kernel>
Route route_of_pairs(const Forest& forest, const Kernel* kernel) {
    if (!kernel) return Route::node_by_node;
    return forest.sweep_trees() ? Route::sweep : Route::lanes;
}

// Every start with every end, under a link, which needs the crossings in order of time. A sweep computes the change at
// each of them from all leaves: with several outputs that costs more than full vectors.
template <class Forest, class Kernel>
Route route_of_linked(const Forest& forest, const Kernel* kernel, size_t starts) {
    if (!kernel) return Route::node_by_node;
    const bool alone = forest.n_outputs() == 1 || starts <= FEW_STARTS;
    return alone && forest.sweep_trees() ? Route::sweep : Route::lanes;
}

}  // namespace gigrad
