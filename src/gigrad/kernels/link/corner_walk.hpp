// The leaves that the coalitions at one corner of a pair reach, and the conditions of each.
#pragma once

#include "link/game.hpp"
#include "core/side.hpp"

namespace gigrad {

// The terms are those that a trace of the pair has at the corner, in the same order: first the changes at each split that
// opens or closes leaves alone, in all trees together, then the leaves that several variables open or close.
class CornerWalk {
public:
    explicit CornerWalk(const Forest& forest)
        : forest_(forest),
          splits_(forest.split_ids()),
          side_(forest.n_variables(), UNKNOWN),
          delta_(splits_.size() * forest.n_outputs(), 0.0),
          touched_(splits_.size(), 0) {}

    // Fills `terms` with the leaves at the corner at `time` of the pair (s, e), and `nobody` (outputs,) with the trees'
    // outputs there for the empty coalition. The terms point into this object.
    void collect(const double* s, const double* e, double time, CornerTerms& terms, double* nobody) {
        begin(s, e, time, nobody);
        for (size_t t = 0; t < forest_.n_trees(); ++t) add_tree(t, nobody);
        finish(terms);
    }

    // The same in parts, so that several corners may go through one tree after the other while it is in a cache.
    void begin(const double* s, const double* e, double time, double* nobody) {
        s_ = s, e_ = e, time_ = time;
        for (const int32_t split : ids_) {
            touched_[split] = 0;
            std::fill_n(change(split), forest_.n_outputs(), 0.0);
        }
        ids_.clear();
        found_.clear();
        members_.clear();
        std::copy(forest_.base.begin(), forest_.base.end(), nobody);
    }
    void add_tree(size_t tree, double* nobody) {
        tree_ = tree;
        walk(forest_.roots[tree], nobody);
    }
    void finish(CornerTerms& terms) {
        const size_t k = forest_.n_outputs();
        terms.clear();
        for (const int32_t split : ids_) terms.add_change(splits_.variable[split], change(split), k);
        for (const Found& leaf : found_)
            terms.add({members_.data() + leaf.members, leaf.n_past, leaf.n_before, forest_.values.data() + leaf.value,
                       leaf.first, leaf.width});
    }

private:
    enum Side : uint8_t { UNKNOWN, PAST, BEFORE };
    struct Found {
        size_t members;
        uint32_t n_past, n_before;
        size_t value;
        uint32_t first, width;
    };
    const Forest& forest_;
    const SplitIds& splits_;
    const double *s_ = nullptr, *e_ = nullptr;
    double time_ = 0.0;
    size_t tree_ = 0;
    std::vector<Side> side_;  // of each variable, on the way to the present node
    std::vector<int32_t> past_, before_, members_;
    std::vector<Found> found_;
    std::vector<double> delta_;  // (splits, outputs): changes where a single variable opens or closes a leaf
    std::vector<char> touched_;
    std::vector<int32_t> ids_;  // splits with such a change, in the order of the leaves
    int32_t last_split_ = -1;   // on the way to the present node

    double* change(int32_t split) { return delta_.data() + static_cast<size_t>(split) * forest_.n_outputs(); }

    void walk(int32_t index, double* nobody) {
        while (!forest_.nodes[index].is_leaf()) {
            const Node& node = forest_.nodes[index];
            const double s = s_[node.feature], e = e_[node.feature];
            const bool s_left = goes_left(forest_, node, s), e_left = s == e ? s_left : goes_left(forest_, node, e);
            bool left = s_left;
            if (s_left != e_left) {
                const double time = crossing_time(forest_, node, s, e);
                const int32_t variable = node.variable;
                if (time < time_ || (time == time_ && side_[variable] == PAST)) {
                    left = e_left;
                } else if (time == time_ && side_[variable] == UNKNOWN) {
                    last_split_ = splits_.of_node[index];
                    part(variable, e_left, node.left, nobody);
                    last_split_ = splits_.of_node[index];
                    part(variable, !e_left, node.right, nobody);
                    side_[variable] = UNKNOWN;
                    return;
                }
            }
            index = left ? node.left : node.right;
        }
        leaf(forest_.nodes[index], nobody);
    }

    void part(int32_t variable, bool past, int32_t child, double* nobody) {
        side_[variable] = past ? PAST : BEFORE;
        std::vector<int32_t>& list = past ? past_ : before_;
        list.push_back(variable);
        walk(child, nobody);
        list.pop_back();
    }

    void leaf(const Node& node, double* nobody) {
        const size_t first = forest_.first(tree_), width = forest_.width(tree_);
        const double* const value = forest_.values.data() + node.value;
        if (past_.empty())
            for (size_t o = 0; o < width; ++o) nobody[first + o] += value[o];
        if (past_.empty() && before_.empty()) return;
        if (past_.size() + before_.size() == 1) {
            if (!touched_[last_split_]) touched_[last_split_] = 1, ids_.push_back(last_split_);
            double* const to = change(last_split_) + first;
            for (size_t o = 0; o < width; ++o) past_.empty() ? to[o] -= value[o] : to[o] += value[o];
            return;
        }
        found_.push_back({members_.size(), static_cast<uint32_t>(past_.size()), static_cast<uint32_t>(before_.size()),
                          static_cast<size_t>(node.value), static_cast<uint32_t>(first), static_cast<uint32_t>(width)});
        members_.insert(members_.end(), past_.begin(), past_.end());
        members_.insert(members_.end(), before_.begin(), before_.end());
    }
};

}  // namespace gigrad
