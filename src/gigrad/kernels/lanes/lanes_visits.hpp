// The vector walk at a leaf where jumps are needed and not only their sum: the lists of visits; see lanes_walk.hpp.
#pragma once

#include <algorithm>

#include "lanes/lanes_leaves.hpp"

namespace gigrad {
namespace {

template <class Isa>
class LaneVisits : public LaneLeaves<Isa> {
public:
    using Base = LaneLeaves<Isa>;
    using Base::LANES, Base::WORD, Base::job_, Base::row_mask_, Base::row_of_, Base::sign_, Base::jumping_,
        Base::joint_, Base::halved_, Base::n_unclear_;
    using Base::lo, Base::hi, Base::lowest, Base::find_joint, Base::turns_of_row, Base::crossed_at_half,
        Base::variable_at, Base::note_unclear, Base::settle_unclear;
    using typename Base::Frame;
    using typename Base::Halves;
    using typename Base::Inside;
    using typename Base::Jumping;
    using typename Base::Mask;
    using typename Base::Vec;

    explicit LaneVisits(LaneWalkJob& job) : Base(job) {}

    // What a leaf adds to the lists of visits.
    struct Visited {
        int32_t split[16];  // by turn
        VisitValue gives;
        int32_t value;
    };

    template <bool JOINED>
    void visit_leaf(const Frame& frame, const Node& leaf, int slot) {
        Visited visited;
        for (int d = 0; d < frame.depth; ++d) visited.split[d] = job_.split_ids[job_.path[d].node];
        visited.split[TURN_NONE] = job_.no_split;
        visited.value = leaf.value;
        if (job_.outputs == 1)
            visited.gives.number = job_.values[leaf.value];
        else
            visited.gives.place = {leaf.value, job_.tree};
        n_unclear_ = 0;
        if (!JOINED) {
            visit_vectors<Halves::NONE>(slot, frame.alive, visited);
        } else {
            const Jumping jumping = jumping_[frame.depth];
            find_joint(jumping.all);
            for (uint64_t rest = frame.alive; rest;) {
                const int row = row_of_[lowest(rest)];
                const uint64_t mine = rest & row_mask_[row];
                rest &= ~mine;
                if (jumping.by_ends) find_joint(jumping.all | turns_of_row(jumping.by_ends, row));
                if (joint_.n == 0) {
                    visit_vectors<Halves::NONE>(slot, mine, visited);
                } else if (joint_.n == 1) {
                    visit_vectors<Halves::ONE>(slot, mine, visited);
                } else {
                    visit_vectors<Halves::MANY>(slot, mine, visited);
                    visit_halves(slot, row, visited);
                }
            }
        }
        settle_unclear(frame);
    }

    // The lanes of some vectors that enter and leave the leaf by single turns.
    template <Halves HALVES>
    void visit_vectors(int slot, uint64_t vectors, const Visited& visited) {
        const Vec none = Isa::all(TURN_NONE), half = Isa::all(TURN_AT_ONCE);
        for (; vectors; vectors &= vectors - 1) {
            const int v = lowest(vectors);
            const Inside in = this->template inside<HALVES>(slot, v);
            note_unclear(v, in.unclear);
            int16_t closes[LANES], opens[LANES];
            Isa::store(closes, in.in);
            Isa::store(opens, in.out);
            Mask changes = Isa::without(in.clear, Isa::same(Isa::both(in.in, in.out), none));  // no path of one leaf
            if (HALVES == Halves::MANY)
                changes = Isa::without(changes, Isa::either(Isa::same(in.in, half), Isa::same(in.out, half)));
            for (uint32_t lanes = Isa::bits(changes); lanes; lanes &= lanes - 1) {
                const int lane = lowest(lanes);
                add_visit(static_cast<size_t>(v * LANES + lane), visited.split[opens[lane]],
                          visited.split[closes[lane]], visited.gives);
            }
        }
    }

