// The vector walk, written once for every instruction set. Include it only where that set may be used: everything here
// stays inside the including file.
//
// At a node each lane holds two codes: `lo`, since when its path is inside (backwards: from the end), and `hi`, until
// when. A crossed split at code x leaves the child on the end's side the part below x, the other child the part above.
#pragma once

#include "lanes/lanes_visits.hpp"
#include "limits.hpp"

namespace gigrad {
namespace {

template <class Isa>
class LaneWalk : private LaneVisits<Isa> {
public:
    // All pairs of a row share their end: sides of ends are one for a row, and credit is summed over starts.
    static void population(LaneWalkJob& job) {
        if (job.at_once)
            LaneWalk(job).all_trees<true, true, &Base::template shared_leaf<true>>();
        else
            LaneWalk(job).all_trees<true, false, &Base::template shared_leaf<false>>();
    }
    static void pairs(LaneWalkJob& job) { LaneWalk(job).all_trees<false, false, &Base::pairs_leaf>(); }
    static void population_lines(LaneWalkJob& job) { LaneWalk(job).all_trees<true, false, &Base::line_leaf>(); }
    static void population_visits(LaneWalkJob& job) {
        if (job.at_once)
            LaneWalk(job).all_trees<true, true, &Base::template visit_leaf<true>>();
        else
            LaneWalk(job).all_trees<true, false, &Base::template visit_leaf<false>>();
    }
    static void pairs_visits(LaneWalkJob& job) {
        LaneWalk(job).all_trees<false, false, &Base::template visit_leaf<false>>();
    }

private:
    using Base = LaneVisits<Isa>;
    using Base::LANES, Base::HI, Base::SLOT, Base::job_, Base::doubt_, Base::n_vectors_, Base::row_mask_, Base::row_of_,
        Base::start_of_;
    using Base::note_unclear, Base::settle_unclear, Base::halves_, Base::jumping_;
    using Base::sign_, Base::to_end_, Base::n_unclear_, Base::lo, Base::hi, Base::open, Base::first_bits, Base::lowest;
    using typename Base::Frame;
    using typename Base::Mask;
    using typename Base::Vec;

    Frame stack_[MAX_TURNS + 2];
    alignas(64) int16_t start_sides_[MAX_VECTORS * LANES];
    alignas(64) int16_t end_sides_[MAX_VECTORS * LANES];

    explicit LaneWalk(LaneWalkJob& job) : Base(job) {}

    // JOINED: all crossings at one half are one branch in the walk, and are separated at the leaf.
    template <bool SHARED, bool JOINED, auto LEAF>
    void all_trees() {
        jumping_[0] = {0, 0, 0};
        for (size_t t = 0; t < job_.n_trees; ++t) {
            job_.between_trees();
            const bool vector_leaves = job_.tree_output[t] < 0;
            job_.first = vector_leaves ? 0 : static_cast<size_t>(job_.tree_output[t]);
            job_.width = vector_leaves ? job_.outputs : 1;
            job_.tree = static_cast<int32_t>(t);
            walk<SHARED, JOINED, LEAF>(job_.roots[t]);
        }
    }

    static void set_bit(uint32_t& bits, int at, bool on) {
        bits = (bits & ~(uint32_t{1} << at)) | static_cast<uint32_t>(on) << at;
    }

    template <bool SHARED, bool JOINED, auto LEAF>
    void walk(int32_t root) {
        for (int v = 0; v < n_vectors_; ++v) {
            Isa::store(lo(0) + v * LANES, Isa::load(job_.first_code + start_of_[v]));
            Isa::store(hi(0) + v * LANES, Isa::all(CODE_START));
        }
        int top = 0;
        stack_[top++] = {root, 0, first_bits(n_vectors_), {}, 0};
        while (top) {
            Frame frame = stack_[--top];
            if (frame.depth) {
                job_.path[frame.depth - 1] = frame.turn;
                if (SHARED)
                    for (int r = 0; r < job_.n_rows; ++r) {
                        const bool opens = frame.to_end & row_mask_[r];
                        sign_[frame.depth - 1][r] = opens ? 1.0 : -1.0;
                        if (JOINED) set_bit(to_end_[r], frame.depth - 1, opens);
                    }
            }
            const Node& node = job_.nodes[frame.node];
            if (node.is_leaf()) {
                (this->*LEAF)(frame, node, top);
                continue;
            }
            __builtin_prefetch(job_.nodes + node.left);
            __builtin_prefetch(job_.nodes + node.right);
            LaneColumn& column = job_.columns[node.feature];
            if (!column.ready) job_.calls.column(job_, node.feature);
            if (frame.depth == MAX_TURNS || column.rough)
                leave_to_exact(frame, top, frame.alive);
            else if (node.below >= FEW_BELOW)
                leave_to_exact(frame, top, lonely<SHARED>(frame.alive, top));
            if (frame.alive) top = split<SHARED, JOINED>(frame, node, column, top);
        }
    }

