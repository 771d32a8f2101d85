// The credit of ambiguous leaves for the variables that open and close them, for one pair: exact, several leaves at a
// time. Written once for every instruction set, like the sweep; the plain version is LeafCorner, leaf by leaf.
#pragma once

#include "lanes/corner_lanes.hpp"

namespace gigrad {
namespace {

class SweepSharing {
public:
    static void run(SweepCorners& job) {
        SweepSharing me(job);
        job.n_odd = 0;
        for (size_t begin = 0; begin < job.n; begin += GROUP) {
            const size_t n = job.n - begin < GROUP ? job.n - begin : GROUP;
            for (size_t i = 0; i < n; ++i) me.find_crossings(i, job.leaves[begin + i]);
            for (size_t i = n; i < GROUP; ++i) me.set_nobody(i);
            for (size_t i = 0; i < GROUP; i += N) me.share(i);
            me.tell(n);
        }
    }

private:
    static constexpr size_t N = CornerLanes::N,
                            GROUP = 4 * N;  // leaves whose branches are found before any credit is computed
    using Numbers = CornerLanes::Numbers;
    using Truths = CornerLanes::Truths;
    static constexpr double BEFORE_ALL = CornerLanes::BEFORE_ALL, AFTER_ALL = CornerLanes::AFTER_ALL;

    SweepCorners& job_;
    const size_t depth_;
    alignas(64) double opened_[SWEEP_CORNER_DEPTH + 1][GROUP], closed_[SWEEP_CORNER_DEPTH + 1][GROUP], value_[GROUP];
    alignas(64) double mass_[SWEEP_CORNER_DEPTH][GROUP];
    int32_t variable_[SWEEP_CORNER_DEPTH + 1][GROUP];

    explicit SweepSharing(SweepCorners& job) : job_(job), depth_(job.depth) {}

    void set_none(size_t d, size_t i) { opened_[d][i] = BEFORE_ALL, closed_[d][i] = AFTER_ALL, variable_[d][i] = 0; }

    void set_nobody(size_t i) {
        for (size_t d = 0; d < depth_; ++d) set_none(d, i);
        value_[i] = 0.0;
    }

    // All crossings on the path to a leaf. Entries that are not crossed are overwritten.
    void find_crossings(size_t i, int32_t leaf) {
        const SweepWay& way = job_.ways[job_.way_of[leaf]];
        size_t n = 0;
        uint64_t seen = 0, twice = 0;
        for (size_t d = 0; d < depth_; ++d) set_none(d, i);
        for (size_t d = 0; d < depth_; ++d) {
            const size_t test = way.test[d];
            const int16_t code = job_.codes[test];
            const bool crossed = (code >= SWEEP_FIRST) & (code <= SWEEP_LAST), start_left = (code & 1) == 0;
            const bool to_end = static_cast<bool>(way.left >> d & 1) != start_left;
            const int32_t variable = job_.variable_of[test];
            const double time = job_.times[test];
            // Looked up, because compilers turn conditionals into an unpredictable branch: 15.0 us a pair, not 18.0, with
            // 300 trees of depth 6 and half of the columns binary.
            const double opened[2] = {BEFORE_ALL, time}, closed[2] = {time, AFTER_ALL};
            opened_[n][i] = opened[to_end];
            closed_[n][i] = closed[to_end];
            variable_[n][i] = variable;
            const uint64_t me = static_cast<uint64_t>(crossed) << (variable & 63);
            twice |= seen & me;
            seen |= me;
            n += crossed;
        }
        set_none(n, i);
        value_[i] = twice ? 0.0 : job_.weight * job_.gives[leaf].number;
        job_.odd[job_.n_odd] = leaf;
        job_.n_odd += twice != 0;  // a variable with two splits must count once
    }

    static Numbers& at(double* row, size_t i) { return *reinterpret_cast<Numbers*>(row + i); }

    // The contributions of leaves i to i + N - 1 to the variables on their paths.
    void share(size_t i) {
        CornerLanes corner;
        corner.clear();
        for (size_t d = 0; d < depth_; ++d) {
            corner.open(at(opened_[d], i));
            corner.close(at(closed_[d], i));
        }
        corner.settle();
        Truths u{}, v{}, opens, closes;
        for (size_t d = 0; d < depth_; ++d) {
            corner.opens(at(opened_[d], i), opens);
            corner.closes(at(closed_[d], i), closes);
            u -= opens, v -= closes;
        }
        Numbers past, before;
        corner.share(job_.shares, u, v, at(value_, i), past, before);
        for (size_t d = 0; d < depth_; ++d) {
            corner.opens(at(opened_[d], i), opens);
            corner.closes(at(closed_[d], i), closes);
            at(mass_[d], i) = (opens ? past : Numbers{}) + (closes ? before : Numbers{});
        }
    }

    // Adds the contributions of the first n leaves to the credit, leaf by leaf: several may be of one variable.
    void tell(size_t n) const {
        for (size_t i = 0; i < n; ++i)
            for (size_t d = 0; d < depth_; ++d) job_.credit[variable_[d][i]] += mass_[d][i];
    }
};

}  // namespace
}  // namespace gigrad
