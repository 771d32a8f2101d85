// The ambiguous leaves of a vector walk, for pairs that share their end: exact, and fast for many starts.
#pragma once

#include "walk/corner.hpp"
#include "lanes/lanes.hpp"
#include "walk/walk.hpp"

namespace gigrad {

// One path to a leaf. For one end, branches to its side may open the leaf, once the start has crossed them; the others
// always close it.
class SharedLeaf {
public:
    SharedLeaf(const Forest& forest, const LaneKernel& kernel) : forest_(forest), kernel_(kernel) {}

    void set_way(const Turn* path, int depth, const Block& block, const LaneColumn* columns) {
        depth_ = depth;
        repeats_ = false;
        for (int d = 0; d < depth; ++d) {
            const Node& node = forest_.nodes[path[d].node];
            way_[d] = {block.starts + static_cast<size_t>(node.feature) * block.start_step,
                       block.ends + static_cast<size_t>(node.feature) * block.end_column_step, &node, path[d].left,
                       !node.at_once && !columns[node.feature].jumps};
            for (int other = 0; other < d; ++other) repeats_ |= way_[other].node->variable == node.variable;
        }
    }

    void set_end(size_t offset) {
        n_opening_ = n_closing_ = 0;
        plain_ = true;
        for (int d = 0; d < depth_; ++d) {
            const WayTurn& turn = way_[d];
            const double end = turn.ends[offset];
            const bool end_left = goes_left(forest_, *turn.node, end), plain = turn.plain && std::isfinite(end);
            const int32_t index = turn.node->interval();
            const Interval stored = index < 0 ? Interval{1.0, 0.0} : forest_.intervals[index];
            (end_left == turn.left ? opening_[n_opening_++] : closing_[n_closing_++]) = {
                turn.starts, turn.node->threshold, turn.node->place, end,       stored.low,
                stored.high, stored.holds(end),    turn.node,        !end_left, plain,
                0.0};
            plain_ &= plain;
        }
    }

    // The leaf has a constant value, unless set_line follows.
    void set_constant() { line_ = false, n_columns_ = 0; }
    // The leaf is linear: `constant` and a number of columns, to which their masses are added.
    void set_line(LeafColumn* columns, int n_columns, double constant) {
        line_ = true;
        columns_ = columns;
        n_columns_ = n_columns;
        constant_ = constant;
    }

    // Adds weight times the shares of n starts to the turns' masses.
    void add(const int32_t* starts, size_t n, const double* weights) {
        const LeafShares job{opening_, closing_, n_opening_, n_closing_, repeats_,   starts,   n,
                             weights,  shares(), line_,      columns_,   n_columns_, constant_};
        if (plain_ && kernel_.leaf_shares(job)) return;
        for (LeafColumn* c = columns_; c != columns_ + n_columns_; ++c) std::fill(c->mass, c->mass + 4, 0.0);
        for (size_t i = 0; i < n; ++i) add(static_cast<size_t>(starts[i]), weights[starts[i]]);
    }

    const Shares* shares() const { return shares_.at[0][0]; }

    // Passes on the masses: to(variable, mass).
    template <class To>
    void flush(To to) {
        for (LeafTurn* turn = opening_; turn != opening_ + n_opening_; ++turn) flush(*turn, to);
        for (LeafTurn* turn = closing_; turn != closing_ + n_closing_; ++turn) flush(*turn, to);
    }

private:
    struct WayTurn {
        const double *starts, *ends;
        const Node* node;
        bool left, plain;
    };
    const Forest& forest_;
    const LaneKernel& kernel_;
    WayTurn way_[MAX_TURNS];
    int depth_ = 0;
    LeafTurn opening_[MAX_TURNS], closing_[MAX_TURNS];
    int n_opening_ = 0, n_closing_ = 0;
    bool repeats_ = false;  // a variable has two splits on the path
    bool plain_ = true;     // all turns are
    bool line_ = false;
    LeafColumn* columns_ = nullptr;
    int n_columns_ = 0;
    double constant_ = 0.0;
    LeafCorner corner_;
    const ShareTable shares_;  // of all numbers there can be: MAX_TURNS at most

