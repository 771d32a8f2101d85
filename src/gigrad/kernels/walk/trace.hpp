// The leaves on the path of each pair in all trees, where the jumps are needed and not only their sum.
#pragma once

#include "lanes/lanes.hpp"
#include "walk/walk.hpp"

namespace gigrad {

// A leaf that several variables open (past) or close (before) at the same time.
struct CornerVisit {
    double time;
    int32_t value, tree;
    uint32_t members, n_past, n_before;  // where its variables begin: first those past, then those before
};

// The leaves that each pair of a block passes.
class Trace {
public:
    // Room for `n` pairs, all empty.
    void clear(size_t n) {
        if (pairs_.size() < n) {
            pairs_.resize(n);
            cursors_.resize(n);
        }
        for (size_t i = 0; i < n; ++i) {
            cursors_[i] = {pairs_[i].visits.data(), pairs_[i].visits.data() + pairs_[i].visits.size()};
            pairs_[i].corners.clear();
            pairs_[i].members.clear();
        }
    }

    Visits* cursors() { return cursors_.data(); }

    void grow(size_t pair) {
        std::vector<Visit>& visits = pairs_[pair].visits;
        const size_t n = static_cast<size_t>(cursors_[pair].next - visits.data());
        visits.resize(std::max<size_t>(64, 2 * visits.size()));
        cursors_[pair] = {visits.data() + n, visits.data() + visits.size()};
    }

    void add(size_t pair, const Visit& visit) {
        if (cursors_[pair].next == cursors_[pair].end) grow(pair);
        *cursors_[pair].next++ = visit;
    }

    // Its variables follow, by add_members: first those past, then those before.
    void add_corner(size_t pair, double time, int32_t value, int32_t tree, size_t n_past, size_t n_before) {
        PairTrace& to = pairs_[pair];
        to.corners.push_back({time, value, tree, static_cast<uint32_t>(to.members.size()),
                              static_cast<uint32_t>(n_past), static_cast<uint32_t>(n_before)});
    }
    void add_members(size_t pair, const int32_t* begin, const int32_t* end) {
        pairs_[pair].members.insert(pairs_[pair].members.end(), begin, end);
    }

    const Visit* begin(size_t pair) const { return pairs_[pair].visits.data(); }
    const Visit* end(size_t pair) const { return cursors_[pair].next; }
    const std::vector<CornerVisit>& corners(size_t pair) const { return pairs_[pair].corners; }
    const int32_t* members(size_t pair) const { return pairs_[pair].members.data(); }

private:
    struct PairTrace {
        std::vector<Visit> visits;
        std::vector<CornerVisit> corners;
        std::vector<int32_t> members;
    };
    std::vector<PairTrace> pairs_;
    std::vector<Visits> cursors_;
};

// Records the results of the exact walk. A pair has the index start + end * step.
struct TraceSink {
    const Forest& forest;
    const SplitIds& splits;
    Trace& trace;
    size_t step;
    int32_t tree;

    VisitValue gives(const Node& leaf) const {
        VisitValue out;
        if (forest.n_outputs() == 1)
            out.number = forest.values[leaf.value];
        else
            out.place = {leaf.value, tree};
        return out;
    }

    size_t place(Pair pair) const { return static_cast<size_t>(pair.start) + static_cast<size_t>(pair.end) * step; }

    void crossing(Pair pair, int32_t node, double, double sign, const Node& leaf) const {
        const int32_t split = splits.of_node[node], none = splits.none();
        trace.add(place(pair), {sign > 0 ? split : none, sign > 0 ? none : split, gives(leaf)});
    }

    void corner(Pair pair, const LeafCorner& c, const Node& leaf) const {
        const size_t at = place(pair);
        if (!c.past.empty() && !c.before.empty() && c.entered == c.left) {
            trace.add_corner(at, c.entered, leaf.value, tree, c.past.size(), c.before.size());
            trace.add_members(at, c.past.begin(), c.past.end());
            trace.add_members(at, c.before.begin(), c.before.end());
            return;
        }
        Visit alone{splits.none(), splits.none(), gives(leaf)};
        if (c.past.size() == 1) alone.opens = splits.of_node[c.entered_by];
        if (c.before.size() == 1) alone.closes = splits.of_node[c.left_by];
        if (alone.opens != alone.closes) trace.add(at, alone);
        if (c.past.size() > 1) {
            trace.add_corner(at, c.entered, leaf.value, tree, c.past.size(), 0);
            trace.add_members(at, c.past.begin(), c.past.end());
        }
        if (c.before.size() > 1) {
            trace.add_corner(at, c.left, leaf.value, tree, 0, c.before.size());
            trace.add_members(at, c.before.begin(), c.before.end());
        }
    }
};

}  // namespace gigrad
