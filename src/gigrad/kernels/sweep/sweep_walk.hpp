// The sweep, written once for every instruction set. Include it only where that set may be used: everything here stays
// inside the including file.
//
// Level by level, every part of the path moves to one child, in place. Only if the path crosses the split between
// entering and leaving the node is there a second part, which is appended to the list.
#pragma once

#include <cstring>

#include "sweep/sweep.hpp"
#include "limits.hpp"

namespace gigrad {
namespace {

template <class Isa>
class Sweep {
public:
    static void run(SweepJob& job) { Sweep(job).all_levels(); }

private:
    static constexpr size_t LANES = Isa::LANES;
    using Vec = typename Isa::Vec;

    SweepJob& job_;
    size_t n_, n_extra_ = 0, n_leaf_ = 0;  // parts; those that a level adds; those that are leaves

    explicit Sweep(SweepJob& job) : job_(job), n_(job.n_trees) {}

    // One part begins at each root, with the whole path; every level takes all parts to a child, and those whose path
    // crosses the test inside them to both.
    void all_levels() {
        job_.n_leaves = 0;
        for (size_t t = 0; t < n_; ++t) {
            job_.parts.place[t] = job_.roots[t];
            job_.parts.lo[t] = sweep_key(SWEEP_FIRST, job_.none);
            job_.parts.hi[t] = sweep_key(SWEEP_LAST, job_.none);
        }
        for (;;) {
            level();
            append(job_.parts, n_, job_.extra, n_extra_);
            if (n_leaf_ == n_) break;
            // Finished leaves stay in the list, which costs less than removing them, unless there are many.
            if (4 * n_leaf_ > n_) set_leaves_aside();
        }
        append(job_.leaves, job_.n_leaves, job_.parts, n_);
        tell_apart();
    }

    // Unambiguous leaves, with the tests that open and close them in place of keys; and ambiguous ones.
    void tell_apart() {
        const SweepParts leaves = job_.leaves;
        const Vec doubt = Isa::all(SWEEP_DOUBT), test = Isa::all(SWEEP_TEST), sign = Isa::all(SWEEP_LEAF);
        const Vec none = Isa::all(job_.none), starts = Isa::numbers(), ends = Isa::plus(starts, Isa::all(SWEEP_STARTS));
        static_assert(LANES == SWEEP_STARTS, "every lane has a number of its own");
        size_t clear = 0, unclear = 0;
        for (size_t i = 0, n = job_.n_leaves; i < n; i += LANES) {
            const Vec place = Isa::less_bits(Isa::load(leaves.place + i), sign), lo = Isa::load(leaves.lo + i),
                      hi = Isa::load(leaves.hi + i);
            const Vec opens = Isa::both(lo, test), closes = Isa::both(hi, test);
            const Vec known = Isa::both(Isa::both(Isa::more(test, opens), Isa::more(test, closes)),
                                        Isa::more(hi, Isa::plus(lo, doubt)));
            const uint32_t there = lanes_of(n - i), good = Isa::bits(known) & there;
            store_some(leaves, clear, place, Isa::plus(opens, Isa::both(Isa::same(opens, none), starts)),
                       Isa::plus(closes, Isa::both(Isa::same(closes, none), ends)), good);
            if (good != there) store_some(job_.extra, unclear, place, lo, hi, there & ~good);
        }
        job_.n_leaves = clear;
        job_.n_unclear = unclear;
    }

    // Takes all parts one node down, in batches.
    void level() {
        fill_up();
        n_extra_ = n_leaf_ = 0;
        for (size_t i = 0; i < n_; i += FETCHED) {
            const size_t n = n_ - i < FETCHED ? (n_ - i + LANES - 1) / LANES * LANES : FETCHED;
            fetch(i, n);
            go_on(i, n);
        }
        n_leaf_ -= (LANES - n_ % LANES) % LANES;  // those that fill up are leaves
    }

    // Nodes and codes are scattered in memory: a short loop that only loads them has many loads in flight.
    static constexpr size_t FETCHED = FETCHED_GROUPS * LANES;
    alignas(64) int32_t node_[FETCHED];
    alignas(64) int32_t key_[FETCHED];

    // Loads the node of each part, and the key of its test.
    void fetch(size_t begin, size_t n) {
        const int32_t* const place = job_.parts.place + begin;
        const uint32_t* const nodes = job_.nodes;
        const int16_t* const codes = job_.codes;
        const auto one = [&](size_t i) {
            const auto at = static_cast<uint32_t>(place[i]);
            const uint32_t node = nodes[at & ~static_cast<uint32_t>(SWEEP_LEAF)], test = node & SWEEP_TEST;
            node_[i] = static_cast<int32_t>(node);
            key_[i] = sweep_key(codes[test], static_cast<int32_t>(test));
        };
        for (size_t i = 0; i < n; i += LANES)
            for (size_t lane = 0; lane < LANES; ++lane) one(i + lane);
    }

