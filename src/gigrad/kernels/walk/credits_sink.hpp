// The sink of the walks if contributions of leaves are only summed.
#pragma once

#include "walk/corner.hpp"
#include "walk/walk.hpp"

namespace gigrad {

// Adds the contributions of leaves to a table of credit by (variable, output).
struct CreditSink {
    const Forest& forest;
    size_t outputs;
    size_t width, first;  // of the tree that is walked
    double* credit;
    size_t step;            // from one end's table to the next
    const double* weights;  // of starts; null for 1

    void crossing(Pair pair, int32_t node, double, double sign, const Node& leaf) const {
        add(pair, forest.nodes[node].variable, sign, leaf);
    }

    void corner(Pair pair, const LeafCorner& corner, const Node& leaf) const {
        for (const int32_t j : corner.past) add(pair, j, corner.past_share, leaf);
        for (const int32_t j : corner.before) add(pair, j, corner.before_share, leaf);
    }

    void add(Pair pair, int32_t variable, double share, const Node& leaf) const {
        const double factor = weights ? share * weights[pair.start] : share;
        const double* value = forest.values.data() + leaf.value;
        double* to = credit + static_cast<size_t>(pair.end) * step + static_cast<size_t>(variable) * outputs + first;
        for (size_t k = 0; k < width; ++k) to[k] += factor * value[k];
    }
};

}  // namespace gigrad
