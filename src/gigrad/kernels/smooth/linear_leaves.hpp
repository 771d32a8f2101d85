// The credit of trees with linear leaves (leaf_lines.hpp), for pairs and populations.
#pragma once

#include "smooth/leaf_lines.hpp"
#include "walk/credits.hpp"

namespace gigrad {

// out (ends, variables, outputs): the sum over starts of weight * credit, without the leaves at the ends of paths.
// `from` (starts, columns) and `to` (ends, columns) are what leaves multiply.
inline void linear_population(const Forest& forest, const LaneKernel* kernel, const LeafLines& leaves,
                              const Rows& starts, const double* weights, const Rows& ends, const double* from,
                              const double* to, size_t columns, const int64_t* player, size_t outputs, size_t n_threads,
                              double* out) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    const size_t p = forest.n_columns(), n = starts.n_rows, table = forest.n_variables() * outputs;
    const Crowd crowd(forest, starts, weights, kernel ? static_cast<size_t>(kernel->lanes) : 1);
    std::vector<double> numbers(n * columns);
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < columns; ++j) numbers[j * n + i] = from[crowd.order[i] * columns + j];
    std::fill(out, out + ends.n_rows * table, 0.0);
    const auto rows = [&](size_t begin, size_t row) {
        return LineRows{&leaves, numbers.data() + begin, n, to + row * columns, columns, player, outputs};
    };
    if (kernel) {
        for_crowd(crowd, *kernel, LINE_STARTS, MAX_VECTORS, ends.n_rows, table, n_threads, out, [&] {
            return [&, lanes = std::make_unique<LaneBlock>(forest, *kernel)](size_t begin, size_t size, size_t row,
                                                                             size_t n_rows, double* sum) {
                lanes->population_lines(Block{crowd.columns.data() + begin, n, ends.row(row), 1, p}, rows(begin, row),
                                        size, n_rows, crowd.weights.data() + begin, sum, table);
            };
        });
        return;
    }
    parallel(ends.n_rows, n_threads, [&](auto next) {
        Walk walk(forest);
        for (size_t row; next(row);)
            for (size_t begin = 0; begin < n; begin += BLOCK) {
                const LineRows mine = rows(begin, row);
                const LineSink sink{forest, mine, out + row * table, table, crowd.weights.data() + begin};
                for (size_t t = 0; t < forest.n_trees(); ++t) {
                    check_interrupt();
                    walk.tree(forest.roots[t], Block{crowd.columns.data() + begin, n, ends.row(row), 1, 0},
                              std::min(BLOCK, n - begin), true, sink);
                }
            }
    });
}

// Start i with end i: out (pairs, variables, outputs), without the leaves at their ends. Node by node: exact times are
// needed at every leaf, so that lanes, which find leaves by approximate times, would gain nothing.
inline void linear_pairs(const Forest& forest, const LeafLines& leaves, const Rows& starts, const Rows& ends,
                         const double* from, const double* to, size_t columns, const int64_t* player, size_t outputs,
                         size_t n_threads, double* out) {
    const size_t table = forest.n_variables() * outputs,
                 fair = (ends.n_rows + 2 * n_threads - 1) /
                        (2 * n_threads),  // a number of pairs that gives every thread work
        size = std::min(BLOCK, std::max<size_t>(64, fair));
    std::fill(out, out + ends.n_rows * table, 0.0);
    for_blocks(forest, starts, ends, n_threads, size, [&] {
        return [&, walk = Walk(forest), numbers = std::vector<double>()](size_t, size_t begin, size_t size,
                                                                         const Block& block) mutable {
            transpose({from, ends.n_rows, columns}, begin, size, size, numbers);
            const LineRows rows{&leaves, numbers.data(), size, to + begin * columns, columns, player, outputs};
            const LineSink sink{forest, rows, out + begin * table, table, nullptr};
            for (size_t t = 0; t < forest.n_trees(); ++t) {
                check_interrupt();
                walk.tree(forest.roots[t], block, size, false, sink);
            }
        };
    });
}

}  // namespace gigrad
