// Linear leaves, `a + sum of b_j x_j`, and their contributions to the variables of a path.
//
// The score is linear in the trees' outputs, so each tree and each leaf can be computed separately, in closed form. A
// leaf that is entered at time t through one variable and left at time u through another adds its value at x(t) to the
// first and subtracts its value at x(u) from the second; in between, column j gets b_j times its change, move_j (u -
// t): entering a leaf subtracts move_j t, leaving it adds move_j u, and leaves at the end of the path add move_j, which
// is done elsewhere.
#pragma once

#include "walk/walk.hpp"

namespace gigrad {

// The terms of leaves: their numbers times a column of the rows, or constant.
class LeafLines {
public:
    struct Part {
        int64_t column, output;
        double factor;
    };

    // Number o of a leaf counts `weight[o]` times for output target[o], times column[o] of the rows, or alone where that is -1.
    LeafLines(const Forest& forest, const int64_t* column, const int64_t* target, const double* weight)
        : range_(forest.nodes.size(), Range{0, 0}) {
        std::vector<int32_t> open;
        for (size_t t = 0; t < forest.n_trees(); ++t)
            for (open.assign(1, forest.roots[t]); !open.empty();) {
                const int32_t index = open.back();
                const Node& node = forest.nodes[index];
                open.pop_back();
                if (!node.is_leaf()) {
                    open.push_back(node.left), open.push_back(node.right);
                    continue;
                }
                if (range_[index].stop) continue;
                const size_t first = parts_.size();
                for (size_t i = 0; i < forest.width(t); ++i) {
                    const size_t o = forest.first(t) + i;
                    const double factor = forest.values[node.value + i] * weight[o];
                    if (factor != 0.0) parts_.push_back({column[o], target[o], factor});
                }
                const auto begin = parts_.begin() + static_cast<std::ptrdiff_t>(first);
                std::stable_sort(begin, parts_.end(), [](const Part& a, const Part& b) { return a.output < b.output; });
                range_[index] = {static_cast<uint32_t>(first), static_cast<uint32_t>(parts_.size())};
            }
    }

    // Calls each(first part, past the last) for every output that the leaf `node` adds to.
    template <class Each>
    void for_outputs(int32_t node, Each each) const {
        const Part *part = parts_.data() + range_[node].first, *stop = parts_.data() + range_[node].stop;
        while (part != stop) {
            const Part* first = part;
            while (part != stop && part->output == first->output) ++part;
            each(first, part);
        }
    }

private:
    struct Range {
        uint32_t first, stop;
    };
    std::vector<Part> parts_;   // of each leaf, by output
    std::vector<Range> range_;  // by node: nodes are fewer than the numbers of all leaves, and lie closer together
};

// The values that leaves multiply, by column, for every start with every end, and the variables that get the credit.
struct LineRows {
    const LeafLines* leaves;
    const double* from;  // column j of start i: from[j * from_step + i]
    size_t from_step;
    const double* to;  // column j of end i: to[i * to_step + j]
    size_t to_step;
    const int64_t* player;  // of each column
    size_t outputs;
};

// Adds the results of the exact walk to a table of credit by (variable, output).
struct LineSink {
    const Forest& forest;
    const LineRows& rows;
    double* credit;
    size_t step;            // from one end's table to the next
    const double* weights;  // of starts; null for 1

    void crossing(Pair pair, int32_t node, double time, double sign, const Node& leaf) const {
        const auto variable = static_cast<size_t>(forest.nodes[node].variable);
        give(pair, leaf, -sign * time, [&](double at_start, double way, double weight, double* to) {
            to[variable * rows.outputs] += weight * sign * (at_start + time * way);
        });
    }

    void corner(Pair pair, const LeafCorner& c, const Node& leaf) const {
        const double entered = c.past.empty() ? 0.0 : c.entered, left = c.before.empty() ? 0.0 : c.left;
        give(pair, leaf, left - entered, [&](double at_start, double way, double weight, double* to) {
            const double past = weight * c.past_share * (at_start + entered * way),
                         before = weight * c.before_share * (at_start + left * way);
            for (const int32_t j : c.past) to[static_cast<size_t>(j) * rows.outputs] += past;
            for (const int32_t j : c.before) to[static_cast<size_t>(j) * rows.outputs] += before;
        });
    }

private:
    // Adds each column's part of a leaf for a part of the path, and calls jumps(value at the start, change to the value
    // at the end, weight, table of credit) for every output that the leaf adds to.
    template <class Jumps>
    void give(Pair pair, const Node& leaf, double length, Jumps jumps) const {
        const auto start = static_cast<size_t>(pair.start), end = static_cast<size_t>(pair.end);
        const double weight = weights ? weights[start] : 1.0;
        const auto node = static_cast<int32_t>(&leaf - forest.nodes.data());
        rows.leaves->for_outputs(node, [&](const LeafLines::Part* part, const LeafLines::Part* stop) {
            double at_start = 0.0, way = 0.0, *to = credit + end * step + part->output;
            for (; part != stop; ++part) {
                if (part->column < 0) {
                    at_start += part->factor;
                    continue;
                }
                const auto j = static_cast<size_t>(part->column);
                const double from = rows.from[j * rows.from_step + start],
                             move = part->factor * (rows.to[end * rows.to_step + j] - from);
                at_start += part->factor * from;
                way += move;
                to[static_cast<size_t>(rows.player[j]) * rows.outputs] += weight * length * move;
            }
            jumps(at_start, way, weight, to);
        });
    }
};

}  // namespace gigrad
