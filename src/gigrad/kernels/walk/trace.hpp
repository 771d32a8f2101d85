// The leaves on the path of each pair in all trees, where the jumps are needed and not only their sum.
#pragma once

#include "lanes/lanes.hpp"
#include "walk/walk.hpp"

namespace gigrad {

// A leaf that several variables open (past) or close (before) at the same time.
struct CornerVisit {
    double time;
    int32_t value, tree;
    size_t members;             // where its variables begin: first those past, then those before
    uint32_t n_past, n_before;  // how many
};

// The leaves that each pair of a block passes. Those at corners are numbered: pairs that pass a leaf alike share one.
class Trace {
public:
    // Room for `n` pairs, all empty.
    void clear(size_t n) {
        if (pairs_.size() < n) {
            pairs_.resize(n);
            cursors_.resize(n);
            corner_cursors_.resize(n);
        }
        for (size_t i = 0; i < n; ++i) {
            set_end(pairs_[i].visits, 0, cursors_[i]);
            set_end(pairs_[i].corners, 0, corner_cursors_[i]);
        }
        corners_.clear();
        members_.clear();
    }

    Visits* cursors() { return cursors_.data(); }
    CornerNumbers* corner_cursors() { return corner_cursors_.data(); }

    void grow(size_t pair) { grow(pairs_[pair].visits, cursors_[pair]); }
    void grow_corners(size_t pair) { grow(pairs_[pair].corners, corner_cursors_[pair]); }

    void add(size_t pair, const Visit& visit) {
        if (cursors_[pair].next == cursors_[pair].end) grow(pair);
        *cursors_[pair].next++ = visit;
    }

    // The number of a leaf. Its variables follow, by add_members: first those past, then those before.
    uint32_t new_corner(double time, int32_t value, int32_t tree, size_t n_past, size_t n_before) {
        corners_.push_back(
            {time, value, tree, members_.size(), static_cast<uint32_t>(n_past), static_cast<uint32_t>(n_before)});
        return static_cast<uint32_t>(corners_.size() - 1);
    }
    void add_members(const int32_t* begin, const int32_t* end) { members_.insert(members_.end(), begin, end); }
    void add_corner(size_t pair, uint32_t number) {
        if (corner_cursors_[pair].next == corner_cursors_[pair].end) grow_corners(pair);
        *corner_cursors_[pair].next++ = number;
    }

    const Visit* begin(size_t pair) const { return pairs_[pair].visits.data(); }
    const Visit* end(size_t pair) const { return cursors_[pair].next; }
    // The numbers of a pair's leaves at corners.
    const uint32_t* begin_corners(size_t pair) const { return pairs_[pair].corners.data(); }
    size_t n_corners(size_t pair) const {
        return static_cast<size_t>(corner_cursors_[pair].next - begin_corners(pair));
    }
    // By number.
    const CornerVisit* corners() const { return corners_.data(); }
    const int32_t* members() const { return members_.data(); }

private:
    struct PairTrace {
        std::vector<Visit> visits;
        std::vector<uint32_t> corners;
    };
    std::vector<PairTrace> pairs_;
    std::vector<Visits> cursors_;
    std::vector<CornerNumbers> corner_cursors_;
    std::vector<CornerVisit> corners_;
    std::vector<int32_t> members_;

    template <class Of, class Cursor>
    static void set_end(std::vector<Of>& list, size_t n, Cursor& cursor) {
        cursor = {list.data() + n, list.data() + list.size()};
    }
    template <class Of, class Cursor>
    static void grow(std::vector<Of>& list, Cursor& cursor) {
        const size_t n = static_cast<size_t>(cursor.next - list.data());
        list.resize(std::max<size_t>(64, 2 * list.size()));
        set_end(list, n, cursor);
    }
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
            trace.add_corner(at, trace.new_corner(c.entered, leaf.value, tree, c.past.size(), c.before.size()));
            trace.add_members(c.past.begin(), c.past.end());
            trace.add_members(c.before.begin(), c.before.end());
            return;
        }
        Visit alone{splits.none(), splits.none(), gives(leaf)};
        if (c.past.size() == 1) alone.opens = splits.of_node[c.entered_by];
        if (c.before.size() == 1) alone.closes = splits.of_node[c.left_by];
        if (alone.opens != alone.closes) trace.add(at, alone);
        if (c.past.size() > 1) {
            trace.add_corner(at, trace.new_corner(c.entered, leaf.value, tree, c.past.size(), 0));
            trace.add_members(c.past.begin(), c.past.end());
        }
        if (c.before.size() > 1) {
            trace.add_corner(at, trace.new_corner(c.left, leaf.value, tree, 0, c.before.size()));
            trace.add_members(c.before.begin(), c.before.end());
        }
    }
};

}  // namespace gigrad
