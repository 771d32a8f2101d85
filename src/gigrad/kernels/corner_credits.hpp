// What the variables of given corners earn under a link: for whoever needs a path's jumps one by one and not their sum.
#pragma once

#include "linked.hpp"

namespace gigrad {

// The leaves that the coalitions at one corner of a pair reach, as terms of a game.
class CornerLeaves {
  public:
    explicit CornerLeaves(const Forest& forest) : forest_(forest), side_(forest.n_variables(), UNKNOWN) {}

    // Adds the leaves at the corner at `time` of the pair (s, e) to `game`; `nobody` (outputs,) gets what the trees give
    // while nobody is past it.
    void collect(const double* s, const double* e, double time, Game& game, double* nobody) {
        std::copy(forest_.base.begin(), forest_.base.end(), nobody);
        for (size_t t = 0; t < forest_.n_trees(); ++t) walk({s, e, time, t, game, nobody}, forest_.roots[t]);
    }

  private:
    enum Side : uint8_t { UNKNOWN, PAST, BEFORE };
    struct Corner {
        const double *s, *e;
        double time;
        size_t tree;
        Game& game;
        double* nobody;
    };
    const Forest& forest_;
    std::vector<Side> side_;             // of each variable, on the way to the present node
    std::vector<int32_t> past_, before_;  // the variables that have one

    void walk(const Corner& at, int32_t index) {
        const Node* node = &forest_.nodes[index];
        while (!node->is_leaf()) {
            const double s = at.s[node->feature], e = at.e[node->feature];
            const bool s_left = goes_left(forest_, *node, s), e_left = goes_left(forest_, *node, e);
            bool passed = false;
            if (s_left != e_left) {
                const double time = crossing_time(forest_, *node, s, e);
                const Side side = side_[node->variable];
                if (time == at.time && side == UNKNOWN) {
                    branch(at, node->variable, PAST, past_, e_left ? node->left : node->right);
                    branch(at, node->variable, BEFORE, before_, s_left ? node->left : node->right);
                    return;
                }
                passed = time < at.time || (time == at.time && side == PAST);
            }
            node = &forest_.nodes[(passed ? e_left : s_left) ? node->left : node->right];
        }
        leaf(at, *node);
    }

    void branch(const Corner& at, int32_t variable, Side side, std::vector<int32_t>& list, int32_t child) {
        side_[variable] = side;
        list.push_back(variable);
        walk(at, child);
        list.pop_back();
        side_[variable] = UNKNOWN;
    }

    void leaf(const Corner& at, const Node& node) const {
        const size_t first = forest_.first(at.tree), width = forest_.width(at.tree);
        const double* value = forest_.values.data() + node.value;
        if (past_.empty())
            for (size_t k = 0; k < width; ++k) at.nobody[first + k] += value[k];
        if (past_.empty() && before_.empty()) return;
        at.game.add(past_.data(), past_.size(), before_.data(), before_.size(), value, 1.0, first, width);
    }
};

// values: (corners, variables, link outputs); error: (corners, link outputs). Corner i is that of pair[i] at time[i].
inline void corner_credits(const Forest& forest, const Link& link, const GameOptions& options, const Rows& starts, const Rows& ends,
                           const int64_t* pair, const double* time, size_t n_corners, size_t n_threads, double* values, double* error) {
    check_pairs(forest, starts, ends);
    check_link(forest, link, options);
    check_queries(starts, pair, time, n_corners);
    const size_t outputs = link.n_outputs(), table = forest.n_variables() * outputs;
    std::fill(values, values + n_corners * table, 0.0);
    constexpr size_t unit_size = 16;
    parallel((n_corners + unit_size - 1) / unit_size, n_threads, [&](auto next) {
        CornerLeaves leaves(forest);
        Game game(link, options);
        std::vector<double> margin(forest.n_outputs()), errors(table);
        for (size_t unit; next(unit);)
            for (size_t i = unit * unit_size; i < std::min(n_corners, (unit + 1) * unit_size); ++i) {
                game.clear();
                leaves.collect(starts.row(pair[i]), ends.row(pair[i]), time[i], game, margin.data());
                std::fill(errors.begin(), errors.end(), 0.0);
                game.solve(margin.data(), 1.0, static_cast<uint64_t>(pair[i]), values + i * table, errors.data());
                largest_error(errors.data(), forest.n_variables(), outputs, error + i * outputs);
            }
    });
}

}  // namespace gigrad