    // The few lanes that reach a large subtree: the exact walk takes over there.
    template <bool SHARED>
    uint64_t lonely(uint64_t alive, int slot) const {
        if (!SHARED) return __builtin_popcountll(alive) <= 2 ? alive : 0;
        uint64_t out = 0;
        for (uint64_t rest = alive; rest;) {  // row by row, so that a row's result does not depend on the other rows
            const uint64_t mine = rest & row_mask_[row_of_[lowest(rest)]];
            rest &= ~mine;
            if ((mine & (mine - 1)) == 0 && (job_.row_vectors > 1 || few_lanes(slot, lowest(mine)))) out |= mine;
        }
        return out;
    }

    // With few starts a row has one vector: the number of its remaining lanes is then decisive.
    bool few_lanes(int slot, int v) const {
        return __builtin_popcount(Isa::bits(open(Isa::load(lo(slot) + v * LANES), Isa::load(hi(slot) + v * LANES)))) <=
               FEW_LANES;
    }

    void leave_to_exact(Frame& frame, int slot, uint64_t leaving) {
        frame.alive &= ~leaving;
        n_unclear_ = 0;
        for (; leaving; leaving &= leaving - 1) {
            const int v = lowest(leaving);
            note_unclear(v, Isa::bits(open(Isa::load(lo(slot) + v * LANES), Isa::load(hi(slot) + v * LANES))));
        }
        settle_unclear(frame);
    }

    // Writes the left child's codes to the slot above, the right child's to the node's own, and returns the new top.
    template <bool SHARED, bool JOINED>
    int split(const Frame& frame, const Node& node, const LaneColumn& column, int slot) {
        const int16_t *start_rank = column.start_rank[node.missing_left],
                      *end_rank = column.end_rank[node.missing_left];
        int16_t last_left = 0;
        if (node.set >= 0) {
            job_.calls.category(job_, node, start_sides_, end_sides_);
            start_rank = start_sides_;
            end_rank = end_sides_;
        } else {
            last_left = column.last_left ? column.last_left[job_.split_ids[frame.node]]
                                         : static_cast<int16_t>(upper_bound(column, node.threshold) - 1);
        }
        uint64_t ends_left = 0, ends_jump = 0;
        float u[MAX_VECTORS];
        if (SHARED) ends_left = shared_ends<JOINED>(node, u, ends_jump);
        const bool by_starts = node.at_once || column.jumps, some = by_starts || (JOINED && ends_jump & frame.alive);
        if (JOINED) {
            if (some) set_half(halves_[frame.depth], start_rank, last_left, node.at_once ? nullptr : column.jumps);
            halves_[frame.depth].rows = node.at_once ? ~uint64_t{0} : ends_jump;
            halves_[frame.depth].ends_left = ends_left;
            const auto [all, by_ends, at_once] = jumping_[frame.depth];
            jumping_[frame.depth + 1] = {all | static_cast<uint32_t>(by_starts) << frame.depth,
                                         by_ends | static_cast<uint32_t>(some && !by_starts) << frame.depth,
                                         at_once | static_cast<uint32_t>(node.at_once) << frame.depth};
        }
        const auto go = [&](auto how) {
            constexpr Jumps JUMPS = decltype(how)::value;
            if constexpr (SHARED)
                return split_shared<JUMPS, JOINED>(frame, column, slot, start_rank, last_left, u, ends_left);
            else
                return split_pairs<JUMPS>(frame, node, column, slot, start_rank, end_rank, last_left);
        };
        const Alive alive = !some          ? go(How<Jumps::NONE>{})
                            : node.at_once ? go(How<Jumps::ALL>{})
                                           : go(How<Jumps::SOME>{});
        int top = slot;
        if (alive.right) stack_[top++] = {node.right, frame.depth + 1, alive.right, {frame.node, false}, ~ends_left};
        if (alive.left) {
            if (top == slot) move_down(slot, alive.left);
            stack_[top++] = {node.left, frame.depth + 1, alive.left, {frame.node, true}, ends_left};
        }
        return top;
    }

    void set_half(typename Base::Half& half, const int16_t* rank, int16_t last_left, const int16_t* jumps) const {
        for (int w = 0; w * Base::WORD < job_.row_vectors; ++w) half.right[w] = half.jumps[w] = 0;
        for (int v = 0; v < job_.row_vectors; ++v) {
            const int word = v / Base::WORD, shift = v % Base::WORD * LANES;
            half.right[word] |=
                static_cast<uint64_t>(Isa::bits(Isa::more(Isa::load(rank + v * LANES), Isa::all(last_left)))) << shift;
            if (jumps)
                half.jumps[word] |= static_cast<uint64_t>(Isa::bits(Isa::negative(Isa::load(jumps + v * LANES))))
                                    << shift;
        }
    }

