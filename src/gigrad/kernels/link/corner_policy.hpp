// The decision at corners of many variables: whether all coalitions are enumerated. It depends only on counts and the
// target, so that results do not depend on the machine, its load, other rows or threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "link/coalitions.hpp"
#include "limits.hpp"

namespace gigrad {

inline size_t strong_players(size_t n_margins) { return n_margins == 1 ? STRONG_OF_ONE_MARGIN : STRONG_PLAYERS; }

struct CornerPolicy {
    size_t references;  // a row's credit is a mean over this many paths
    double target;      // for sampled corners: part of the row's largest credit

    // Whether to enumerate all coalitions of a corner of `players`, each of which costs `numbers`; the leaves of the
    // trees have `coefficients` in total.
    bool enumerates(size_t players, double coefficients, size_t numbers) const {
        if (players > MAX_ENUMERATED) return false;
        if (players <= ALWAYS_ENUMERATED || target <= 0.0) return true;
        const double work = std::ldexp(static_cast<double>(numbers), static_cast<int>(players)) + coefficients;
        if (work <= LEAST_SAMPLE) return true;
        // the samples of a target grow with its inverse square
        const double looser = target / DEFAULT_TARGET * static_cast<double>(references);
        return work * looser * looser <= ROW_NUMBERS;
    }
};

}  // namespace gigrad