    // One start: the plain version of LaneKernel::leaf_shares, and the general one.
    void add(size_t start, double weight) {
        double opened[MAX_TURNS], closed[MAX_TURNS], entered = -1.0, left = 2.0;
        for (int i = 0; i < n_opening_; ++i) {
            const double s = opening_[i].starts[start];
            opened[i] = crosses(opening_[i], s) ? time(opening_[i], s) : -1.0;
            entered = std::max(entered, opened[i]);
        }
        for (int i = 0; i < n_closing_; ++i) {
            const double s = closing_[i].starts[start];
            if (!crosses(closing_[i], s)) return;
            closed[i] = time(closing_[i], s);
            left = std::min(left, closed[i]);
        }
        if (entered > left) return;
        if (repeats_)
            share_variables(start, opened, closed, weight);
        else
            share(start, opened, closed, entered, left, weight);
    }

    template <class To>
    static void flush(LeafTurn& turn, To& to) {
        to(turn.node->variable, turn.mass);
        turn.mass = 0.0;
    }

    // Multiplies shares by the leaf's value where it is entered and left, and accumulates the changes of its columns in
    // between; times are 0 if nothing opens or closes it.
    void multiply(size_t start, double entered, double left, double weight, Shares& shares) {
        if (!line_) return;
        double at_start = constant_, way = 0.0;
        for (LeafColumn* c = columns_; c != columns_ + n_columns_; ++c) {
            const double from = c->from[start], move = c->to - from;
            at_start += c->factor * from;
            way += c->factor * move;
            c->mass[0] += weight * (left - entered) * move;
        }
        shares.past *= at_start + entered * way;
        shares.before *= at_start + left * way;
    }

    bool crosses(const LeafTurn& turn, double s) const {
        return (turn.plain ? s <= turn.threshold : goes_left(forest_, *turn.node, s)) == turn.from_left;
    }
    double time(const LeafTurn& turn, double s) const { return crossing_time(forest_, *turn.node, s, turn.end); }

    void share(size_t start, const double* opened, const double* closed, double entered, double left, double weight) {
        int u = 0, v = 0;
        const double late = std::max(0.0, entered), soon = left;
        for (int i = 0; i < n_opening_; ++i) u += opened[i] >= late;
        for (int i = 0; i < n_closing_; ++i) v += closed[i] <= soon;
        Shares shares = shares_.at[u && v && entered == left][u][v];
        multiply(start, late, v ? left : 0.0, weight, shares);
        const double past = weight * shares.past, before = weight * shares.before;
        for (int i = 0; i < n_opening_; ++i) opening_[i].mass += opened[i] >= late ? past : 0.0;
        for (int i = 0; i < n_closing_; ++i) closing_[i].mass += closed[i] <= soon ? before : 0.0;
    }

    void share_variables(size_t start, const double* opened, const double* closed, double weight) {
        corner_.begin(MAX_TURNS);
        for (int i = 0; i < n_opening_; ++i)
            if (opened[i] >= 0.0) corner_.add(opened[i], opening_[i].node->variable, 0, true);
        for (int i = 0; i < n_closing_; ++i) corner_.add(closed[i], closing_[i].node->variable, 0, false);
        if (!corner_.settle()) return;
        Shares shares{corner_.past_share, corner_.before_share};
        multiply(start, corner_.past.empty() ? 0.0 : corner_.entered, corner_.before.empty() ? 0.0 : corner_.left,
                 weight, shares);
        for (const int32_t j : corner_.past) first_of(opening_, j).mass += weight * shares.past;
        for (const int32_t j : corner_.before) first_of(closing_, j).mass += weight * shares.before;
    }

    static LeafTurn& first_of(LeafTurn* turns, int32_t variable) {
        while (turns->node->variable != variable) ++turns;
        return *turns;
    }
};

}  // namespace gigrad