    void add_visit(size_t lane, int32_t opens, int32_t closes, VisitValue gives) {
        Visits& visits = job_.visits[lane];
        if (visits.next == visits.end) job_.calls.grow(job_, lane);
        *visits.next++ = {opens, closes, gives};
    }

    // The lanes of a row that enter or leave the leaf at one half, as TraceSink::corner would: bits of starts identify
    // the variables.
    void visit_halves(int slot, int row, const Visited& visited) {
        for (int w = 0; w * WORD < job_.row_vectors; ++w) {
            uint64_t lanes = halved_[w], crossed[MAX_TURNS];
            halved_[w] = 0;
            if (lanes == 0) continue;
            for (int i = 0; i < joint_.n; ++i) crossed[i] = crossed_at_half(i, row, w);
            while (lanes) {
                const int first = lowest(lanes);
                uint64_t alike = lanes;  // lanes that cross at one half where the first does
                for (int i = 0; i < joint_.n; ++i) alike &= crossed[i] >> first & 1 ? crossed[i] : ~crossed[i];
                lanes &= ~alike;
                visit_alike(slot, row, w, alike, crossed, visited);
            }
        }
    }

    void visit_alike(int slot, int row, int w, uint64_t lanes, const uint64_t* crossed, const Visited& visited) {
        int32_t opening[2 * MAX_TURNS], closing[MAX_TURNS];
        uint32_t opened = 0, closed = 0, n_past = 0, n_before = 0;  // the first two: bits of places
        int32_t opens = job_.no_split, closes = job_.no_split;      // where a single variable does
        for (int i = 0; i < joint_.n; ++i) {
            if (!(crossed[i] & lanes)) continue;
            const int d = joint_.turn[i];
            const uint32_t mine = uint32_t{1} << joint_.place[i];
            const bool to_end = sign_[d][row] > 0.0;
            if ((to_end ? opened : closed) & mine) continue;
            (to_end ? opened : closed) |= mine;
            (to_end ? opening[n_past++] : closing[n_before++]) = variable_at(d);
            int32_t& split = to_end ? opens : closes;
            split = (to_end ? n_past : n_before) == 1 ? visited.split[d] : job_.no_split;
        }
        if (opened & closed) return;  // no variable is both past and before
        std::copy_n(closing, n_before, opening + n_past);
        uint32_t both = NO_CORNER, past = NO_CORNER, before = NO_CORNER;  // numbers of the leaf
        for (; lanes; lanes &= lanes - 1) {
            const size_t at = static_cast<size_t>(row * job_.row_vectors * LANES + w * 64 + lowest(lanes));
            const int16_t low = lo(slot)[at], high = hi(slot)[at];
            if (low == high) {
                add_corner(at, both, visited.value, opening, n_past, n_before);
                continue;
            }
            const int32_t closes_here = low != CODE_AT_ONCE ? visited.split[low & TURN_MASK] : closes;
            const int32_t opens_here = high != CODE_AT_ONCE ? visited.split[high & TURN_MASK] : opens;
            if (opens_here != closes_here) add_visit(at, opens_here, closes_here, visited.gives);
            if (n_past > 1) add_corner(at, past, visited.value, opening, n_past, 0);
            if (n_before > 1) add_corner(at, before, visited.value, closing, 0, n_before);
        }
    }

    // A leaf at a corner, which has a number from its first lane on.
    static constexpr uint32_t NO_CORNER = ~uint32_t{0};
    void add_corner(size_t lane, uint32_t& number, int32_t value, const int32_t* members, uint32_t n_past,
                    uint32_t n_before) {
        if (number == NO_CORNER) number = job_.calls.corner(job_, value, members, n_past, n_before);
        CornerNumbers& corners = job_.corners[lane];
        if (corners.next == corners.end) job_.calls.grow_corners(job_, lane);
        *corners.next++ = number;
    }
};

}  // namespace
}  // namespace gigrad
