// What a vector walk does at a leaf, and the state that it keeps on the way there; see lanes_walk.hpp.
#pragma once

#include "lanes.hpp"

namespace gigrad {
namespace {

template <class Isa>
class LaneLeaves {
  public:
    static constexpr int LANES = Isa::LANES;
    using Vec = typename Isa::Vec;
    using Mask = typename Isa::Mask;

    struct Frame {
        int32_t node;
        int depth;
        uint64_t alive;    // vectors with a lane whose path meets the node
        Turn turn;         // the last turn on the way here, and the vectors for which it was to the end's side
        uint64_t to_end;
    };

    LaneWalkJob& job_;
    const Vec doubt_ = Isa::all(CODE_DOUBT);
    const int n_vectors_;
    uint64_t row_mask_[MAX_VECTORS];
    uint8_t row_of_[MAX_VECTORS];
    uint16_t start_of_[MAX_VECTORS];  // first start of each vector
    double sign_[MAX_TURNS][MAX_VECTORS];  // of each row, where a turn opens (+) or closes (-) what is below it
    LaneSet unclear_[MAX_VECTORS + 1];
    int n_unclear_ = 0;

    explicit LaneLeaves(LaneWalkJob& job) : job_(job), n_vectors_(job.n_rows * job.row_vectors) {
        for (int r = 0; r < job.n_rows; ++r) {
            row_mask_[r] = first_bits(job.row_vectors) << (r * job.row_vectors);
            for (int v = 0; v < job.row_vectors; ++v) {
                row_of_[r * job.row_vectors + v] = static_cast<uint8_t>(r);
                start_of_[r * job.row_vectors + v] = static_cast<uint16_t>(v * LANES);
            }
        }
    }

    static uint64_t first_bits(int n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }
    static int lowest(uint64_t bits) { return __builtin_ctzll(bits); }
    // Where the codes lie. The odd steps keep addresses from meeting in their lowest twelve bits, where a processor
    // takes a load for the echo of a store.
    static constexpr std::ptrdiff_t HI = MAX_VECTORS * LANES + 2 * LANES, SLOT = 2 * HI + 2 * LANES;
    static_assert(SLOT <= SLOT_CODES * LANES, "the state is too small");
    int16_t* lo(int slot) const { return job_.state + slot * SLOT; }
    int16_t* hi(int slot) const { return lo(slot) + HI; }
    Mask open(Vec low, Vec high) const { return Isa::more(Isa::plus(high, doubt_), low); }

    // Lanes whose path is inside the leaf from one turn to another beyond doubt, and the turns.
    struct Inside {
        Mask clear;
        Vec in, out;  // backwards: `in` closes the leaf, `out` opens it
        uint32_t unclear;
    };

    Inside inside(int slot, int v) const {
        const Vec low = Isa::load(lo(slot) + v * LANES), high = Isa::load(hi(slot) + v * LANES);
        const Vec turn = Isa::all(TURN_MASK), unknown = Isa::all(TURN_DOUBT);
        const Vec in = Isa::both(low, turn), out = Isa::both(high, turn);
        const Mask tied = Isa::either(Isa::same(in, unknown), Isa::same(out, unknown));
        const Mask clear = Isa::without(Isa::more(Isa::minus(high, low), doubt_), tied);
        const Mask unclear = Isa::without(open(low, high), clear);
        return {clear, in, out, Isa::any(unclear) ? Isa::bits(unclear) : 0};
    }

    void shared_leaf(const Frame& frame, const Node& leaf, int slot) {
        size_t column[MAX_TURNS];
        find_columns(frame.depth, column);
        const double* value = job_.values + leaf.value;
        n_unclear_ = 0;
        for (uint64_t rest = frame.alive; rest;) {
            const int row = row_of_[lowest(rest)];
            const uint64_t mine = rest & row_mask_[row];
            rest &= ~mine;
            double mass[MAX_TURNS + 2];
            if (job_.weight_sums)
                weigh(frame.depth, slot, mine, mass);
            else if (frame.depth <= 8)
                count<1>(slot, mine, mass);
            else
                count<2>(slot, mine, mass);
            double* credit = job_.credit + static_cast<size_t>(row) * job_.credit_step;
            if (job_.width == 1)
                for (int d = 0; d < frame.depth; ++d) credit[column[d]] += mass[d] * sign_[d][row] * *value;
            else
                for (int d = 0; d < frame.depth; ++d)
                    for (size_t k = 0; k < job_.width; ++k) credit[column[d] + k] += mass[d] * sign_[d][row] * value[k];
        }
        settle_unclear(frame);
    }

    void find_columns(int depth, size_t* column) const {
        for (int d = 0; d < depth; ++d) column[d] = static_cast<size_t>(job_.nodes[job_.path[d].node].variable) * job_.outputs + job_.first;
    }

    // Set aside while the lanes that are clear are counted: a call in that loop would cost all of its registers.
    void note_unclear(int v, uint32_t lanes) {
        unclear_[n_unclear_] = {v, lanes};
        n_unclear_ += lanes != 0;
    }
    void settle_unclear(const Frame& frame) {
        if (n_unclear_) job_.calls.exact(job_, frame.node, frame.depth, unclear_, n_unclear_);
    }

