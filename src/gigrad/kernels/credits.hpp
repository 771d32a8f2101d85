// Predictions, cells and credits of a sum of trees, over plain row-major arrays.
#pragma once

#include "parallel.hpp"
#include "walk.hpp"

namespace gigrad {

// A row-major matrix that somebody else owns.
struct Rows {
    const double* data;
    size_t n_rows, n_columns;
    const double* row(size_t i) const { return data + i * n_columns; }
};

// Pairs walked together: enough to fill the lists of a tree's nodes, few enough for their columns to stay in cache.
constexpr size_t BLOCK = 1024;

inline void check_columns(const Forest& forest, const Rows& rows, const char* name) {
    if (rows.n_columns != forest.n_columns())
        refuse(std::string(name) + " must have the trees' " + std::to_string(forest.n_columns()) + " columns; there are " +
               std::to_string(rows.n_columns) + ".");
}

inline void check_pairs(const Forest& forest, const Rows& starts, const Rows& ends) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    if (starts.n_rows != ends.n_rows)
        refuse("starts and ends must have the same number of rows; they have " + std::to_string(starts.n_rows) + " and " +
               std::to_string(ends.n_rows) + ".");
}

inline void check_weights(const Rows& starts, const double* weights) {
    if (starts.n_rows == 0) refuse("there must be at least one start.");
    for (size_t m = 0; m < starts.n_rows; ++m)
        if (!std::isfinite(weights[m])) refuse("weights must be finite; weight " + std::to_string(m) + " is not.");
}

// Rows begin..begin+size by column, `step` apart.
inline void transpose(const Rows& rows, size_t begin, size_t size, size_t step, std::vector<double>& out) {
    out.resize(std::max(out.size(), rows.n_columns * step));
    for (size_t i = 0; i < size; ++i)
        for (size_t j = 0; j < rows.n_columns; ++j) out[j * step + i] = rows.row(begin + i)[j];
}

template <class GoesLeft>
void add_leaves(const Forest& forest, GoesLeft goes, double* out) {
    std::copy(forest.base.begin(), forest.base.end(), out);
    for (size_t t = 0; t < forest.n_trees(); ++t) {
        const Node* node = &forest.nodes[forest.roots[t]];
        while (!node->is_leaf()) node = &forest.nodes[goes(*node) ? node->left : node->right];
        for (size_t k = 0; k < forest.width(t); ++k) out[forest.first(t) + k] += forest.values[node->value + k];
    }
}

inline void predict(const Forest& forest, const Rows& x, double* out) {
    check_columns(forest, x, "x");
    for (size_t i = 0; i < x.n_rows; ++i) {
        const double* row = x.row(i);
        add_leaves(forest, [&](const Node& n) { return goes_left(forest, n, row[n.feature]); }, out + i * forest.n_outputs());
    }
}

// Query q: the outputs at the corner at time[q] of pair pair[q], with the variables of past[q] past it.
inline void cells(const Forest& forest, const Rows& starts, const Rows& ends, const int64_t* pair, const double* time,
                  const uint8_t* past, size_t n_queries, size_t n_threads, double* out) {
    check_pairs(forest, starts, ends);
    for (size_t q = 0; q < n_queries; ++q) {
        if (pair[q] < 0 || static_cast<size_t>(pair[q]) >= starts.n_rows)
            refuse("query " + std::to_string(q) + " asks for pair " + std::to_string(pair[q]) + "; there are " +
                   std::to_string(starts.n_rows) + ".");
        if (std::isnan(time[q])) refuse("query " + std::to_string(q) + " has a time that is not a number.");
    }
    constexpr size_t unit_size = 64;
    parallel((n_queries + unit_size - 1) / unit_size, n_threads, [&](auto next) {
        for (size_t unit; next(unit);)
            for (size_t q = unit * unit_size; q < std::min(n_queries, (unit + 1) * unit_size); ++q) {
                const double *s = starts.row(pair[q]), *e = ends.row(pair[q]);
                const uint8_t* is_past = past + q * forest.n_columns();
                const auto goes = [&](const Node& n) {
                    const bool s_left = goes_left(forest, n, s[n.feature]), e_left = goes_left(forest, n, e[n.feature]);
                    if (s_left == e_left) return s_left;
                    const double t = crossing_time(n, s[n.feature], e[n.feature]);
                    const bool passed = t < time[q] - TIE || (t <= time[q] + TIE && is_past[n.feature]);
                    return passed ? e_left : s_left;
                };
                add_leaves(forest, goes, out + q * forest.n_outputs());
            }
    });
}

