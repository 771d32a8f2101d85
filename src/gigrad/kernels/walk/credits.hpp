// Cells and credits of a sum of trees, over plain row-major arrays.
#pragma once

#include "dispatch.hpp"
#include "lanes/lanes_blocks.hpp"
#include "core/parallel.hpp"
#include "core/predict.hpp"
#include "limits.hpp"

namespace gigrad {

inline void check_pairs(const Forest& forest, const Rows& starts, const Rows& ends) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    if (starts.n_rows != ends.n_rows)
        refuse("starts and ends must have the same number of rows; they have " + std::to_string(starts.n_rows) +
               " and " + std::to_string(ends.n_rows) + ".");
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

inline void check_queries(const Rows& starts, const int64_t* pair, const double* time, size_t n) {
    for (size_t q = 0; q < n; ++q) {
        if (pair[q] < 0 || static_cast<size_t>(pair[q]) >= starts.n_rows)
            refuse("query " + std::to_string(q) + " asks for pair " + std::to_string(pair[q]) + "; there are " +
                   std::to_string(starts.n_rows) + ".");
        if (std::isnan(time[q])) refuse("query " + std::to_string(q) + " has a time that is not a number.");
    }
}

// Query q: the outputs at the corner at time[q] of pair pair[q], with the variables of past[q] past it.
inline void cells(const Forest& forest, const Rows& starts, const Rows& ends, const int64_t* pair, const double* time,
                  const uint8_t* past, size_t n_queries, size_t n_threads, double* out) {
    check_pairs(forest, starts, ends);
    check_queries(starts, pair, time, n_queries);
    parallel((n_queries + QUERIES - 1) / QUERIES, n_threads, [&](auto next) {
        for (size_t unit; next(unit);)
            for (size_t q = unit * QUERIES; q < std::min(n_queries, (unit + 1) * QUERIES); ++q) {
                const double *s = starts.row(pair[q]), *e = ends.row(pair[q]);
                const uint8_t* is_past = past + q * forest.n_variables();
                const auto goes = [&](const Node& n) {
                    const bool s_left = goes_left(forest, n, s[n.feature]), e_left = goes_left(forest, n, e[n.feature]);
                    if (s_left == e_left) return s_left;
                    const double t = crossing_time(forest, n, s[n.feature], e[n.feature]);
                    const bool passed = t < time[q] || (t == time[q] && is_past[n.variable]);
                    return passed ? e_left : s_left;
                };
                add_leaves(forest, goes, out + q * forest.n_outputs());
            }
    });
}

inline void walk_trees(const Forest& forest, Walk& walk, const Block& block, size_t n_starts, bool shared_end,
                       double* credit, size_t step, const double* weights) {
    for (size_t t = 0; t < forest.n_trees(); ++t) {
        check_interrupt();
        walk.tree(forest.roots[t], block, n_starts, shared_end,
                  CreditSink{forest, forest.n_outputs(), forest.width(t), forest.first(t), credit, step, weights});
    }
}

inline void portable_credits(const Forest& forest, const Rows& starts, const double* weights, const Rows& ends,
                             size_t n_threads, double* out) {
    const size_t table = forest.n_variables() * forest.n_outputs();
    std::vector<double> columns;
    transpose(starts, 0, starts.n_rows, starts.n_rows, columns);
    parallel(ends.n_rows, n_threads, [&](auto next) {
        Walk walk(forest);
        for (size_t row; next(row);)
            for (size_t begin = 0; begin < starts.n_rows; begin += BLOCK) {
                const size_t size = std::min(BLOCK, starts.n_rows - begin);
                const Block block{columns.data() + begin, starts.n_rows, ends.row(row), 1, 0};
                walk_trees(forest, walk, block, size, true, out + row * table, 0, weights + begin);
            }
    });
}

// Sorts starts so that those on the same sides of the most important splits are adjacent: their lanes then visit the
// same nodes.
inline std::vector<size_t> alike(const Forest& forest, const Rows& starts, size_t lanes) {
    const std::vector<size_t>& uses = forest.uses;
    std::vector<size_t> order(starts.n_rows), features(forest.n_columns());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t j = 0; j < features.size(); ++j) features[j] = j;
    std::stable_sort(features.begin(), features.end(), [&](size_t a, size_t b) { return uses[a] > uses[b]; });
    struct Part {
        size_t begin, end, level;
    };
    std::vector<Part> parts{{0, order.size(), 0}};
    while (!parts.empty()) {
        const auto [begin, end, level] = parts.back();
        parts.pop_back();
        const size_t middle = (begin + end) / 2 / lanes * lanes;
        if (level == features.size() || middle <= begin || uses[features[level]] == 0) continue;
        const auto key = [&, j = features[level]](size_t i) {
            const double x = starts.row(i)[j];
            return std::isnan(x) ? -std::numeric_limits<double>::infinity() : x;
        };
        const auto at = [&](size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
        std::stable_sort(at(begin), at(end), [&](size_t a, size_t b) { return key(a) < key(b); });
        parts.push_back({begin, middle, level + 1});
        parts.push_back({middle, end, level + 1});
    }
    return order;
}

// Data for the workers of a population: starts by column, similar ones adjacent, with their weights and original
// indices.
struct Crowd {
    std::vector<double> columns, weights;
    std::vector<size_t> order;
    size_t size;

