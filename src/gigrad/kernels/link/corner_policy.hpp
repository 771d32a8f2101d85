// The one decision at corners of many variables: whether all coalitions are asked. From counts and the target alone, so that
// an answer never depends on the machine, on the load, on other rows or on threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "link/coalitions.hpp"

namespace gigrad {

// Corners of so few players are enumerated whatever they cost.
constexpr size_t ALWAYS_ENUMERATED = 12;
// Enumerating this many numbers costs less than the fewest orders that a sample can do with: two groups in the pilot, and
// two after it. Sixteen players under one link took 0.5 ms for 200 trees of depth 5, the smallest sample 0.85 ms.
constexpr double LEAST_SAMPLE = 1 << 17;
// Corners of a path that is drawn, each solved alone: 0.4 ms for sixteen players.
constexpr size_t MAX_TRACED = 16;
// Numbers that may be computed for the coalitions of a row, at about 4 ns each, before sampling its large corners to
// within DEFAULT_TARGET costs less. Measured on XGBoost, 300 trees of depth 6, 18 to 28 players: 1,000 to 8,000 groups of
// orders a row of 0.25 ms, which is 2^26 to 2^29 such numbers.
constexpr double ROW_NUMBERS = 1 << 26;
constexpr double DEFAULT_TARGET = 1e-3;
// Players of a sampled corner whose coalitions are asked for every order of the others: one block of a fold. At six the
// variance was twice as large, at ten the time.
constexpr size_t STRONG_PLAYERS = 8;

struct CornerPolicy {
    size_t references;  // a row's answer is a mean over so many paths
    double target;      // for sampled corners: part of the row's largest credit

    // Whether to ask all coalitions of a corner of `players`, each of which costs `numbers`; the leaves of the trees add
    // `coefficients` in all.
    bool enumerates(size_t players, double coefficients, size_t numbers) const {
        if (players > MAX_ENUMERATED) return false;
        if (players <= ALWAYS_ENUMERATED || target <= 0.0) return true;
        const double work = std::ldexp(static_cast<double>(numbers), static_cast<int>(players)) + coefficients;
        if (work <= LEAST_SAMPLE) return true;
        const double looser = target / DEFAULT_TARGET;  // the samples of a target grow with its inverse square
        return work * static_cast<double>(references) * looser * looser <= ROW_NUMBERS;
    }
};

}  // namespace gigrad
