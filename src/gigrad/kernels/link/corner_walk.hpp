// The leaves that the coalitions at one corner of a pair reach, and the conditions of each.
#pragma once

#include "link/game.hpp"
#include "core/side.hpp"

namespace gigrad {

class CornerWalk {
public:
    explicit CornerWalk(const Forest& forest) : forest_(forest), side_(forest.n_variables(), UNKNOWN) {}

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
        found_.clear();
        members_.clear();
        std::copy(forest_.base.begin(), forest_.base.end(), nobody);
    }
    void add_tree(size_t tree, double* nobody) {
        tree_ = tree;
        walk(forest_.roots[tree], nobody);
    }
    void finish(CornerTerms& terms) const {
        terms.clear();
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
    const double *s_ = nullptr, *e_ = nullptr;
    double time_ = 0.0;
    size_t tree_ = 0;
    std::vector<Side> side_;  // of each variable, on the way to the present node
    std::vector<int32_t> past_, before_, members_;
    std::vector<Found> found_;

    void walk(int32_t index, double* nobody) {
        const Node* node = &forest_.nodes[index];
        while (!node->is_leaf()) {
            const double s = s_[node->feature], e = e_[node->feature];
            const bool s_left = goes_left(forest_, *node, s), e_left = s == e ? s_left : goes_left(forest_, *node, e);
            bool left = s_left;
            if (s_left != e_left) {
                const double time = crossing_time(forest_, *node, s, e);
                const int32_t variable = node->variable;
                if (time < time_ || (time == time_ && side_[variable] == PAST)) {
                    left = e_left;
                } else if (time == time_ && side_[variable] == UNKNOWN) {
                    part(variable, PAST, past_, e_left ? node->left : node->right, nobody);
                    part(variable, BEFORE, before_, s_left ? node->left : node->right, nobody);
                    side_[variable] = UNKNOWN;
                    return;
                }
            }
            node = &forest_.nodes[left ? node->left : node->right];
        }
        leaf(*node, nobody);
    }

    void part(int32_t variable, Side side, std::vector<int32_t>& list, int32_t child, double* nobody) {
        side_[variable] = side;
        list.push_back(variable);
        walk(child, nobody);
        list.pop_back();
    }

    void leaf(const Node& node, double* nobody) {
        const size_t first = forest_.first(tree_), width = forest_.width(tree_);
        if (past_.empty())
            for (size_t o = 0; o < width; ++o) nobody[first + o] += forest_.values[node.value + o];
        if (past_.empty() && before_.empty()) return;
        found_.push_back({members_.size(), static_cast<uint32_t>(past_.size()), static_cast<uint32_t>(before_.size()),
                          static_cast<size_t>(node.value), static_cast<uint32_t>(first), static_cast<uint32_t>(width)});
        members_.insert(members_.end(), past_.begin(), past_.end());
        members_.insert(members_.end(), before_.begin(), before_.end());
    }
};

}  // namespace gigrad