    Crowd(const Forest& forest, const Rows& starts, const double* weight, size_t lanes)
        : columns(starts.n_rows * starts.n_columns),
          weights(starts.n_rows),
          order(alike(forest, starts, lanes)),
          size(starts.n_rows) {
        for (size_t i = 0; i < size; ++i) {
            weights[i] = weight[order[i]];
            for (size_t j = 0; j < starts.n_columns; ++j) columns[j * size + i] = starts.row(order[i])[j];
        }
    }
};

// Fills out (ends, table): each end's sum over all starts. `make()` creates a thread's worker, which is called as
// worker(begin, n_starts, first_row, n_rows, sum) and adds those starts' part to sum (n_rows, table).
template <class Make>
void for_crowd(const Crowd& crowd, const LaneKernel& kernel, size_t start_block, size_t max_vectors, size_t n_ends,
               size_t table, size_t n_threads, double* out, Make make) {
    const size_t n = crowd.size, lanes = static_cast<size_t>(kernel.lanes),
                 vectors = (std::min(n, start_block) + lanes - 1) / lanes;
    const size_t fair =
        (n_ends + 2 * n_threads - 1) / (2 * n_threads);  // a number of rows that gives every thread work
    const size_t n_rows = std::max<size_t>(1, std::min(max_vectors / vectors, fair));
    const size_t least_units = (n_ends + n_rows - 1) / n_rows, chunks = (n + START_CHUNK - 1) / START_CHUNK;
    // Equal numbers for all threads, of similar size, so that no thread is left waiting for the last one.
    const size_t row_units = std::min(n_ends, (least_units + n_threads - 1) / n_threads * n_threads);
    const bool apart = chunks > 1 && row_units < 2 * n_threads;  // too few rows: threads share the starts, too
    std::fill(out, out + n_ends * table, 0.0);
    std::vector<double> parts(apart ? (chunks - 1) * n_ends * table : 0, 0.0);
    parallel(apart ? row_units * chunks : row_units, n_threads, [&](auto next) {
        auto worker = make();
        std::vector<double> sum;
        for (size_t unit; next(unit);) {
            const size_t place = unit % row_units, first = place * n_ends / row_units,
                         rows = (place + 1) * n_ends / row_units - first;
            for (size_t chunk = apart ? unit / row_units : 0; chunk < chunks; ++chunk) {
                sum.assign(rows * table, 0.0);
                const size_t stop = std::min(n, (chunk + 1) * START_CHUNK);
                for (size_t begin = chunk * START_CHUNK; begin < stop; begin += start_block) {
                    check_interrupt();
                    worker(begin, std::min(start_block, stop - begin), first, rows, sum.data());
                }
                double* to = (apart && chunk > 0 ? parts.data() + (chunk - 1) * n_ends * table : out) + first * table;
                for (size_t i = 0; i < sum.size(); ++i) to[i] += sum[i];
                if (apart) break;
            }
        }
    });
    for (size_t chunk = 0; chunk < parts.size(); chunk += n_ends * table)
        for (size_t i = 0; i < n_ends * table; ++i) out[i] += parts[chunk + i];
}

inline void lane_credits(const Forest& forest, const LaneKernel& kernel, const Rows& starts, const double* weights,
                         const Rows& ends, size_t n_threads, double* out) {
    const size_t p = forest.n_columns(), table = forest.n_variables() * forest.n_outputs();
    const Crowd crowd(forest, starts, weights, static_cast<size_t>(kernel.lanes));
    for_crowd(crowd, kernel, START_BLOCK, MAX_VECTORS, ends.n_rows, table, n_threads, out, [&] {
        return [&, lanes = std::make_unique<LaneBlock>(forest, kernel)](size_t begin, size_t n, size_t row,
                                                                        size_t n_rows, double* sum) {
            lanes->population(Block{crowd.columns.data() + begin, crowd.size, ends.row(row), 1, p}, n, n_rows,
                              crowd.weights.data() + begin, sum, table);
        };
    });
}

inline void swept_credits(const Forest& forest, const LaneKernel& kernel, const Rows& starts, const double* weights,
                          const Rows& ends, size_t n_threads, double* out) {
    const SweepTrees& trees = *forest.sweep_trees();
    const size_t p = forest.n_columns(), table = forest.n_variables() * forest.n_outputs();
    SweepRows from;
    from.set(trees, starts.n_rows, p, [&](size_t j, size_t i) { return starts.row(i)[j]; });
    parallel((ends.n_rows + SWEEP_BLOCK - 1) / SWEEP_BLOCK, n_threads, [&](auto next) {
        Sweeper sweeper(forest, trees, kernel);
        SweepRows to;
        for (size_t unit; next(unit);) {
            const size_t begin = unit * SWEEP_BLOCK, n = std::min(SWEEP_BLOCK, ends.n_rows - begin);
            to.set(trees, n, p, [&](size_t j, size_t i) { return ends.row(begin + i)[j]; });
            for (size_t i = 0; i < n; ++i)
                for (size_t m = 0; m < starts.n_rows; ++m) {
                    check_interrupt();
                    sweeper.sweep(from, m, to, i);
                    sweeper.add_credit(weights[m], out + (begin + i) * table);
                }
        }
    });
}

// out: (ends, columns, outputs), the sum over starts of weight * credit.
inline void credits(const Forest& forest, const LaneKernel* kernel, const Rows& starts, const double* weights,
                    const Rows& ends, size_t n_threads, double* out) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    std::fill(out, out + ends.n_rows * forest.n_variables() * forest.n_outputs(), 0.0);
    if (ends.n_rows == 0) return;
    switch (route_of_population(forest, kernel, starts.n_rows)) {
        case Route::sweep:
            return swept_credits(forest, *kernel, starts, weights, ends, n_threads, out);
        case Route::lanes:
            return lane_credits(forest, *kernel, starts, weights, ends, n_threads, out);
        case Route::node_by_node:
            return portable_credits(forest, starts, weights, ends, n_threads, out);
    }
}

