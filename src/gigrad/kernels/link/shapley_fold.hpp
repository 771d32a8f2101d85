// The Shapley value from the values of all coalitions of some players, the others joining in a given order.
//
// Of k players the first q are *enumerated* and the other w = k - q join one after the other, in an order. The fold
// computes the mean marginal contribution of each player over all orders of the k players in which the w keep theirs.
// With w = 0 that is the Shapley value; with w > 0 its mean over random orders of the w is, with less variance than
// random orders of all players. q = 0 is the plain sampling of orders.
#pragma once

#include "link/coalitions.hpp"

namespace gigrad {

// sums += values - offset - slope * margins; gives the sum of weights times that. In eight partial sums, the same on
// any machine.
GIGRAD_WIDE inline double fold_block(const double* __restrict values, const double* __restrict margins, double slope,
                                     double offset, size_t n, const double* __restrict weights,
                                     double* __restrict sums) {
    double parts[8] = {};
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (size_t i = 0; i < 8; ++i) {
            const double value = (values[j + i] - offset) - slope * margins[j + i];
            sums[j + i] += value;
            parts[i] += weights[j + i] * value;
        }
    double total = ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    for (; j < n; ++j) {
        const double value = (values[j] - offset) - slope * margins[j];
        sums[j] += value;
        total += weights[j] * value;
    }
    return total;
}

// low += both * sums; out[i] += the sum of weights[i] * sums, for three rows of weights, n apart.
GIGRAD_WIDE inline void fold_prefix(const double* __restrict sums, size_t n, const double* __restrict both,
                                    const double* __restrict weights, double* __restrict low, double* __restrict out) {
    for (size_t j = 0; j < n; ++j) low[j] += both[j] * sums[j];
    for (size_t row = 0; row < 3; ++row, weights += n) {
        double parts[8] = {};
        size_t j = 0;
        for (; j + 8 <= n; j += 8)
            for (size_t i = 0; i < 8; ++i) parts[i] += weights[j + i] * sums[j + i];
        double total =
            ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
        for (; j < n; ++j) total += weights[j] * sums[j];
        out[row] += total;
    }
}

// The probability, over all orders of q + w players that keep the order of the w, that exactly the first t of the w and
// a given coalition of `a` of the q come before a player.
class FoldWeights {
public:
    FoldWeights(size_t q, size_t w) : q_(q), strong_((w + 1) * (q + 1), 0.0), weak_((w + 1) * (q + 1), 0.0) {
        const auto n = static_cast<double>(q + w);
        double first = 1.0 / n, next = static_cast<double>(w) / n;  // for a = 0
        for (size_t t = 0; t <= w; ++t) {
            double mine = first, its = next;
            for (size_t a = 0; a <= q; ++a) {
                if (a < q) strong_[t * (q + 1) + a] = mine;
                if (t < w) weak_[t * (q + 1) + a] = its;
                if (a + t + 1 < q + w) {
                    const double ratio = static_cast<double>(a + 1 + t) / static_cast<double>(q + w - 1 - a - t);
                    mine *= ratio, its *= ratio;
                }
            }
            if (t + 1 < q + w) {
                first *= static_cast<double>(w - t) / static_cast<double>(q + w - 1 - t);
                if (t < w) next *= static_cast<double>(w - 1 - t) / static_cast<double>(q + w - 1 - t);
            }
        }
    }

    // For one of the q; nothing for a = q, when all of them are there.
    double strong(size_t t, size_t a) const { return strong_[t * (q_ + 1) + a]; }
    // For the next of the w; nothing for t = w.
    double weak(size_t t, size_t a) const { return weak_[t * (q_ + 1) + a]; }

private:
    const size_t q_;
    std::vector<double> strong_, weak_;
};

// Coalitions come in blocks of up to 256; within one only the first eight players differ. Sums over blocks are kept by
// position and by the number of other players included, so that no long sum is accumulated sequentially.
class ShapleyFold {
public:
    static constexpr size_t BLOCK_BITS = 8, BLOCK = size_t{1} << BLOCK_BITS;

    static size_t block_size(size_t q) { return size_t{1} << std::min(q, BLOCK_BITS); }

    // Games of q + w players whose values have `outputs` numbers.
    void begin(size_t q, size_t w, size_t outputs) {
        outputs_ = outputs;
        size_ = block_size(q);
        n_blocks_ = (size_t{1} << q) / size_;
        levels_ = q > BLOCK_BITS ? q - BLOCK_BITS + 1 : 1;
        set_weights(q, w);
        low_.assign(outputs * size_, 0.0);
        high_.assign(outputs * n_blocks_, 0.0);
        steps_.assign(outputs * (w + 1) * 3, 0.0);
    }

    // The first t of the ordered players are in from now on.
    void begin_prefix(size_t t) {
        t_ = t;
        sums_.assign(outputs_ * levels_ * size_, 0.0);
    }

    // Values of coalitions block * block_size .. of one output; `nobody` is that of the empty coalition. The game is
    // value - slope * margin.
    void add(size_t block, size_t output, const double* values, double nobody, const double* margins, double slope) {
        const size_t level = ones(block);
        high_[output * n_blocks_ + block] += fold_block(values, margins, slope, nobody, size_, both(level),
                                                        sums_.data() + (output * levels_ + level) * size_);
    }