    // Lanes that cross a split at one half.
    enum class Jumps { NONE, SOME, ALL };
    template <Jumps JUMPS>
    struct How {
        static constexpr Jumps value = JUMPS;
    };
    struct Alive {
        uint64_t left, right;
    };

    // How many of the column's distinct values go left; their places are below it.
    static int32_t upper_bound(const LaneColumn& column, double threshold) {
        const double* base = column.sorted;
        int32_t n = column.n_sorted;
        while (n > 0) {  // without branches that depend on the values
            const int32_t half = n / 2;
            const bool beyond = base[half] <= threshold;
            base += beyond ? half + 1 : 0;
            n = beyond ? n - half - 1 : half;
        }
        return static_cast<int32_t>(base - column.sorted);
    }

    // For each row u = e - place, and the vectors of rows whose end goes left; `jump`: whose end has no value between.
    template <bool JOINED>
    uint64_t shared_ends(const Node& node, float* u, uint64_t& jump) {
        uint64_t left = 0;
        const double* e = job_.ends + node.feature;
        for (int r = 0; r < job_.n_rows; ++r, e += job_.end_step) {
            const double way = *e - node.place;
            const bool finite = way - way == 0.0;
            const bool goes_left = node.set >= 0 ? end_sides_[r] == 0
                                   : *e != *e    ? node.missing_left
                                                 : *e <= node.threshold;
            u[r] = finite ? static_cast<float>(way)
                          : 0.5f;  // an end without a value between: every inverse is 1, at one half
            left |= goes_left ? row_mask_[r] : 0;
            if (JOINED && !finite) jump |= *e - *e == 0.0 ? 0 : row_mask_[r];
        }
        return left;
    }

    // When the lanes of vector v cross, if they do; `plain` gives the codes of those that do not jump.
    template <Jumps JUMPS, bool JOINED, class Plain>
    Vec crossing_codes(const LaneColumn& column, size_t v, size_t at, int depth, Plain plain) const {
        if constexpr (JUMPS == Jumps::NONE) return plain();
        const Vec half = Isa::all(static_cast<int16_t>(JOINED ? CODE_AT_ONCE : CODE_HALF + depth));
        if constexpr (JUMPS == Jumps::ALL) return half;
        if (JOINED && (halves_[depth].rows >> v & 1)) return half;
        return column.jumps ? Isa::choose(Isa::negative(Isa::load(column.jumps + at)), half, plain()) : plain();
    }

    // If two codes are too close, the branch of the result is marked; not if both are CODE_AT_ONCE, which is exact.
    template <bool JUMPING>
    Mask close(Vec first, Vec last) const {
        const Mask near = Isa::more(doubt_, Isa::minus(last, first));
        return JUMPING ? Isa::without(near, Isa::same(first, last)) : near;
    }
    template <bool JUMPING>
    Vec earlier(Vec a, Vec b) const {
        const Vec first = Isa::least(a, b);
        return Isa::doubt(first, close<JUMPING>(first, Isa::largest(a, b)));
    }
    template <bool JUMPING>
    Vec later(Vec a, Vec b) const {
        const Vec last = Isa::largest(a, b);
        return Isa::doubt(last, close<JUMPING>(Isa::least(a, b), last));
    }

    struct SharedSplit {
        const Frame& frame;
        const LaneColumn& column;
        int slot;
        const int16_t* start_rank;
        int16_t last_left;
        const float* u;
        uint64_t on_end_side, on_other;  // vectors that go on there
    };

    template <Jumps JUMPS, bool JOINED>
    Alive split_shared(const Frame& frame, const LaneColumn& column, int slot, const int16_t* start_rank,
                       int16_t last_left, const float* u, uint64_t ends_left) {
        SharedSplit split{frame, column, slot, start_rank, last_left, u, 0, 0};
        split_rows<JUMPS, JOINED, true>(split, frame.alive & ends_left);
        split_rows<JUMPS, JOINED, false>(split, frame.alive & ~ends_left);
        return {(split.on_end_side & ends_left) | (split.on_other & ~ends_left),
                (split.on_end_side & ~ends_left) | (split.on_other & ends_left)};
    }