// Adds what the leaves give to a table of credit by (variable, output).
struct CreditSink {
    const Forest& forest;
    size_t width, first;  // of the tree that is walked
    double* credit;
    size_t pair_step;  // 0 when all pairs add to one table
    const double* weights;

    void crossing(int32_t pair, int32_t node, double, double sign, const Node& leaf) const {
        add(pair, forest.nodes[node].feature, sign, leaf);
    }

    void corner(int32_t pair, const LeafCorner& corner, const Node& leaf) const {
        for (const int32_t j : corner.past) add(pair, j, corner.past_share, leaf);
        for (const int32_t j : corner.before) add(pair, j, corner.before_share, leaf);
    }

    void add(int32_t pair, int32_t variable, double share, const Node& leaf) const {
        const double factor = weights ? share * weights[pair] : share;
        const size_t outputs = forest.n_outputs();
        double* to = credit + static_cast<size_t>(pair) * pair_step + static_cast<size_t>(variable) * outputs + first;
        for (size_t k = 0; k < width; ++k) to[k] += factor * forest.values[leaf.value + k];
    }
};

inline void walk_trees(const Forest& forest, Walk& walk, const Block& block, double* credit, size_t pair_step,
                       const double* weights) {
    for (size_t t = 0; t < forest.n_trees(); ++t)
        walk.tree(forest.roots[t], block, CreditSink{forest, forest.width(t), forest.first(t), credit, pair_step, weights});
}

// out: (ends, columns, outputs), the sum over starts of weight * credit.
inline void credits(const Forest& forest, const Rows& starts, const double* weights, const Rows& ends, size_t n_threads,
                    double* out) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    const size_t table = forest.n_columns() * forest.n_outputs();
    std::fill(out, out + ends.n_rows * table, 0.0);
    std::vector<double> columns;
    transpose(starts, 0, starts.n_rows, starts.n_rows, columns);
    parallel(ends.n_rows, n_threads, [&](auto next) {
        Walk walk(forest);
        for (size_t row; next(row);)
            for (size_t begin = 0; begin < starts.n_rows; begin += BLOCK) {
                const size_t size = std::min(BLOCK, starts.n_rows - begin);
                const Block block{columns.data() + begin, starts.n_rows, ends.row(row), 1, 0, size};
                walk_trees(forest, walk, block, out + row * table, 0, weights + begin);
            }
    });
}

// Calls `work(begin, block)` for blocks of pairs, each thread with a worker of its own made by `make`.
template <class Make>
void for_blocks(const Forest& forest, const Rows& starts, const Rows& ends, size_t n_threads, size_t block_size, Make make) {
    check_pairs(forest, starts, ends);
    parallel((starts.n_rows + block_size - 1) / block_size, n_threads, [&](auto next) {
        auto work = make();
        std::vector<double> s, e;
        for (size_t unit; next(unit);) {
            const size_t begin = unit * block_size, size = std::min(block_size, starts.n_rows - begin);
            transpose(starts, begin, size, size, s);
            transpose(ends, begin, size, size, e);
            work(unit, begin, Block{s.data(), size, e.data(), size, 1, size});
        }
    });
}

// out: (pairs, columns, outputs).
inline void credits_pairs(const Forest& forest, const Rows& starts, const Rows& ends, size_t n_threads, double* out) {
    const size_t table = forest.n_columns() * forest.n_outputs();
    std::fill(out, out + ends.n_rows * table, 0.0);
    for_blocks(forest, starts, ends, n_threads, BLOCK, [&] {
        return [&, walk = Walk(forest)](size_t, size_t begin, const Block& block) mutable {
            walk_trees(forest, walk, block, out + begin * table, table, nullptr);
        };
    });
}

}  // namespace gigrad