    void end_prefix() {
        for (size_t o = 0; o < outputs_; ++o)
            for (size_t level = 0; level < levels_; ++level)
                fold_prefix(sums_.data() + (o * levels_ + level) * size_, size_, both(level), both(level) + size_,
                            low_.data() + o * size_, steps_.data() + (o * (weights_->w + 1) + t_) * 3);
    }

    // The credit of each player: give(player, output, credit), the q in their order, then the w in theirs. To be called
    // once.
    template <class Give>
    void finish(Give give) {
        const size_t q = weights_->q, w = weights_->w;
        for (size_t o = 0; o < outputs_; ++o) {
            const double* const steps = steps_.data() + o * (w + 1) * 3;
            double against = 0.0;
            for (size_t t = 0; t <= w; ++t) against += steps[3 * t];
            fold_halves(low_.data() + o * size_, size_, 0, [&](size_t i, double sum) { give(i, o, sum - against); });
            fold_halves(high_.data() + o * n_blocks_, n_blocks_, BLOCK_BITS,
                        [&](size_t i, double sum) { give(i, o, sum - against); });
            for (size_t t = 0; t < w; ++t) give(q + t, o, steps[3 * (t + 1) + 2] - steps[3 * t + 1]);
        }
    }

    // All at once for up to BLOCK_BITS players without others: values (2^q, outputs), which are overwritten, of all
    // coalitions; the most frequent corners.
    template <class Give>
    void solve_small(double* values, size_t q, size_t outputs, Give give) {
        size_ = size_t{1} << q, levels_ = 1;
        set_weights(q, 0);
        const double *const both = weights_->by_place.data(), *const strong = both + size_;
        for (size_t o = 0; o < outputs; ++o) {
            const double nobody = values[o];
            double parts[4] = {};
            for (size_t j = 0; j < size_; ++j) {
                const double value = values[j * outputs + o] - nobody;
                parts[j & 3] += strong[j] * value;
                small_[j] = both[j] * value;
            }
            const double against = (parts[0] + parts[1]) + (parts[2] + parts[3]);
            fold_halves(small_.data(), size_, 0, [&](size_t i, double sum) { give(i, o, sum - against); });
        }
    }

private:
    struct Weights {
        size_t q, w;
        bool ready = false;
        // (w + 1, levels, 4, block), for a coalition's own players; against all; for the next of the w; for the one before
        std::vector<double> by_place;
    };
    std::array<double, BLOCK> small_;
    size_t outputs_ = 0, size_ = 1, n_blocks_ = 1, levels_ = 1, t_ = 0;
    std::array<Weights, MAX_ENUMERATED + 1> exact_;  // by q, for w = 0
    Weights sampled_;
    const Weights* weights_ = nullptr;
    std::array<uint8_t, BLOCK> sizes_ = [] {
        std::array<uint8_t, BLOCK> out{};
        for (size_t i = 0; i < BLOCK; ++i) out[i] = static_cast<uint8_t>(ones(i));
        return out;
    }();
    std::vector<double> low_, high_, sums_;
    std::vector<double> steps_;  // (outputs, w + 1, 3)

    const double* both(size_t level) const { return weights_->by_place.data() + (t_ * levels_ + level) * 4 * size_; }

    static size_t ones(size_t x) {
        size_t n = 0;
        for (; x; x &= x - 1) ++n;
        return n;
    }

    void set_weights(size_t q, size_t w) {
        Weights& mine = w ? sampled_ : exact_[q];
        weights_ = &mine;
        if (mine.ready && mine.q == q && mine.w == w) return;
        const FoldWeights by_size(q, w);
        mine.by_place.resize((w + 1) * levels_ * 4 * size_);
        double* to = mine.by_place.data();
        for (size_t t = 0; t <= w; ++t)
            for (size_t level = 0; level < levels_; ++level, to += 4 * size_)
                for (size_t j = 0; j < size_; ++j) {
                    const size_t a = level + sizes_[j];
                    to[j] = by_size.strong(t, a) + (a ? by_size.strong(t, a - 1) : 0.0);
                    to[size_ + j] = by_size.strong(t, a);
                    to[2 * size_ + j] = by_size.weak(t, a);
                    to[3 * size_ + j] = t ? by_size.weak(t - 1, a) : 0.0;
                }
        mine.q = q, mine.w = w, mine.ready = true;
    }

    // Sums over the coalitions that contain each player.
    template <class Give>
    static void fold_halves(double* x, size_t n, size_t first, Give give) {
        size_t bits = 0;
        while ((size_t{1} << bits) < n) ++bits;
        for (size_t i = bits; i-- > 0;) {
            const size_t half = size_t{1} << i;
            double parts[4] = {};
            for (size_t j = 0; j < half; ++j) {
                parts[j & 3] += x[half + j];
                x[j] += x[half + j];
            }
            give(first + i, (parts[0] + parts[1]) + (parts[2] + parts[3]));
        }
    }
};

}  // namespace gigrad
