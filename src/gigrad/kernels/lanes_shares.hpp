// What a leaf gives to the turns that open and close it, for many starts of one end: exact, several starts at a time.
// Written once for every instruction set, like the walk; the plain version is SharedLeaf::add, start by start.
#pragma once

#include "lanes.hpp"

namespace gigrad {
namespace {

class LeafSharing {
  public:
    // False where a variable is asked twice at one corner, and must count once.
    static bool run(const LeafShares& job) {
        LeafSharing me(job);
        for (size_t begin = 0; begin < job.n; begin += N) {
            me.find_times(begin);
            me.find_last();
            if (job.repeats && me.meets_itself()) return false;
            me.share();
        }
        me.tell();
        return true;
    }

  private:
    static constexpr int N = 4;  // starts at a time
    // The compiler's own vectors: it knows how many of the machine's each takes.
    typedef double Numbers __attribute__((vector_size(8 * N)));
    typedef int64_t Truths __attribute__((vector_size(8 * N)));  // -1 or 0

    const LeafShares& job_;
    Numbers weight_, entered_, left_;
    Numbers opened_[MAX_TURNS], closed_[MAX_TURNS], opening_mass_[MAX_TURNS], closing_mass_[MAX_TURNS];
    Truths opens_[MAX_TURNS], closes_[MAX_TURNS], together_;

    explicit LeafSharing(const LeafShares& job) : job_(job) {
        for (int i = 0; i < job.n_opening; ++i) opening_mass_[i] = Numbers{};
        for (int i = 0; i < job.n_closing; ++i) closing_mass_[i] = Numbers{};
    }

    // A turn that a start does not cross was taken before the path began, if it opens; otherwise it never is.
    void find_times(size_t begin) {
        const auto there = static_cast<int>(job_.n - begin < N ? job_.n - begin : N);
        int32_t start[N];
        for (int i = 0; i < N; ++i) start[i] = job_.starts[begin + static_cast<size_t>(i < there ? i : 0)];
        for (int i = 0; i < N; ++i) weight_[i] = i < there ? job_.weights[start[i]] : 0.0;
        entered_ = Numbers{} - 1.0, left_ = Numbers{} + 2.0;
        for (int d = 0; d < job_.n_opening; ++d) {
            set_times(job_.opening[d], start, -1.0, opened_[d]);
            entered_ = opened_[d] > entered_ ? opened_[d] : entered_;
        }
        for (int d = 0; d < job_.n_closing; ++d) {
            set_times(job_.closing[d], start, -3.0, closed_[d]);
            left_ = closed_[d] < left_ ? closed_[d] : left_;
        }
    }

    static void set_times(const LeafTurn& turn, const int32_t* start, double stays, Numbers& out) {
        Numbers s;
        for (int i = 0; i < N; ++i) s[i] = turn.starts[start[i]];
        const Numbers time = (turn.threshold - s) / (turn.end - s), stay = Numbers{} + stays;
        const Truths left = s <= turn.threshold, from_left = Truths{} - turn.from_left;
        out = left == from_left ? time : stay;
    }

    // The turns that open the leaf last and close it first.
    void find_last() {
        Numbers late = entered_ - TIE, soon = left_ + TIE;
        late = late > 0.0 ? late : Numbers{};
        Truths u{}, v{};
        for (int d = 0; d < job_.n_opening; ++d) u |= opens_[d] = opened_[d] >= late;
        for (int d = 0; d < job_.n_closing; ++d) v |= closes_[d] = closed_[d] <= soon;
        together_ = u & v & (entered_ >= left_ - TIE);
        weight_ = entered_ <= soon ? weight_ : Numbers{};
    }

    bool meets_itself() const {
        Truths any{};
        for (int a = 0; a < job_.n_opening; ++a) {
            const int32_t variable = job_.opening[a].node->feature;
            for (int b = 0; b < a; ++b)
                if (job_.opening[b].node->feature == variable) any |= opens_[a] & opens_[b];
            for (int b = 0; b < job_.n_closing; ++b)
                if (job_.closing[b].node->feature == variable) any |= opens_[a] & closes_[b] & together_;
        }
        for (int a = 0; a < job_.n_closing; ++a)
            for (int b = 0; b < a; ++b)
                if (job_.closing[a].node->feature == job_.closing[b].node->feature) any |= closes_[a] & closes_[b];
        int64_t out = 0;
        for (int i = 0; i < N; ++i) out |= any[i];
        return out != 0;
    }

    void share() {
        Truths at = together_ & (1 << 8);
        for (int d = 0; d < job_.n_opening; ++d) at += opens_[d] & (1 << 4);
        for (int d = 0; d < job_.n_closing; ++d) at -= closes_[d];
        Numbers past, before;
        for (int i = 0; i < N; ++i) {
            const Shares& shares = job_.shares[at[i]];
            past[i] = shares.past;
            before[i] = shares.before;
        }
        past *= weight_, before *= weight_;
        for (int d = 0; d < job_.n_opening; ++d) opening_mass_[d] += opens_[d] ? past : Numbers{};
        for (int d = 0; d < job_.n_closing; ++d) closing_mass_[d] += closes_[d] ? before : Numbers{};
    }

    void tell() const {
        for (int d = 0; d < job_.n_opening; ++d) job_.opening[d].mass += sum(opening_mass_[d]);
        for (int d = 0; d < job_.n_closing; ++d) job_.closing[d].mass += sum(closing_mass_[d]);
    }

    static double sum(const Numbers& x) {
        double out = x[0];
        for (int i = 1; i < N; ++i) out += x[i];
        return out;
    }
};

}  // namespace
}  // namespace gigrad
