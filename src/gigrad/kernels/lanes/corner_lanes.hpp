// The share of leaves, several at a time, one in each lane: LeafCorner's rule for paths on which no variable has two
// splits.
#pragma once

#include "lanes/lanes.hpp"

namespace gigrad {
namespace {

class CornerLanes {
public:
    static constexpr size_t N = 4;
    // The compiler's own vectors, which it maps to as many of the machine's as each takes.
    typedef double Numbers __attribute__((vector_size(8 * N)));
    typedef int64_t Truths __attribute__((vector_size(8 * N)));  // -1 or 0

    // Times of branches that are not crossed: one that was taken before the path began, or is still taken when it ends;
    // and one that is never taken.
    static constexpr double BEFORE_ALL = -1.0, AFTER_ALL = 2.0, NEVER = -3.0;

    // First `clear`, then all turns that may open the leaf and all that close it, then `settle`.
    void clear() { entered_ = Numbers{} + BEFORE_ALL, left_ = Numbers{} + AFTER_ALL; }
    void open(const Numbers& time) { entered_ = time > entered_ ? time : entered_; }
    void close(const Numbers& time) { left_ = time < left_ ? time : left_; }
    void settle() {
        late_ = entered_ > 0.0 ? entered_ : Numbers{};    // what was taken before opens nothing
        soon_ = left_ < LAST ? left_ : Numbers{} + LAST;  // what is taken to the end closes nothing
        together_ = entered_ == left_;
    }

    // Whether a turn is among the last to open the leaf, or among the first to close it.
    void opens(const Numbers& time, Truths& out) const { out = time >= late_; }
    void closes(const Numbers& time, Truths& out) const { out = time <= soon_; }

    // What each turn earns of `value`, where u of them open the leaf and v close it.
    void share(const Shares* table, const Truths& u, const Truths& v, const Numbers& value, Numbers& past,
               Numbers& before) const {
        const Truths place = (together_ & (u > 0) & (v > 0) & (1 << 8)) + (u << 4) + v;
        for (size_t lane = 0; lane < N; ++lane) {
            const Shares& shares = table[place[lane]];
            past[lane] = shares.past;
            before[lane] = shares.before;
        }
        Numbers met;
        where_met(value, met);
        past *= met, before *= met;
    }

    // Zero for a path that never meets the leaf, else `value`.
    void where_met(const Numbers& value, Numbers& out) const { out = entered_ <= left_ ? value : Numbers{}; }
    // When something opens the leaf, and when something closes it; 0 where nothing does.
    void times(Numbers& entered, Numbers& left) const {
        entered = late_;
        left = left_ < LAST ? left_ : Numbers{};
    }

    const Truths& together() const { return together_; }

private:
    static constexpr double LAST = 1.5;  // after every time, before AFTER_ALL
    Numbers entered_, left_, late_, soon_;
    Truths together_;
};

}  // namespace
}  // namespace gigrad