// Calls `work(unit, begin, size, block)` for blocks of pairs, each thread with a worker of its own made by `make`.
template <class Make>
void for_blocks(const Forest& forest, const Rows& starts, const Rows& ends, size_t n_threads, size_t block_size,
                Make make) {
    check_pairs(forest, starts, ends);
    parallel((starts.n_rows + block_size - 1) / block_size, n_threads, [&](auto next) {
        auto work = make();
        std::vector<double> s, e;
        for (size_t unit; next(unit);) {
            const size_t begin = unit * block_size, size = std::min(block_size, starts.n_rows - begin);
            transpose(starts, begin, size, size, s);
            transpose(ends, begin, size, size, e);
            work(unit, begin, size, Block{s.data(), size, e.data(), size, 1});
        }
    });
}

// Pairs walked together: many share the cost of a node, but every thread should have some.
inline size_t pair_block(const LaneKernel& kernel, size_t max_vectors, size_t n, size_t n_threads) {
    const size_t lanes = static_cast<size_t>(kernel.lanes), fair = (n + 2 * n_threads - 1) / (2 * n_threads);
    return lanes * std::max<size_t>(1, std::min(max_vectors, (fair + lanes - 1) / lanes));
}

inline void swept_pairs(const Forest& forest, const LaneKernel& kernel, const Rows& starts, const Rows& ends,
                        size_t n_threads, double* out) {
    const SweepTrees& trees = *forest.sweep_trees();
    const size_t p = forest.n_columns(), table = forest.n_variables() * forest.n_outputs();
    parallel((starts.n_rows + SWEEP_BLOCK - 1) / SWEEP_BLOCK, n_threads, [&](auto next) {
        Sweeper sweeper(forest, trees, kernel);
        SweepRows from, to;
        for (size_t unit; next(unit);) {
            const size_t begin = unit * SWEEP_BLOCK, n = std::min(SWEEP_BLOCK, starts.n_rows - begin);
            from.set(trees, n, p, [&](size_t j, size_t i) { return starts.row(begin + i)[j]; });
            to.set(trees, n, p, [&](size_t j, size_t i) { return ends.row(begin + i)[j]; });
            for (size_t i = 0; i < n; ++i) {
                check_interrupt();
                sweeper.sweep(from, i, to, i);
                sweeper.add_credit(1.0, out + (begin + i) * table);
            }
        }
    });
}

// out: (pairs, columns, outputs).
inline void credits_pairs(const Forest& forest, const LaneKernel* kernel, const Rows& starts, const Rows& ends,
                          size_t n_threads, double* out) {
    const size_t table = forest.n_variables() * forest.n_outputs();
    check_pairs(forest, starts, ends);
    std::fill(out, out + ends.n_rows * table, 0.0);
    const Route route = route_of_pairs(forest, kernel);
    if (route == Route::sweep)
        swept_pairs(forest, *kernel, starts, ends, n_threads, out);
    else if (route == Route::lanes)
        for_blocks(forest, starts, ends, n_threads, pair_block(*kernel, MAX_VECTORS, ends.n_rows, n_threads), [&] {
            return [&, lanes = std::make_unique<LaneBlock>(forest, *kernel)](size_t, size_t begin, size_t size,
                                                                             const Block& block) {
                lanes->pairs(block, size, out + begin * table);
            };
        });
    else
        for_blocks(forest, starts, ends, n_threads, BLOCK, [&] {
            return [&, walk = Walk(forest)](size_t, size_t begin, size_t size, const Block& block) mutable {
                walk_trees(forest, walk, block, size, false, out + begin * table, table, nullptr);
            };
        });
}

}  // namespace gigrad
