// The exact contribution of one leaf to every variable that opens or closes it on the path from s to e.
#pragma once

#include <algorithm>

#include "core/side.hpp"

namespace gigrad {

// With u variables that open the leaf and v that close it. `together`: at one corner, where they are (u-1)! v!/(u+v)! and -u! (v-1)!/(u+v)!.
inline Shares corner_shares(size_t u, size_t v, bool together) {
    double ways = 1.0;  // (u+v)!/(u! v!)
    if (together)
        for (size_t i = 1; i <= v; ++i) ways *= static_cast<double>(u + i) / static_cast<double>(i);
    return {u ? 1.0 / (static_cast<double>(u) * ways) : 0.0, v ? -1.0 / (static_cast<double>(v) * ways) : 0.0};
}

// corner_shares of up to fifteen variables on either side, to be looked up.
struct ShareTable {
    static constexpr size_t SIDE = 16;
    Shares at[2][SIDE][SIDE];  // together or not; variables that open; variables that close

    ShareTable() {
        for (size_t u = 0; u < SIDE; ++u)
            for (size_t v = 0; v < SIDE; ++v)
                for (const bool together : {false, true}) at[together][u][v] = corner_shares(u, v, together);
    }
};

// A leaf is open while all of its crossed splits agree: after the times of those on which only e agrees, before the
// times of those on which only s does. It is entered at the last of the former, by the variables `past`, and left at
// the first of the latter, by the variables `before`.
class LeafCorner {
public:
    // Variables in the order of the path to the leaf.
    class Variables {
    public:
        size_t size() const { return n_; }
        bool empty() const { return n_ == 0; }
        const int32_t* begin() const { return store_.data(); }
        const int32_t* end() const { return store_.data() + n_; }
        bool has(int32_t variable) const {
            for (const int32_t v : *this)
                if (v == variable) return true;
            return false;
        }

    private:
        friend class LeafCorner;
        std::vector<int32_t> store_;  // as long as the longest path so far, so that nothing is allocated in the loop
        size_t n_ = 0;
    };

    // First `begin`, then `add` every crossed split on the way to the leaf, then `settle`.
    void begin(size_t depth) {
        if (crossings_.size() < depth) {
            crossings_.resize(depth);
            past.store_.resize(depth);
            before.store_.resize(depth);
        }
        n_ = 0;
        entered = -1.0, left = 2.0;
    }

    // The split `node` of `variable`, crossed at `time`; `to_end`: the leaf is on the end's side of it.
    void add(double time, int32_t variable, int32_t node, bool to_end) {
        crossings_[n_++] = {time, variable, to_end};
        if (to_end && time > entered) entered = time, entered_by = node;
        if (!to_end && time < left) left = time, left_by = node;
    }

    // Finds the variables and their shares; false if the path never reaches the leaf.
    bool settle() {
        if (entered > left) return false;
        past.n_ = before.n_ = 0;
        for (const Crossing* c = crossings_.data(); c != crossings_.data() + n_; ++c) {
            if (c->to_end ? c->time < entered : c->time > left) continue;
            Variables& to = c->to_end ? past : before;
            to.store_[to.n_] = c->variable;
            to.n_ += !to.has(c->variable);
        }
        return share();
    }

    // All three; `value_at(feature)` gives (s, e).
    template <class ValueAt>
    bool find(const Forest& forest, const Turn* path, size_t depth, ValueAt value_at) {
        begin(depth);
        for (const Turn* turn = path; turn != path + depth; ++turn) {
            const Node& node = forest.nodes[turn->node];
            const auto [s, e] = value_at(node.feature);
            const bool s_here = goes_left(forest, node, s) == turn->left,
                       e_here = goes_left(forest, node, e) == turn->left;
            if (s_here != e_here)
                add(crossing_time(forest, node, s, e), node.variable, turn->node, e_here);
            else if (!s_here)
                return false;
        }
        return settle();
    }

    Variables past, before;
    double entered, left;             // times
    int32_t entered_by, left_by;      // a split crossed then
    double past_share, before_share;  // of the leaf's value, with its sign, for each variable of the set

private:
    struct Crossing {
        double time;
        int32_t variable;
        bool to_end;
    };
    std::vector<Crossing> crossings_;
    size_t n_ = 0;

    bool share() {
        const bool together = !past.empty() && !before.empty() && entered == left;
        if (together)
            for (const int32_t variable : past)
                if (before.has(variable)) return false;  // a variable cannot be both past and before
        const Shares shares = corner_shares(past.size(), before.size(), together);
        past_share = shares.past;
        before_share = shares.before;
        return true;
    }
};

}  // namespace gigrad
