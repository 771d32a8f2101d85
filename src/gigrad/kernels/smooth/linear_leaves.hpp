// Trees whose leaves are linear in some columns: `sum over trees of (a + sum of b_j x_j)`, with a and b those of the leaf.
//
// The score is linear in what the trees give, so each tree and each leaf can be done alone, in closed form. A leaf that is
// entered at time t through one variable and left at time u through another gives its value at x(t) to the first and takes
// its value at x(u) from the second; in between, column j earns b_j times the way that it goes. That way is
// move_j (u - t): what is entered takes move_j t off, what is left adds move_j u, and leaves at the end of the path add
// move_j, which is added elsewhere.
#pragma once

#include "walk/corner.hpp"
#include "walk/ordered.hpp"

namespace gigrad {

// What leaves add to the score: their numbers times a column of the rows, or alone.
class LinearLeaves {
public:
    // Number o of a leaf counts `weight[o]` times for output target[o], times column[o] of the rows, or alone where that is -1.
    LinearLeaves(const Forest& forest, const int64_t* column, const int64_t* target, const double* weight)
        : forest_(forest),
          splits_(forest.split_ids()),
          first_(forest.values.size(), -1),
          count_(forest.values.size(), 0) {
        std::vector<int32_t> open;
        for (size_t t = 0; t < forest.n_trees(); ++t)
            for (open.assign(1, forest.roots[t]); !open.empty();) {
                const Node& node = forest.nodes[open.back()];
                open.pop_back();
                if (!node.is_leaf()) {
                    open.push_back(node.left), open.push_back(node.right);
                    continue;
                }
                if (first_[node.value] >= 0) continue;
                first_[node.value] = static_cast<int32_t>(parts_.size());
                for (size_t i = 0; i < forest.width(t); ++i) {
                    const size_t o = forest.first(t) + i;
                    const double factor = forest.values[node.value + i] * weight[o];
                    if (factor != 0.0) parts_.push_back({column[o], target[o], factor});
                }
                std::stable_sort(parts_.begin() + first_[node.value], parts_.end(),
                                 [](const Part& a, const Part& b) { return a.output < b.output; });
                count_[node.value] = static_cast<int32_t>(parts_.size()) - first_[node.value];
            }
    }

    // Adds the credit of one pair to (variables, outputs). `start` and `end` are the rows as trees read them, `from` and
    // `to` as they are; column j earns for variable player[j].
    void add(const TracedPair& pair, const double* start, const double* end, const double* from, const double* to,
             const int64_t* player, size_t outputs, double* credit) const {
        const auto& [trace, place, swept] = pair;
        const Path path{from, to, player, outputs, credit};
        const auto time_of = [&](int32_t split) {
            const int32_t j = splits_.feature[split];
            return crossing_time(forest_, forest_.nodes[splits_.first_node[split]], start[j], end[j]);
        };
        const int32_t none = splits_.none();
        for (const Visit *visit = trace.begin(place), *stop = trace.end(place); visit != stop; ++visit) {
            const double opened = visit->opens == none ? 0.0 : time_of(visit->opens),
                         closed = visit->closes == none ? 0.0 : time_of(visit->closes);
            for_outputs(visit->gives.place.value, path, closed - opened,
                        [&](double at_start, double way, double* by_variable) {
                            if (visit->opens != none)
                                by_variable[splits_.variable[visit->opens] * outputs] += at_start + opened * way;
                            if (visit->closes != none)
                                by_variable[splits_.variable[visit->closes] * outputs] -= at_start + closed * way;
                        });
        }
        for (const CornerVisit& c : trace.corners(place)) {
            const Shares shares = corner_shares(c.n_past, c.n_before, c.n_past > 0 && c.n_before > 0);
            const int32_t* members = trace.members(place) + c.members;
            const double closed = (c.n_before > 0 ? c.time : 0.0) - (c.n_past > 0 ? c.time : 0.0);
            for_outputs(c.value, path, closed, [&](double at_start, double way, double* by_variable) {
                for (size_t m = 0; m < c.n_past + c.n_before; ++m)
                    by_variable[members[m] * outputs] +=
                        (m < c.n_past ? shares.past : shares.before) * (at_start + c.time * way);
            });
        }
    }

private:
    struct Part {
        int64_t column, output;
        double factor;
    };
    struct Path {
        const double *from, *to;
        const int64_t* player;
        size_t outputs;
        double* credit;
    };
    const Forest& forest_;
    const SplitIds& splits_;
    std::vector<Part> parts_;             // of each leaf, by output
    std::vector<int32_t> first_, count_;  // by where a leaf's numbers begin

    // Gives each column its part of a leaf for so much of the path, and calls jumps(value at the start, way to the value
    // at the end, table of credit) for every output that the leaf adds to.
    template <class Jumps>
    void for_outputs(int32_t value, const Path& path, double length, Jumps jumps) const {
        const Part *part = parts_.data() + first_[value], *stop = part + count_[value];
        while (part != stop) {
            const int64_t output = part->output;
            double at_start = 0.0, way = 0.0, *by_variable = path.credit + output;
            for (; part != stop && part->output == output; ++part) {
                const int64_t j = part->column;
                if (j < 0) {
                    at_start += part->factor;
                    continue;
                }
                const double move = part->factor * (path.to[j] - path.from[j]);
                at_start += part->factor * path.from[j];
                way += move;
                by_variable[static_cast<size_t>(path.player[j]) * path.outputs] += length * move;
            }
            jumps(at_start, way, by_variable);
        }
    }
};

// out (pairs, variables, outputs): the credit of each pair, but for the leaves at its end.
inline void linear_credits(const Forest& forest, const LaneKernel* kernel, const LinearLeaves& leaves,
                           const Rows& starts, const Rows& ends, const double* from, const double* to, size_t columns,
                           const int64_t* player, size_t outputs, size_t n_threads, double* out) {
    const size_t table = forest.n_variables() * outputs,
                 block_size = Tracer::block_size(kernel, ends.n_rows, n_threads);
    std::fill(out, out + ends.n_rows * table, 0.0);
    for_blocks(forest, starts, ends, n_threads, block_size, [&] {
        return [&, tracer = std::make_unique<Tracer>(forest, kernel, false)](size_t, size_t begin, size_t size,
                                                                             const Block& block) {
            tracer->pairs(block, size, [&](size_t i, const TracedPair& pair) {
                const size_t at = begin + i;
                leaves.add(pair, starts.row(at), ends.row(at), from + at * columns, to + at * columns, player, outputs,
                           out + at * table);
            });
        };
    });
}

}  // namespace gigrad