    // Weight of the lanes that enter or leave by each turn. A turn to the end's side can only open the leaf and any
    // other only close it, so the two need not be told apart here.
    template <int EIGHTS>
    void count(int slot, uint64_t vectors, double* mass) {
        typename Isa::Tally first = Isa::tally(0), second = Isa::tally(8);
        for (; vectors; vectors &= vectors - 1) {
            const int v = lowest(vectors);
            const Inside in = inside(slot, v);
            note_unclear(v, in.unclear);
            Isa::add(first, in.in, in.out, in.clear);
            if (EIGHTS > 1) Isa::add(second, in.in, in.out, in.clear);
        }
        int n[8 * EIGHTS];
        Isa::read(first, n);
        if (EIGHTS > 1) Isa::read(second, n + 8 * (EIGHTS - 1));
        for (int d = 0; d < 8 * EIGHTS; ++d) mass[d] = n[d] * job_.weight;
    }

    void weigh(int depth, int slot, uint64_t vectors, double* mass) {
        for (int d = 0; d < depth; ++d) mass[d] = 0.0;
        for (; vectors; vectors &= vectors - 1) {
            const int v = lowest(vectors);
            const Inside in = inside(slot, v);
            note_unclear(v, in.unclear);
            const double* sums = job_.weight_sums + static_cast<size_t>(start_of_[v]) / 8 * 256;
            const Vec never = Isa::all(-1), entering = Isa::choose(in.clear, in.in, never), leaving = Isa::choose(in.clear, in.out, never);
            for (int d = 0; d < depth; ++d) {
                const Vec turn = Isa::all(static_cast<int16_t>(d));
                const uint32_t lanes = Isa::bits(Isa::either(Isa::same(entering, turn), Isa::same(leaving, turn)));
                for (int b = 0; b < LANES / 8; ++b) mass[d] += sums[b * 256 + (lanes >> 8 * b & 255)];
            }
        }
    }

    void pairs_leaf(const Frame& frame, const Node& leaf, int slot) {
        size_t column[16];
        find_columns(frame.depth, column);
        column[TURN_NONE] = job_.nobody;  // a column like the others: whether a path ends here is no branch
        const double* const value = job_.values + leaf.value;
        const double number = *value;
        const size_t width = job_.width, step = job_.credit_step;
        const Vec none = Isa::all(TURN_NONE);
        n_unclear_ = 0;
        for (uint64_t rest = frame.alive; rest; rest &= rest - 1) {
            const int v = lowest(rest);
            const Inside in = inside(slot, v);
            note_unclear(v, in.unclear);
            int16_t closes[LANES], opens[LANES];
            Isa::store(closes, in.in);
            Isa::store(opens, in.out);
            double* const credit = job_.credit + static_cast<size_t>(v * LANES) * step;
            const Mask changes = Isa::without(in.clear, Isa::same(Isa::both(in.in, in.out), none));  // no path of one leaf
            for (uint32_t lanes = Isa::bits(changes); lanes; lanes &= lanes - 1) {
                const auto lane = static_cast<size_t>(lowest(lanes));
                double *opened = credit + lane * step + column[opens[lane]], *closed = credit + lane * step + column[closes[lane]];
                if (width == 1) {
                    *opened += number;
                    *closed -= number;
                } else {
                    for (size_t k = 0; k < width; ++k) opened[k] += value[k], closed[k] -= value[k];
                }
            }
        }
        settle_unclear(frame);
    }

    void visit_leaf(const Frame& frame, const Node& leaf, int slot) {
        int32_t split[16];
        for (int d = 0; d < frame.depth; ++d) split[d] = job_.split_ids[job_.path[d].node];
        split[TURN_NONE] = job_.no_split;
        VisitValue gives;
        if (job_.outputs == 1)
            gives.number = job_.values[leaf.value];
        else
            gives.place = {leaf.value, job_.tree};
        const Vec none = Isa::all(TURN_NONE);
        n_unclear_ = 0;
        for (uint64_t rest = frame.alive; rest; rest &= rest - 1) {
            const int v = lowest(rest);
            const Inside in = inside(slot, v);
            note_unclear(v, in.unclear);
            int16_t closes[LANES], opens[LANES];
            Isa::store(closes, in.in);
            Isa::store(opens, in.out);
            const Mask changes = Isa::without(in.clear, Isa::same(Isa::both(in.in, in.out), none));  // no path of one leaf
            for (uint32_t lanes = Isa::bits(changes); lanes; lanes &= lanes - 1) {
                const int lane = lowest(lanes);
                Visits& visits = job_.visits[v * LANES + lane];
                if (visits.next == visits.end) job_.calls.grow(job_, static_cast<size_t>(v * LANES + lane));
                *visits.next++ = {split[opens[lane]], split[closes[lane]], gives};
            }
        }
        settle_unclear(frame);
    }
};

}  // namespace
}  // namespace gigrad