    // The rows whose ends go left, or those whose ends go right.
    template <Jumps JUMPS, bool JOINED, bool END_LEFT>
    void split_rows(SharedSplit& split, uint64_t vectors) {
        constexpr bool MEETING = JOINED && JUMPS != Jumps::NONE;
        const Vec last = Isa::all(split.last_left), never = Isa::all(CODE_NEVER);
        const int depth = split.frame.depth;
        const auto offset = static_cast<int16_t>(CODE_ORIGIN + depth);
        const float* const inverse = split.column.inverse;
        int16_t* const state = lo(split.slot);
        uint64_t on_end_side = split.on_end_side, on_other = split.on_other;
        for (; vectors; vectors &= vectors - 1) {
            const auto v = static_cast<size_t>(lowest(vectors)), at = v * LANES,
                       start = static_cast<size_t>(start_of_[v]);
            int16_t *const codes = state + at, *const end_side = codes + (END_LEFT ? SLOT : 0),
                           *const other = codes + (END_LEFT ? 0 : SLOT);
            const Vec low = Isa::load(codes), high = Isa::load(codes + HI);
            Vec x = crossing_codes<JUMPS, JOINED>(
                split.column, v, start, depth, [&] { return Isa::times(inverse + at, split.u[row_of_[v]], offset); });
            const Mask start_right = Isa::more(Isa::load(split.start_rank + start), last);
            x = END_LEFT ? Isa::choose(start_right, x, never) : Isa::choose(start_right, never, x);
            const Vec end_high = earlier<MEETING>(high, x), other_low = later<MEETING>(low, x);
            on_end_side |= static_cast<uint64_t>(Isa::any(open(low, end_high))) << v;
            on_other |= static_cast<uint64_t>(Isa::any(open(other_low, high))) << v;
            if (END_LEFT) Isa::store(end_side, low);
            Isa::store(end_side + HI, end_high);
            Isa::store(other, other_low);
            if (!END_LEFT) Isa::store(other + HI, high);
        }
        split.on_end_side = on_end_side;
        split.on_other = on_other;
    }

    template <Jumps JUMPS>
    Alive split_pairs(const Frame& frame, const Node& node, const LaneColumn& column, int slot,
                      const int16_t* start_rank, const int16_t* end_rank, int16_t last_left) {
        const Vec last = Isa::all(last_left), never = Isa::all(CODE_NEVER);
        const auto offset = static_cast<int16_t>(CODE_ORIGIN + frame.depth);
        Alive alive{0, 0};
        for (uint64_t rest = frame.alive; rest; rest &= rest - 1) {
            const size_t v = static_cast<size_t>(__builtin_ctzll(rest)), at = v * LANES;
            const Vec low = Isa::load(lo(slot) + at), high = Isa::load(hi(slot) + at);
            Vec x = crossing_codes<JUMPS, false>(column, v, at, frame.depth, [&] {
                return Isa::times(column.inverse + at, column.ends + at, node.place, offset);
            });
            const Mask start_right = Isa::more(Isa::load(start_rank + at), last);
            const Mask end_right = Isa::more(Isa::load(end_rank + at), last);
            x = Isa::choose(Isa::differ(start_right, end_right), x, never);
            const Vec end_high = earlier<false>(high, x), other_low = later<false>(low, x);
            const Vec left_low = Isa::choose(end_right, other_low, low),
                      left_high = Isa::choose(end_right, high, end_high);
            const Vec right_low = Isa::choose(end_right, low, other_low),
                      right_high = Isa::choose(end_right, end_high, high);
            alive.left |= static_cast<uint64_t>(Isa::any(open(left_low, left_high))) << v;
            alive.right |= static_cast<uint64_t>(Isa::any(open(right_low, right_high))) << v;
            Isa::store(lo(slot + 1) + at, left_low);
            Isa::store(hi(slot + 1) + at, left_high);
            Isa::store(lo(slot) + at, right_low);
            Isa::store(hi(slot) + at, right_high);
        }
        return alive;
    }

    void move_down(int slot, uint64_t alive) {
        for (; alive; alive &= alive - 1) {
            const int at = lowest(alive) * LANES;
            Isa::store(lo(slot) + at, Isa::load(lo(slot + 1) + at));
            Isa::store(hi(slot) + at, Isa::load(hi(slot + 1) + at));
        }
    }
};

template <class Isa>
constexpr LaneKernel lane_kernel(const char* name, SweepWalk sweep, void (*corners)(SweepCorners&),
                                 bool (*leaf_shares)(const LeafShares&)) {
    return {name,
            Isa::LANES,
            &LaneWalk<Isa>::population,
            &LaneWalk<Isa>::pairs,
            &LaneWalk<Isa>::population_lines,
            &LaneWalk<Isa>::population_visits,
            &LaneWalk<Isa>::pairs_visits,
            sweep,
            corners,
            leaf_shares};
}

}  // namespace
}  // namespace gigrad
