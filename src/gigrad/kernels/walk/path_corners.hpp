// The corners of paths through several sums of trees: their jumps joined in order of time, and the outputs in between.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "walk/jumps.hpp"

namespace gigrad {

// The lists of the jumps of one sum of trees, read from path to path.
class JumpReader {
public:
    explicit JumpReader(const std::vector<JumpList>& lists) : lists_(lists) {}

    // Goes to the next path.
    void next() {
        while (pair_ == lists_[list_].count.size()) ++list_, pair_ = 0, end_ = 0;
        at_ = end_, end_ += static_cast<size_t>(lists_[list_].count[pair_++]);
        peek();
    }

    double time() const { return time_; }  // of the next jump; infinite behind the last
    int32_t variable() const { return lists_[list_].variable[at_]; }
    const double* delta(size_t outputs) const { return &lists_[list_].delta[at_ * outputs]; }
    void step() { ++at_, peek(); }

private:
    const std::vector<JumpList>& lists_;
    size_t list_ = 0, pair_ = 0, at_ = 0, end_ = 0;
    double time_ = 0.0;

    void peek() { time_ = at_ < end_ ? lists_[list_].time[at_] : std::numeric_limits<double>::infinity(); }
};

// One sum of trees: its jumps, its outputs at the starts (paths, width), and where those in every state go to.
struct JoinedTrees {
    JumpReader jumps;
    size_t width;
    const double* start;
    double* states;  // (states, width)
};

// Where the corners of paths go to: for each its time, its first column among all, and whether a smooth part may jump.
struct PathCorners {
    int64_t* first;  // (paths + 1,) of each path
    double* time;
    int64_t *offsets, *column;
    bool* broken;
};

// Joins the jumps of all sums of trees and the columns that jump half-way (entries by path). Every path has one state
// more than corners: the start's, to which the jumps are added one by one.
inline void join_corners(std::vector<JoinedTrees>& trees, size_t paths, const int64_t* half_path,
                         const int64_t* half_column, size_t halves, const PathCorners& out) {
    size_t n = 0, entries = 0, half = 0;
    out.offsets[0] = 0;
    for (size_t path = 0; path < paths; ++path) {
        out.first[path] = static_cast<int64_t>(n);
        for (JoinedTrees& t : trees) {
            t.jumps.next();
            std::copy_n(t.start + path * t.width, t.width, t.states + (n + path) * t.width);
        }
        while (true) {
            const bool broken = half < halves && half_path[half] == static_cast<int64_t>(path);
            double time = broken ? 0.5 : std::numeric_limits<double>::infinity();
            for (const JoinedTrees& t : trees) time = std::min(time, t.jumps.time());
            if (time > 1.0) break;
            const size_t had = entries;
            for (JoinedTrees& t : trees) {
                double* to = t.states + (n + path + 1) * t.width;
                std::copy_n(to - t.width, t.width, to);
                for (; t.jumps.time() == time; t.jumps.step()) {
                    out.column[entries++] = t.jumps.variable();
                    const double* delta = t.jumps.delta(t.width);
                    for (size_t o = 0; o < t.width; ++o) to[o] += delta[o];
                }
            }
            out.broken[n] = broken && time == 0.5;
            for (; out.broken[n] && half < halves && half_path[half] == static_cast<int64_t>(path); ++half)
                out.column[entries++] = half_column[half];
            if (entries - had > 1) {
                std::sort(out.column + had, out.column + entries);
                entries = static_cast<size_t>(std::unique(out.column + had, out.column + entries) - out.column);
            }
            out.time[n] = time;
            out.offsets[++n] = static_cast<int64_t>(entries);
        }
    }
    out.first[paths] = static_cast<int64_t>(n);
}

}  // namespace gigrad
