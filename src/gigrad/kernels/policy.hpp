// Which walk runs when: every such decision, and the counts that it is made from. Measured times, threads and other
// rows are not used, so that the same call takes the same walk, and gives the same bits, on every run. All walks give
// the same credits to 1e-12; what the processor can run at all is in dispatch.hpp, and which corners are enumerated in
// link/corner_policy.hpp.
#pragma once

#include <cstddef>

#include "limits.hpp"

namespace gigrad {

enum class Route {
    node_by_node,  // walk/: in float64, on any processor
    lanes,         // lanes/: one row and many starts through a tree at once
    sweep          // sweep/: one pair through all trees at once
};

inline bool is_tangled(double ways, size_t nodes) { return ways > TANGLED_WAYS * static_cast<double>(nodes); }

inline bool sweep_pays(size_t tests, size_t trees) { return tests <= MOST_TESTS * trees; }

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
