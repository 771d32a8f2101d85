// The exact share of one leaf: every variable that opens or closes it on the way from s to e.
#pragma once

#include <algorithm>

#include "side.hpp"

namespace gigrad {

// One turn on the way from a root to a leaf.
struct Turn {
    int32_t node;
    bool left;
};

// A leaf is open while all of its crossed splits agree: after the times of those on which only e agrees, before the
// times of those on which only s does. It is entered at the last of the former, by the variables `past`, and left at
// the first of the latter, by the variables `before`.
class LeafCorner {
  public:
    // `value_at(feature)` gives (s, e). Returns false where the path never meets the leaf.
    template <class Path, class ValueAt>
    bool find(const Forest& forest, const Path& path, ValueAt value_at) {
        after_.clear();
        before_.clear();
        for (const Turn& turn : path) {
            const Node& node = forest.nodes[turn.node];
            const auto [s, e] = value_at(node.feature);
            const bool s_here = goes_left(forest, node, s) == turn.left, e_here = goes_left(forest, node, e) == turn.left;
            if (s_here && e_here) continue;
            if (!s_here && !e_here) return false;
            (e_here ? after_ : before_).push_back({crossing_time(node, s, e), node.feature});
        }
        entered = -1.0, left = 2.0;
        for (const Crossing& c : after_) entered = std::max(entered, c.time);
        for (const Crossing& c : before_) left = std::min(left, c.time);
        if (entered > left + TIE) return false;
        past.clear();
        before.clear();
        for (const Crossing& c : after_)
            if (c.time >= entered - TIE) past.push_back(c.variable);
        for (const Crossing& c : before_)
            if (c.time <= left + TIE) before.push_back(c.variable);
        distinct(past);
        distinct(before);
        return share();
    }

    std::vector<int32_t> past, before;
    double entered, left;              // times
    double past_share, before_share;   // of the leaf's value, with its sign, for each variable of the set

  private:
    struct Crossing {
        double time;
        int32_t variable;
    };
    std::vector<Crossing> after_, before_;

    static void distinct(std::vector<int32_t>& v) {
        std::sort(v.begin(), v.end());
        v.erase(std::unique(v.begin(), v.end()), v.end());
    }

    bool share() {
        const size_t u = past.size(), v = before.size();
        if (u && v && entered >= left - TIE) {  // one corner for both: (u-1)! v!/(u+v)! and u! (v-1)!/(u+v)!
            for (size_t i = 0, j = 0; i < u && j < v;) {
                if (past[i] == before[j]) return false;  // a variable cannot be past and before at once
                past[i] < before[j] ? ++i : ++j;
            }
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
