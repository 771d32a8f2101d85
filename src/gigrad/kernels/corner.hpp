// The exact share of one leaf: every variable that opens or closes it on the way from s to e.
#pragma once

#include <algorithm>

#include "side.hpp"

namespace gigrad {

// A leaf is open while all of its crossed splits agree: after the times of those on which only e agrees, before the
// times of those on which only s does. It is entered at the last of the former, by the variables `past`, and left at
// the first of the latter, by the variables `before`.
class LeafCorner {
  public:
    // `value_at(feature)` gives (s, e). Returns false where the path never meets the leaf.
    template <class ValueAt>
    bool find(const Forest& forest, const Turn* path, size_t depth, ValueAt value_at) {
        if (crossings_.size() < depth) {
            crossings_.resize(depth);
            past.reserve(depth);
            before.reserve(depth);
        }
        entered = -1.0, left = 2.0;
        size_t n = 0;
        for (const Turn* turn = path; turn != path + depth; ++turn) {
            const Node& node = forest.nodes[turn->node];
            const auto [s, e] = value_at(node.feature);
            const bool s_here = goes_left(forest, node, s) == turn->left, e_here = goes_left(forest, node, e) == turn->left;
            if (s_here == e_here) {
                if (s_here) continue;
                return false;
            }
            const double time = crossing_time(node, s, e);
            crossings_[n++] = {time, node.feature, e_here};
            entered = e_here && time > entered ? time : entered;
            left = s_here && time < left ? time : left;
        }
        if (entered > left + TIE) return false;
        past.clear();
        before.clear();
        for (const Crossing* c = crossings_.data(); c != crossings_.data() + n; ++c)
            if (c->to_end ? c->time >= entered - TIE : c->time <= left + TIE) insert(c->to_end ? past : before, c->variable);
        return share();
    }

    std::vector<int32_t> past, before;  // in the order of the way to the leaf
    double entered, left;               // times
    double past_share, before_share;    // of the leaf's value, with its sign, for each variable of the set

  private:
    struct Crossing {
        double time;
        int32_t variable;
        bool to_end;
    };
    std::vector<Crossing> crossings_;

    static bool has(const std::vector<int32_t>& set, int32_t variable) {
        for (const int32_t v : set)
            if (v == variable) return true;
        return false;
    }
    static void insert(std::vector<int32_t>& set, int32_t variable) {
        if (!has(set, variable)) set.push_back(variable);
    }

    bool share() {
        const size_t u = past.size(), v = before.size();
        if (u && v && entered >= left - TIE) {  // one corner for both: (u-1)! v!/(u+v)! and u! (v-1)!/(u+v)!
            for (const int32_t variable : past)
                if (has(before, variable)) return false;  // a variable cannot be past and before at once
            double ways = 1.0;  // (u+v)!/(u! v!)
            for (size_t i = 1; i <= v; ++i) ways *= static_cast<double>(u + i) / static_cast<double>(i);
            past_share = 1.0 / (static_cast<double>(u) * ways);
            before_share = -1.0 / (static_cast<double>(v) * ways);
            return true;
        }
        past_share = u ? 1.0 / static_cast<double>(u) : 0.0;
        before_share = v ? -1.0 / static_cast<double>(v) : 0.0;
        return true;
    }
};

}  // namespace gigrad
