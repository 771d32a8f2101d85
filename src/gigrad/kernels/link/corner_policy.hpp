// The decision at corners of many variables: whether all coalitions are enumerated. It depends only on counts and the
// target, so that results do not depend on the machine, its load, other rows or threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "link/coalitions.hpp"

namespace gigrad {

// Corners of at most this many players are always enumerated.
constexpr size_t ALWAYS_ENUMERATED = 12;
// Enumerating this many numbers costs less than the smallest sample: its set-up, with another walk through the trees,
// took 0.35 ms for 300 trees of depth 6 and each group of orders 0.027 ms, and a number takes about 5 ns.
constexpr double LEAST_SAMPLE = 1 << 17;
// Corners of a path that is drawn, each solved alone: 0.4 ms for sixteen players.
constexpr size_t MAX_TRACED = 16;
// Numbers that may be computed for the coalitions of a corner, at about 6 ns each, for a row with a single reference:
// sampling it to within DEFAULT_TARGET would cost more. With the weight 1 / r the number of samples falls with r^2, and
// a pilot sample decides whether sampling costs less (sampling.py).
constexpr double ROW_NUMBERS = 1 << 26;
constexpr double DEFAULT_TARGET = 1e-3;
// The largest number of players of a sampled corner whose coalitions are enumerated for every order of the others: one
// block of a fold. With six the variance was twice as large, with ten the time.
constexpr size_t STRONG_PLAYERS = 8;
// The same for one margin, where WeakCubic leaves little variance: on synthetic census data (XGBoost 300 x 6) the
// standard deviation of a group was 0.43, 0.31, 0.21 and 0.15 thousandths with five to eight, its time 9, 14, 22 and 34
// us.
constexpr size_t STRONG_OF_ONE_MARGIN = 6;

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
