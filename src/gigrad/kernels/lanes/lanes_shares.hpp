// The contributions of a leaf to the branches that open and close it, for many starts of one end: exact, several starts
// at a time. Written once for every instruction set, like the walk; the plain version is SharedLeaf::add, start by
// start.
#pragma once

#include "lanes/corner_lanes.hpp"

namespace gigrad {
namespace {

class LeafSharing {
public:
    // False if a variable has two splits at one corner, and must count once.
    static bool run(const LeafShares& job) {
        LeafSharing me(job);
        for (size_t begin = 0; begin < job.n; begin += N) {
            me.find_turns(begin);
            if (!me.share()) return false;
        }
        me.tell();
        return true;
    }

private:
    static constexpr size_t N = CornerLanes::N;
    using Numbers = CornerLanes::Numbers;
    using Truths = CornerLanes::Truths;

    const LeafShares& job_;
    CornerLanes corner_;
    int32_t start_[N];
    Numbers weight_{};
    Numbers opened_[MAX_TURNS], closed_[MAX_TURNS], opening_mass_[MAX_TURNS], closing_mass_[MAX_TURNS];
    Truths opens_[MAX_TURNS], closes_[MAX_TURNS];

    explicit LeafSharing(const LeafShares& job) : job_(job) {
        for (int d = 0; d < job.n_opening; ++d) opening_mass_[d] = Numbers{};
        for (int d = 0; d < job.n_closing; ++d) closing_mass_[d] = Numbers{};
    }

    // Of N starts, or of fewer and the first of them again, without weight.
    void find_turns(size_t begin) {
        const size_t there = job_.n - begin < N ? job_.n - begin : N;
        int32_t* const start = start_;
        for (size_t i = 0; i < N; ++i) start[i] = job_.starts[begin + (i < there ? i : 0)];
        for (size_t i = 0; i < N; ++i) weight_[i] = i < there ? job_.weights[start[i]] : 0.0;
        corner_.clear();
        for (int d = 0; d < job_.n_opening; ++d) {
            set_times(job_.opening[d], start, CornerLanes::BEFORE_ALL, opened_[d]);
            corner_.open(opened_[d]);
        }
        for (int d = 0; d < job_.n_closing; ++d) {
            set_times(job_.closing[d], start, CornerLanes::NEVER, closed_[d]);
            corner_.close(closed_[d]);
        }
        corner_.settle();
        for (int d = 0; d < job_.n_opening; ++d) corner_.opens(opened_[d], opens_[d]);
        for (int d = 0; d < job_.n_closing; ++d) corner_.closes(closed_[d], closes_[d]);
    }

    // When starts cross a turn; `stays` where they do not.
    static void set_times(const LeafTurn& turn, const int32_t* start, double stays, Numbers& out) {
        Numbers s;
        for (size_t i = 0; i < N; ++i) s[i] = turn.starts[start[i]];
        Numbers time = (turn.place - s) / (turn.end - s);
        const Numbers first{}, last = first + 1.0, stay = first + stays;
        time = time > 0.0 ? (time < 1.0 ? time : last) : first;
        time = (time + TIME_ROUNDER) - TIME_ROUNDER;
        if (turn.end_stored) time = last;
        time = ((s >= turn.low) & (s <= turn.high)) ? (turn.end_stored ? first + 0.5 : first) : time;
        const Truths left = s <= turn.threshold, from_left = Truths{} - turn.from_left;
        out = left == from_left ? time : stay;
    }

    bool meets_itself() const {
        Truths found{};
        for (int a = 0; a < job_.n_opening; ++a) {
            const int32_t variable = job_.opening[a].node->variable;
            for (int b = 0; b < a; ++b)
                if (job_.opening[b].node->variable == variable) found |= opens_[a] & opens_[b];
            for (int b = 0; b < job_.n_closing; ++b)
                if (job_.closing[b].node->variable == variable) found |= opens_[a] & closes_[b] & corner_.together();
        }
        for (int a = 0; a < job_.n_closing; ++a)
            for (int b = 0; b < a; ++b)
                if (job_.closing[a].node->variable == job_.closing[b].node->variable) found |= closes_[a] & closes_[b];
        return any(found);
    }

    static bool any(const Truths& truths) {
        int64_t out = 0;
        for (size_t i = 0; i < N; ++i) out |= truths[i];
        return out != 0;
    }

    // False if a variable has two splits at one corner; without a corner this is impossible.
    bool share() {
        Truths u{}, v{};
        for (int d = 0; d < job_.n_opening; ++d) u -= opens_[d];
        for (int d = 0; d < job_.n_closing; ++d) v -= closes_[d];
        if (job_.repeats && any((u > 1) | (v > 1) | ((u > 0) & (v > 0) & corner_.together())) && meets_itself())
            return false;
        Numbers past, before;
        corner_.share(job_.shares, u, v, weight_, past, before);
        if (job_.line) multiply(past, before);
        for (int d = 0; d < job_.n_opening; ++d) opening_mass_[d] += opens_[d] ? past : Numbers{};
        for (int d = 0; d < job_.n_closing; ++d) closing_mass_[d] += closes_[d] ? before : Numbers{};
        return true;
    }

    // The shares of a linear leaf: of its value where it is entered and left. The credit of its columns in between is
    // accumulated.
    void multiply(Numbers& past, Numbers& before) {
        Numbers entered, left, length;
        corner_.times(entered, left);
        corner_.where_met(weight_ * (left - entered), length);
        Numbers at_start = Numbers{} + job_.constant, way{};
        for (int c = 0; c < job_.n_columns; ++c) {
            LeafColumn& column = job_.columns[c];
            Numbers from;
            for (size_t i = 0; i < N; ++i) from[i] = column.from[start_[i]];
            const Numbers move = column.to - from;
            at_start += column.factor * from;
            way += column.factor * move;
            const Numbers mass = length * move;
            for (size_t i = 0; i < N; ++i) column.mass[i] += mass[i];
        }
        past *= at_start + entered * way;
        before *= at_start + left * way;
    }

    void tell() const {
        for (int d = 0; d < job_.n_opening; ++d) job_.opening[d].mass += sum(opening_mass_[d]);
        for (int d = 0; d < job_.n_closing; ++d) job_.closing[d].mass += sum(closing_mass_[d]);
    }

    static double sum(const Numbers& x) {
        double out = x[0];
        for (size_t i = 1; i < N; ++i) out += x[i];
        return out;
    }
};

}  // namespace
}  // namespace gigrad
