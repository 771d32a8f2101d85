// Predictions of a sum of trees.
#pragma once

#include "sweep/sweep_rows.hpp"
#include "limits.hpp"

namespace gigrad {

// A row-major matrix, not owned.
struct Rows {
    const double* data;
    size_t n_rows, n_columns;
    const double* row(size_t i) const { return data + i * n_columns; }
};

inline void check_columns(const Forest& forest, const Rows& rows, const char* name) {
    if (rows.n_columns != forest.n_columns())
        refuse(std::string(name) + " must have the trees' " + std::to_string(forest.n_columns()) +
               " columns; there are " + std::to_string(rows.n_columns) + ".");
}

// The leaves of rows begin..begin+n. Each row is a chain of dependent loads; those of several rows overlap.
inline void find_leaves(const Forest& forest, int32_t root, const Rows& x, size_t begin, size_t n, const Node** at) {
    for (size_t r = 0; r < n; ++r) at[r] = &forest.nodes[root];
    for (bool going = true; going;) {
        going = false;
        for (size_t r = 0; r < n; ++r) {
            const Node& node = *at[r];
            if (node.is_leaf()) continue;
            const double v = x.row(begin + r)[node.feature];
            at[r] = forest.nodes.data() + (goes_left(forest, node, v) ? node.left : node.right);
            going = true;
        }
    }
}

inline void predict_by_rows(const Forest& forest, const Rows& x, double* out) {
    const size_t outputs = forest.n_outputs();
    for (size_t begin = 0; begin < x.n_rows; begin += PREDICTED_ROWS) {
        const size_t stop = std::min(x.n_rows, begin + PREDICTED_ROWS);
        for (size_t i = begin; i < stop; ++i) std::copy(forest.base.begin(), forest.base.end(), out + i * outputs);
        for (size_t t = 0; t < forest.n_trees(); ++t)
            for (size_t i = begin; i < stop; i += ROWS_TOGETHER) {
                const size_t n = std::min(ROWS_TOGETHER, stop - i);
                const Node* at[ROWS_TOGETHER];
                find_leaves(forest, forest.roots[t], x, i, n, at);
                for (size_t r = 0; r < n; ++r)
                    for (size_t k = 0; k < forest.width(t); ++k)
                        out[(i + r) * outputs + forest.first(t) + k] += forest.values[at[r]->value + k];
            }
    }
}

// Which child each test sends a row to (0 left, 1 right), by test; the last one, of leaves, is 0.
inline void set_sides(const Forest& forest, const SweepTrees& trees, const double* x, const uint16_t* rank,
                      const uint16_t* level, uint8_t* right) {
    for (size_t j = 0; j < forest.n_columns(); ++j) {
        const int32_t begin = trees.column_begin[j], categories = trees.categories_begin[j],
                      stop = trees.column_begin[j + 1];
        if (std::isnan(x[j])) {
            for (int32_t t = begin; t < categories; ++t) right[t] = !trees.missing_left[t];
        } else {
            const int32_t middle = begin + rank[j];
            std::fill(right + begin, right + middle, uint8_t{1});
            std::fill(right + middle, right + categories, uint8_t{0});
        }
        const SweepTrees::Levels& levels = trees.levels[j];
        if (levels.left.empty()) {
            for (int32_t t = categories; t < stop; ++t) right[t] = !goes_left(forest, trees.tests[t], x[j]);
            continue;
        }
        const uint8_t* const left = levels.sides(level[j]);
        for (int32_t t = categories; t < stop; ++t) right[t] = !left[t - categories];
    }
    right[trees.none()] = 0;
}

// One row goes down several trees in parallel. Every node looks up its side in a table that is filled once for the row.
inline void predict_by_trees(const Forest& forest, const SweepTrees& trees, const Rows& x, double* out) {
    const size_t outputs = forest.n_outputs(), n_trees = forest.n_trees();
    const uint32_t* const nodes = trees.nodes.data();
    std::vector<uint8_t> right(trees.tests.size() + 1);
    SweepRows rows;
    for (size_t i = 0; i < x.n_rows; ++i) {
        double* const to = out + i * outputs;
        const size_t place = i % RANKED_TOGETHER;
        if (place == 0)
            rows.set(trees, std::min(RANKED_TOGETHER, x.n_rows - i), x.n_columns,
                     [&](size_t j, size_t r) { return x.row(i + r)[j]; });
        set_sides(forest, trees, rows.row(place), rows.rank(place), rows.level(place), right.data());
        const uint8_t* const sides = right.data();
        std::copy(forest.base.begin(), forest.base.end(), to);
        for (size_t begin = 0; begin < n_trees; begin += TREES_TOGETHER) {
            const size_t n = std::min(TREES_TOGETHER, n_trees - begin);
            const uint32_t* at[TREES_TOGETHER];
            for (size_t t = 0; t < TREES_TOGETHER; ++t)
                at[t] = nodes + (t < n ? trees.roots[begin + t] : 0);  // place 0 is a leaf
            for (uint32_t ways = 1; ways;) {
                ways = 0;
                for (size_t t = 0; t < TREES_TOGETHER; ++t) {
                    const uint32_t node = *at[t], way = node >> SWEEP_OFFSET_SHIFT & SWEEP_MAX_OFFSET;
                    at[t] += way + sides[node & SWEEP_TEST];
                    ways |= way;
                }
            }
            for (size_t t = 0; t < n; ++t) {
                const VisitValue gives = trees.gives[static_cast<size_t>(at[t] - nodes)];
                if (outputs == 1)
                    *to += gives.number;
                else
                    for (size_t k = 0; k < forest.width(begin + t); ++k)
                        to[forest.first(begin + t) + k] += forest.values[static_cast<size_t>(gives.place.value) + k];
            }
        }
    }
}

inline void predict(const Forest& forest, const Rows& x, double* out) {
    check_columns(forest, x, "x");
    if (forest.sweep_trees())
        predict_by_trees(forest, *forest.sweep_trees(), x, out);
    else
        predict_by_rows(forest, x, out);
}

}  // namespace gigrad