    // Moves each part to the child that its path enters first ("near"), unless the part begins after that crossing, then
    // to the other ("far"); a part with both continues in the near one, and its rest is added to `extra`.
    void go_on(size_t begin, size_t n) {
        const SweepParts extra = job_.extra,
                         parts{job_.parts.place + begin, job_.parts.lo + begin, job_.parts.hi + begin};
        const Vec doubt = Isa::all(SWEEP_DOUBT), test = Isa::all(SWEEP_TEST), one = Isa::all(1),
                  sign = Isa::all(SWEEP_LEAF);
        const Vec offset = Isa::all(SWEEP_MAX_OFFSET);
        size_t n_extra = n_extra_, n_leaf = n_leaf_;
        for (size_t i = 0; i < n; i += LANES) {
            const Vec place = Isa::less_bits(Isa::load(parts.place + i), sign), lo = Isa::load(parts.lo + i),
                      hi = Isa::load(parts.hi + i);
            const Vec node = Isa::load(node_ + i), key = Isa::load(key_ + i);
            const Vec side = Isa::both(Isa::template down<SWEEP_CODE_SHIFT>(key), one), other = Isa::minus(one, side);
            const Vec left = Isa::plus(place, Isa::both(Isa::template down<SWEEP_OFFSET_SHIFT>(node), offset));
            const Vec near = Isa::either(Isa::plus(left, side), Isa::both(Isa::up(node, side), sign));
            const Vec far = Isa::either(Isa::plus(left, other), Isa::both(Isa::up(node, other), sign));
            Vec near_hi = Isa::least(hi, key), far_lo = Isa::largest(lo, key);
            const Vec later = Isa::plus(key, doubt), is_near = Isa::more(later, lo),
                      is_far = Isa::more(Isa::plus(hi, doubt), key);
            const Vec close_hi = Isa::both(is_far, Isa::more(later, hi)),
                      close_lo = Isa::both(is_near, Isa::more(Isa::plus(lo, doubt), key));
            if (Isa::bits(Isa::either(close_hi, close_lo))) {  // the test of such a key is not known
                near_hi = Isa::either(near_hi, Isa::both(close_hi, test));
                far_lo = Isa::either(far_lo, Isa::both(close_lo, test));
            }
            const uint32_t parting = Isa::bits(Isa::both(is_near, is_far));
            const Vec next = Isa::choose(is_near, near, far);
            store_some(extra, n_extra, far, far_lo, hi, parting);
            Isa::store(parts.place + i, next);
            Isa::store(parts.hi + i, Isa::choose(is_near, near_hi, hi));
            n_leaf += count(Isa::bits(next)) + count(Isa::bits(far) & parting);
        }
        n_extra_ = n_extra;
        n_leaf_ = n_leaf;
    }

    static size_t count(uint32_t bits) { return static_cast<size_t>(__builtin_popcount(bits)); }

    // The first n of a vector's lanes.
    static uint32_t lanes_of(size_t n) { return n >= LANES ? (1u << LANES) - 1 : (1u << n) - 1; }

    // Pads to a whole vector with leaves that no path reaches.
    void fill_up() {
        for (size_t i = n_; i % LANES; ++i) {
            job_.parts.place[i] = SWEEP_LEAF;  // node 0 is such a leaf
            job_.parts.lo[i] = sweep_key(SWEEP_LAST, job_.none);
            job_.parts.hi[i] = sweep_key(SWEEP_FIRST, job_.none);
        }
    }

    // Moves the parts that have reached a leaf to the result.
    void set_leaves_aside() {
        size_t kept = 0, found = job_.n_leaves;
        for (size_t i = 0; i < n_; i += LANES) {
            const Vec place = Isa::load(job_.parts.place + i), lo = Isa::load(job_.parts.lo + i),
                      hi = Isa::load(job_.parts.hi + i);
            const uint32_t there = lanes_of(n_ - i), leaf = Isa::bits(place) & there;
            store_some(job_.leaves, found, place, lo, hi, leaf);
            store_some(job_.parts, kept, place, lo, hi, there & ~leaf);
        }
        n_ = kept;
        job_.n_leaves = found;
    }

    // Compacts the parts in some lanes; up to a whole vector is overwritten.
    static void store_some(const SweepParts& to, size_t& at, Vec place, Vec lo, Vec hi, uint32_t lanes) {
        const typename Isa::Order together = Isa::together(lanes);
        Isa::store(to.place + at, Isa::arrange(place, together));
        Isa::store(to.lo + at, Isa::arrange(lo, together));
        Isa::store(to.hi + at, Isa::arrange(hi, together));
        at += count(lanes);
    }

    static void append(const SweepParts& to, size_t& at, const SweepParts& from, size_t n) {
        std::memcpy(to.place + at, from.place, n * sizeof(int32_t));
        std::memcpy(to.lo + at, from.lo, n * sizeof(int32_t));
        std::memcpy(to.hi + at, from.hi, n * sizeof(int32_t));
        at += n;
    }
};

}  // namespace
}  // namespace gigrad
