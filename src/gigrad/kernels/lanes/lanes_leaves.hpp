// The vector walk at a leaf, and its state on the path there; see lanes_walk.hpp.
#pragma once

#include <type_traits>

#include "lanes/lanes.hpp"

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
        uint64_t alive;  // vectors with a lane whose path reaches the node
        Turn turn;       // the last branch on the path, and the vectors for which it was to the end's side
        uint64_t to_end;
    };

    LaneWalkJob& job_;
    const Vec doubt_ = Isa::all(CODE_DOUBT);
    const int n_vectors_;
    uint64_t row_mask_[MAX_VECTORS];
    uint8_t row_of_[MAX_VECTORS];
    uint16_t start_of_[MAX_VECTORS];       // first start of each vector
    double sign_[MAX_TURNS][MAX_VECTORS];  // of each row, where a turn opens (+) or closes (-) what is below it
    uint32_t to_end_[MAX_VECTORS] = {};    // the turns that open, of each row, as bits
    // A split on the way, by depth, that some lanes cross at one half: bits of starts.
    static constexpr int WORD = 64 / LANES, WORDS = (MAX_VECTORS + WORD - 1) / WORD;  // vectors of a word
    struct Half {
        uint64_t right[WORDS];     // starts that go right
        uint64_t jumps[WORDS];     // starts that cross at one half, whatever the end
        uint64_t rows, ends_left;  // vectors: those whose end makes all cross at one half; those whose end goes left
    };
    Half halves_[MAX_TURNS + 1];
    // Turns on the way to a depth at which some lane may cross at one half: those of all rows, and those of rows whose
    // end has no value between. A row's result must not depend on the others.
    struct Jumping {
        uint32_t all, by_ends;
        uint32_t at_once;  // of `all`, those at which no lane crosses at another time
    };
    Jumping jumping_[MAX_TURNS + 2];
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
    // Where the codes lie. The odd strides keep addresses from agreeing in their lowest twelve bits: 4K aliasing would
    // make loads wait for stores that they do not depend on.
    static constexpr std::ptrdiff_t HI = MAX_VECTORS * LANES + 2 * LANES, SLOT = 2 * HI + 2 * LANES;
    static_assert(SLOT <= SLOT_CODES * LANES, "the state is too small");
    int16_t* lo(int slot) const { return job_.state + slot * SLOT; }
    int16_t* hi(int slot) const { return lo(slot) + HI; }
    Mask open(Vec low, Vec high) const { return Isa::more(Isa::plus(high, doubt_), low); }

    // Crossings at one half on the path to a leaf: none; one, which is then a branch like the others; or several.
    enum class Halves { NONE, ONE, MANY };

    // Lanes whose path is unambiguously inside the leaf from one crossing to another, and the crossings.
    struct Inside {
        Mask clear;
        Vec in, out;  // backwards: `in` closes the leaf, `out` opens it
        uint32_t unclear;
    };

    template <Halves HALVES>
    Inside inside(int slot, int v) {
        const Vec low = Isa::load(lo(slot) + v * LANES), high = Isa::load(hi(slot) + v * LANES);
        const Vec turn = Isa::all(TURN_MASK), unknown = Isa::all(TURN_DOUBT);
        Vec in = Isa::both(low, turn), out = Isa::both(high, turn);
        const Mask tied = Isa::either(Isa::same(in, unknown), Isa::same(out, unknown));
        const Mask clear = Isa::without(Isa::more(Isa::minus(high, low), doubt_), tied);
        Mask unclear = Isa::without(open(low, high), clear);
        if constexpr (HALVES != Halves::NONE) {
            const Vec half = Isa::all(CODE_AT_ONCE);
            const Mask closes = Isa::same(low, half), opens = Isa::same(high, half);
            if constexpr (HALVES == Halves::ONE) {
                const Vec mine = Isa::all(static_cast<int16_t>(joint_.turn[0]));
                in = Isa::choose(closes, mine, in), out = Isa::choose(opens, mine, out);
            } else if (Isa::any(Isa::either(closes, opens))) {
                const Mask neither = Isa::differ(closes, opens),
                           both = Isa::without(Isa::either(closes, opens), neither);
                unclear = Isa::without(unclear, both);
                const Mask one = Isa::without(neither, Isa::without(neither, clear));
                const int at = v % job_.row_vectors;
                halved_[at / WORD] |= static_cast<uint64_t>(Isa::bits(Isa::either(one, both))) << at % WORD * LANES;
            }
        }
        return {clear, in, out, Isa::any(unclear) ? Isa::bits(unclear) : 0};
    }

    template <bool JOINED>
    void shared_leaf(const Frame& frame, const Node& leaf, int slot) {
        const Jumping jumping = JOINED ? jumping_[frame.depth] : Jumping{0, 0, 0};
        if (JOINED) find_joint(jumping.all);
        size_t column[MAX_TURNS];
        find_columns(frame.depth, column);
        const double* value = job_.values + leaf.value;
        n_unclear_ = 0;
        for (uint64_t rest = frame.alive; rest;) {
            const int row = row_of_[lowest(rest)];
            const uint64_t mine = rest & row_mask_[row];
            rest &= ~mine;
            double mass[16];
            if (JOINED && jumping.by_ends) find_joint(jumping.all | turns_of_row(jumping.by_ends, row));
            if (!JOINED || joint_.n == 0) {
                find_mass<Halves::NONE>(frame.depth, slot, mine, mass);
            } else if (joint_.n == 1) {
                find_mass<Halves::ONE>(frame.depth, slot, mine, mass);
            } else {
                find_mass<Halves::MANY>(frame.depth, slot, mine, mass);
                share_halves(row, jumping.at_once, mass);
            }
            double* credit = job_.credit + static_cast<size_t>(row) * job_.credit_step;
            if (job_.width == 1)
                for (int d = 0; d < frame.depth; ++d) credit[column[d]] += mass[d] * sign_[d][row] * *value;
            else
                for (int d = 0; d < frame.depth; ++d)
                    for (size_t k = 0; k < job_.width; ++k) credit[column[d] + k] += mass[d] * sign_[d][row] * value[k];
        }
        settle_unclear(frame);
    }

    template <Halves HALVES>
    void find_mass(int depth, int slot, uint64_t vectors, double* mass) {
        if (job_.weight_sums)
            weigh<HALVES>(depth, slot, vectors, mass);
        else if (depth <= 8)
            count<1, HALVES>(slot, vectors, mass);
        else
            count<2, HALVES>(slot, vectors, mass);
    }

    // The turns of a leaf's way at which some lane may cross at one half. A variable with two splits counts once.
    struct Joint {
        int n;
        uint32_t turns;
        bool twice;  // whether a variable has two splits
        int bits;    // that numbers of them take
        int turn[MAX_TURNS];
        int place[MAX_TURNS];  // of the first that has the same variable
    };
    Joint joint_;
    uint64_t halved_[WORDS] = {};  // starts of a row for which the leaf opens or closes at one half

    uint32_t turns_of_row(uint32_t turns, int row) const {
        uint32_t out = 0;
        for (; turns; turns &= turns - 1)
            if (halves_[__builtin_ctz(turns)].rows & row_mask_[row]) out |= turns & (0 - turns);
        return out;
    }

    void find_joint(uint32_t turns) {
        joint_.n = 0;
        joint_.turns = turns;
        joint_.twice = false;
        for (; turns; turns &= turns - 1) {
            const int n = joint_.n++, d = joint_.turn[n] = __builtin_ctz(turns);
            joint_.place[n] = 0;
            while (variable_at(joint_.turn[joint_.place[n]]) != variable_at(d)) ++joint_.place[n];
            joint_.twice |= joint_.place[n] != n;
        }
        joint_.bits = joint_.n < 4 ? 2 : joint_.n < 8 ? 3 : 4;
    }
    int32_t variable_at(int d) const { return job_.nodes[job_.path[d].node].variable; }

    // Adds the credit of variables that open or close the leaf at one half. Bits of starts identify them, and their
    // counts determine the credit of each: no times are needed.
    void share_halves(int row, uint32_t at_once, double* mass) {
        const int first = row * job_.row_vectors;
        const uint32_t opening = joint_.turns & to_end_[row], closing = joint_.turns & ~opening;
        bool whole = !joint_.twice;  // every start jumps at all of the turns, and no variable has two of them
        for (uint32_t rest = joint_.turns & ~at_once; rest; rest &= rest - 1)
            whole &= halves_[__builtin_ctz(rest)].rows >> first & 1;
        const int words = (job_.row_vectors + WORD - 1) / WORD;
        for (int w = 0; w < words; w += 2) {
            const int next = w + 1 < words ? w + 1 : w;
            const TwoWords at{{halved_[w], next > w ? halved_[next] : 0}, {w, next}};
            halved_[w] = halved_[next] = 0;
            if ((at.lanes[0] | at.lanes[1]) == 0) continue;
            if (whole) {
                share_whole(at, opening, closing, first, mass);
            } else {
                if (at.lanes[0]) share_some(at.lanes[0], row, w, mass);
                if (at.lanes[1]) share_some(at.lanes[1], row, next, mass);
            }
        }
    }

    // Starts of two words, side by side.
    struct TwoWords {
        uint64_t lanes[2];
        int word[2];
    };

    // All turns are crossed at one half, those that close the leaf by all lanes that meet it, and all are of different
    // variables: only the number of those that open it differs.
    void share_whole(const TwoWords& at, uint32_t opening, uint32_t closing, int first, double* mass) const {
        switch (__builtin_popcount(opening)) {  // loops of known length are unrolled
            case 0:
                return share_opened(at, opening, Number<0>{}, closing, first, mass);
            case 1:
                return share_opened(at, opening, Number<1>{}, closing, first, mass);
            case 2:
                return share_opened(at, opening, Number<2>{}, closing, first, mass);
            case 3:
                return share_opened(at, opening, Number<3>{}, closing, first, mass);
            default:
                return share_opened(at, opening, __builtin_popcount(opening), closing, first, mass);
        }
    }

    template <int N>
    using Number = std::integral_constant<int, N>;

    template <class Count>
    void share_opened(const TwoWords& at, uint32_t opening, Count count, uint32_t closing, int first,
                      double* mass) const {
        const int n_opening = count, n_closing = __builtin_popcount(closing);
        int turn[MAX_TURNS];
        uint64_t opens[MAX_TURNS][2], alike[MAX_TURNS + 1][2];  // alike[n]: starts for which n turns open the leaf
        for (int h = 0; h < 2; ++h) alike[0][h] = at.lanes[h];
        for (int i = 0; i < n_opening; ++i, opening &= opening - 1) {
            turn[i] = __builtin_ctz(opening);
            const Half& half = halves_[turn[i]];
            const uint64_t others = (half.ends_left >> first & 1) - 1;
            for (int h = 0; h < 2; ++h) {
                const uint64_t open = opens[i][h] = half.right[at.word[h]] ^ others;
                alike[i + 1][h] = alike[i][h] & open;
                for (int n = i; n > 0; --n) alike[n][h] = (alike[n][h] & ~open) | (alike[n - 1][h] & open);
                alike[0][h] &= ~open;
            }
        }
        const Shares* const shares = job_.shares + n_closing;
        double closed = 0.0;
        for (int n = 0; n <= n_opening; ++n) {
            const uint64_t a = alike[n][0], b = alike[n][1];
            if ((n == 0 && n_closing == 0) || (a | b) == 0) continue;
            const Shares& share = shares[(n > 0 && n_closing > 0) << 8 | n << 4];
            const bool all = n == n_opening;  // then no turn is to be told from another
            const double weight = all || n_closing ? weight_of(at.word, a, b) : 0.0;
            closed -= weight * share.before;
            for (int i = 0; n && i < n_opening; ++i)
                mass[turn[i]] += (all ? weight : weight_of(at.word, a & opens[i][0], b & opens[i][1])) * share.past;
        }
        for (; closing; closing &= closing - 1) mass[__builtin_ctz(closing)] += closed;
    }

    // Starts of word w that cross a turn of `joint_` at one half, of those that meet the leaf: all of them cross a turn
    // that closes it.
    uint64_t crossed_at_half(int i, int row, int w) const {
        const int d = joint_.turn[i], first = row * job_.row_vectors;
        const Half& turn = halves_[d];
        const uint64_t jumps = turn.rows >> first & 1 ? ~uint64_t{0} : turn.jumps[w];
        if (sign_[d][row] < 0.0) return jumps;
        return jumps & (turn.ends_left >> first & 1 ? turn.right[w] : ~turn.right[w]);
    }

    void share_some(uint64_t lanes, int row, int w, double* mass) const {
        uint64_t opens[MAX_TURNS], closes[MAX_TURNS], u[4] = {},
                                                      n[4] = {};  // bit b of each start's numbers of variables
        for (int i = 0; i < joint_.n; ++i) opens[i] = closes[i] = 0;
        for (int i = 0; i < joint_.n; ++i) {
            uint64_t* const to = sign_[joint_.turn[i]][row] > 0.0 ? opens : closes;
            to[joint_.place[i]] |= crossed_at_half(i, row, w);
        }
        for (int i = 0; i < joint_.n; ++i) {
            lanes &= ~(opens[i] & closes[i]);  // no variable is both past and before
            if (opens[i]) count_one(opens[i], u);
            if (closes[i]) count_one(closes[i], n);
        }
        while (lanes) lanes &= ~share_alike(lanes, u, n, opens, closes, row, w, mass);
    }

    static void count_one(uint64_t lanes, uint64_t* bits) {
        for (; lanes; ++bits) {
            const uint64_t carry = *bits & lanes;
            *bits ^= lanes;
            lanes = carry;
        }
    }

    // Those of the starts that have as many variables on either side as the first of them; they get their shares.
    uint64_t share_alike(uint64_t lanes, const uint64_t* u, const uint64_t* n, const uint64_t* opens,
                         const uint64_t* closes, int row, int w, double* mass) const {
        const int lane = __builtin_ctzll(lanes);
        uint32_t opening = 0, closing = 0;
        for (int b = 0; b < joint_.bits; ++b) {
            const uint64_t more_u = 0 - (u[b] >> lane & 1), more_n = 0 - (n[b] >> lane & 1);
            opening |= (more_u & 1) << b;
            closing |= (more_n & 1) << b;
            lanes &= ~(u[b] ^ more_u) & ~(n[b] ^ more_n);
        }
        const Shares& shares = job_.shares[(opening && closing) << 8 | opening << 4 | closing];
        for (int i = 0; i < joint_.n; ++i) {
            const uint64_t past = lanes & opens[i], before = lanes & closes[i];
            if (past) mass[joint_.turn[i]] += sign_[joint_.turn[i]][row] * weight_of(w, past) * shares.past;
            if (before) mass[joint_.turn[i]] += sign_[joint_.turn[i]][row] * weight_of(w, before) * shares.before;
        }
        return lanes;
    }

    double weight_of(const int* words, uint64_t a, uint64_t b) const {
        if (!job_.weight_sums) return (__builtin_popcountll(a) + __builtin_popcountll(b)) * job_.weight;
        return weight_of(words[0], a) + weight_of(words[1], b);
    }
    double weight_of(int w, uint64_t lanes) const {
        if (!job_.weight_sums) return __builtin_popcountll(lanes) * job_.weight;
        const double* sums = job_.weight_sums + static_cast<size_t>(w) * 8 * 256;
        double out = 0.0;
        for (; lanes; lanes >>= 8, sums += 256) out += sums[lanes & 255];
        return out;
    }

    void find_columns(int depth, size_t* column) const {
        for (int d = 0; d < depth; ++d)
            column[d] = static_cast<size_t>(job_.nodes[job_.path[d].node].variable) * job_.outputs + job_.first;
    }

    // Collected while the unambiguous lanes are counted: a call in that loop would spill its registers.
    void note_unclear(int v, uint32_t lanes) {
        unclear_[n_unclear_] = {v, lanes};
        n_unclear_ += lanes != 0;
    }
    void settle_unclear(const Frame& frame) {
        if (n_unclear_) job_.calls.exact(job_, frame.node, frame.depth, unclear_, n_unclear_);
    }

    // Weight of the lanes that enter or leave by each turn. A turn to the end's side can only open the leaf and any
    // other only close it, so the two need not be distinguished here.
    template <int EIGHTS, Halves HALVES>
    void count(int slot, uint64_t vectors, double* mass) {
        typename Isa::Tally first = Isa::tally(0), second = Isa::tally(8);
        for (; vectors; vectors &= vectors - 1) {
            const int v = lowest(vectors);
            const Inside in = inside<HALVES>(slot, v);
            note_unclear(v, in.unclear);
            Isa::add(first, in.in, in.out, in.clear);
            if (EIGHTS > 1) Isa::add(second, in.in, in.out, in.clear);
        }
        int n[8 * EIGHTS];
        Isa::read(first, n);
        if (EIGHTS > 1) Isa::read(second, n + 8 * (EIGHTS - 1));
        for (int d = 0; d < 8 * EIGHTS; ++d) mass[d] = n[d] * job_.weight;
    }

    template <Halves HALVES>
    void weigh(int depth, int slot, uint64_t vectors, double* mass) {
        for (int d = 0; d < depth; ++d) mass[d] = 0.0;
        for (; vectors; vectors &= vectors - 1) {
            const int v = lowest(vectors);
            const Inside in = inside<HALVES>(slot, v);
            note_unclear(v, in.unclear);
            const double* sums = job_.weight_sums + static_cast<size_t>(start_of_[v]) / 8 * 256;
            const Vec never = Isa::all(-1), entering = Isa::choose(in.clear, in.in, never),
                      leaving = Isa::choose(in.clear, in.out, never);
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
        column[TURN_NONE] = job_.nobody;  // a column like the others: whether a path ends here needs no branch
        const double* const value = job_.values + leaf.value;
        const double number = *value;
        const size_t width = job_.width, step = job_.credit_step;
        const Vec none = Isa::all(TURN_NONE);
        n_unclear_ = 0;
        for (uint64_t rest = frame.alive; rest; rest &= rest - 1) {
            const int v = lowest(rest);
            const Inside in = inside<Halves::NONE>(slot, v);
            note_unclear(v, in.unclear);
            int16_t closes[LANES], opens[LANES];
            Isa::store(closes, in.in);
            Isa::store(opens, in.out);
            double* const credit = job_.credit + static_cast<size_t>(v * LANES) * step;
            const Mask changes =
                Isa::without(in.clear, Isa::same(Isa::both(in.in, in.out), none));  // no path of one leaf
            for (uint32_t lanes = Isa::bits(changes); lanes; lanes &= lanes - 1) {
                const auto lane = static_cast<size_t>(lowest(lanes));
                double *opened = credit + lane * step + column[opens[lane]],
                       *closed = credit + lane * step + column[closes[lane]];
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

    // Linear leaves need exact times: all lanes whose path enters or leaves them are reported, also unambiguous ones.
    void line_leaf(const Frame& frame, const Node&, int slot) {
        const Vec first = Isa::all(CODE_END), last = Isa::all(CODE_START);
        n_unclear_ = 0;
        for (uint64_t rest = frame.alive; rest; rest &= rest - 1) {
            const int v = lowest(rest);
            const Vec low = Isa::load(lo(slot) + v * LANES), high = Isa::load(hi(slot) + v * LANES);
            const Mask met = open(low, high);
            note_unclear(v, Isa::bits(Isa::either(Isa::without(met, Isa::same(low, first)),
                                                  Isa::without(met, Isa::same(high, last)))));
        }
        settle_unclear(frame);
    }
};

}  // namespace
}  // namespace gigrad
