// Rows, and where their values lie among the thresholds of the trees.
#pragma once

#include "sweep/sweep_trees.hpp"

namespace gigrad {

// Row by row, and each value's place among its column's thresholds.
struct SweepRows {
    std::vector<double> values;
    std::vector<uint16_t> ranks;   // thresholds below the value
    std::vector<uint16_t> levels;  // see SweepTrees::Levels
    size_t n_columns = 0;

    template <class Value>
    void set(const SweepTrees& trees, size_t n_rows, size_t columns, Value value) {
        n_columns = columns;
        values.resize(n_rows * columns);
        ranks.resize(n_rows * columns);
        levels.resize(n_rows * columns);
        for (size_t begin = 0; begin < n_rows; begin += RANKED_TOGETHER) {
            const size_t n = std::min(RANKED_TOGETHER, n_rows - begin);
            for (size_t j = 0; j < columns; ++j) {
                double x[RANKED_TOGETHER];
                uint16_t rank[RANKED_TOGETHER];
                for (size_t i = 0; i < RANKED_TOGETHER; ++i) x[i] = value(j, begin + (i < n ? i : 0));
                trees.thresholds_below<RANKED_TOGETHER>(j, x, rank);
                for (size_t i = 0; i < n; ++i) {
                    values[(begin + i) * columns + j] = x[i];
                    ranks[(begin + i) * columns + j] = rank[i];
                }
                if (trees.levels[j].n_tests)
                    for (size_t i = 0; i < n; ++i) levels[(begin + i) * columns + j] = trees.levels[j].of(x[i]);
            }
        }
    }

    const double* row(size_t i) const { return values.data() + i * n_columns; }
    const uint16_t* rank(size_t i) const { return ranks.data() + i * n_columns; }
    const uint16_t* level(size_t i) const { return levels.data() + i * n_columns; }
};

}  // namespace gigrad
