// A game close to that of a sampled corner under a link, with a known Shapley value: the control variate.
//
// While the strong players of a corner are enumerated, the weak ones change the margin by little: for each coalition S
// of the strong it is centre(S) + d + rest, with d the sum of weight_j(S) * y_j over the weak players, y_j = 1/2 where
// j is in and -1/2 where it is not, and a rest from leaves that depend on two or more weak players. The game is
//     a0(S) + a1(S) (d + rest) + a2(S) (d^2 + 2 d rest) + a3(S) d^3,
// with the cubic that interpolates the link at four margins around the centre. The Shapley value is the integral over
// p, from 0 to 1, of a player's expected contribution if each of the others is included with probability p (Owen): the
// y are independent, so powers of d have means in power sums of the weights, and a leaf that needs u weak players has
// p^u. Whatever the coefficients, the value is exact; they only determine how much variance is left to be sampled.
#pragma once

#include "link/corner_policy.hpp"
#include "link/weak_tables.hpp"

namespace gigrad {

// The integral of p^a (1 - p)^b from 0 to 1.
inline double beta_integral(size_t a, size_t b) {
    double out = 1.0 / static_cast<double>(a + b + 1);
    for (size_t i = 1; i <= std::min(a, b); ++i)
        out *= static_cast<double>(i) / static_cast<double>(std::max(a, b) + i);
    return out;
}

// The integral of (p - 1/2)^power p^a (1 - p)^b.
inline double centred_integral(size_t power, size_t a, size_t b) {
    double out = 0.0, times = std::ldexp(1.0, -static_cast<int>(power));  // p - 1/2 is half of p - (1 - p)
    for (size_t i = 0; i <= power; ++i) {
        out += times * beta_integral(a + power - i, b + i);
        times *= -static_cast<double>(power - i) / static_cast<double>(i + 1);
    }
    return out;
}

// Coefficients of the game for each S, as of constant + slope * margin + (line + product * margin) d + square d^2 + cube d^3.
struct CubicTables {
    const double *constant, *slope, *line, *product, *square, *cube;
    static constexpr size_t COUNT = 6;
    CubicTables(const double* from, size_t n)
        : constant(from),
          slope(from + n),
          line(from + 2 * n),
          product(from + 3 * n),
          square(from + 4 * n),
          cube(from + 5 * n) {}
};

GIGRAD_WIDE inline void leave_cubic(const double* __restrict linked, const double* __restrict margins,
                                    const double* __restrict d, const double* __restrict constant,
                                    const double* __restrict slope, const double* __restrict line,
                                    const double* __restrict product, const double* __restrict square,
                                    const double* __restrict cube, size_t n, double* __restrict out) {
    for (size_t i = 0; i < n; ++i) {
        const double powers = (line[i] + product[i] * margins[i]) + (square[i] + cube[i] * d[i]) * d[i];
        out[i] = (linked[i] - (constant[i] + slope[i] * margins[i])) - powers * d[i];
    }
}

GIGRAD_WIDE inline void add_table(const double* __restrict from, size_t n, double* __restrict to) {
    for (size_t i = 0; i < n; ++i) to[i] += from[i];
}

// The sum of a * b, in eight partial sums: the same on any machine.
GIGRAD_WIDE inline double sum_of_products(const double* __restrict a, const double* __restrict b, size_t n) {
    double parts[8] = {};
    const size_t lanes = n < 8 ? n : 8;
    for (size_t begin = 0; begin < n; begin += lanes)
        for (size_t i = 0; i < lanes; ++i) parts[i] += a[begin + i] * b[begin + i];
    return ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
}

class WeakCubic {
public:
    // `apply(margins, n)` returns the link of n margins, (n, outputs).
    template <class Apply>
    void set(const PrefixMargins& prefixes, size_t outputs, Apply apply) {
        tables_.set(prefixes);
        n_ = tables_.n, q_ = tables_.q, w_ = tables_.w, outputs_ = outputs;
        first_ = tables_.powers.data(), second_ = first_ + n_, third_ = second_ + n_;
        fit(apply);
        known_.assign((q_ + w_) * outputs_, 0.0);
        for (size_t o = 0; o < outputs_; ++o) {
            const CubicTables game(coefficients_.data() + o * CubicTables::COUNT * n_, n_);
            strong_.assign(n_, 0.0);
            against_ = 0.0;
            share_margins(game, o);
            share_powers(game, o);
            if (tables_.alike) share_products(prefixes, game, o);
            fold_strong(o);
        }
    }

    // The Shapley value of a player, by its rank in strength.
    double known(size_t place, size_t output) const { return known_[place * outputs_ + output]; }

    // None of the weak players is included; then they join one by one.
    void begin() {
        d_.resize(n_);
        for (size_t s = 0; s < n_; ++s) d_[s] = -0.5 * first_[s];
    }
    void join(size_t weak) { add_table(tables_.weight(weak), n_, d_.data()); }

    // The difference between the link's values (2^strong,) of an output and this game, at the margins of the included
    // players.
    void leave(const double* linked, const double* margins, size_t output, double* out) const {
        const CubicTables game(coefficients_.data() + output * CubicTables::COUNT * n_, n_);
        leave_cubic(linked, margins, d_.data(), game.constant, game.slope, game.line, game.product, game.square,
                    game.cube, n_, out);
    }

private:
    WeakTables tables_;
    size_t q_ = 0, w_ = 0, n_ = 1, outputs_ = 1;
    const double *first_ = nullptr, *second_ = nullptr, *third_ = nullptr;  // power sums
    std::vector<double> coefficients_;                                      // (outputs, 6, n)
    std::vector<double> known_, strong_, d_, nodes_, reach_, factor_, values_, supersets_;
    double against_ = 0.0;

    // The cubic in d that interpolates the link at the four Chebyshev points of the typical range of d.
    template <class Apply>
    void fit(Apply apply) {
        static constexpr double outer = 0.9238795325112867, inner = 0.3826834323650898,
                                gap = outer * outer - inner * inner;
        static constexpr double NODES[4] = {-outer, -inner, inner, outer};
        set_reach();
        nodes_.resize(4 * n_);
        for (size_t i = 0; i < 4; ++i)
            for (size_t s = 0; s < n_; ++s) nodes_[i * n_ + s] = tables_.centre[s] + NODES[i] * reach_[s];
        const double* const linked = apply(nodes_.data(), 4 * n_);
        coefficients_.resize(outputs_ * CubicTables::COUNT * n_);
        for (size_t o = 0; o < outputs_; ++o)
            for (size_t s = 0; s < n_; ++s) {
                double* const to = coefficients_.data() + o * CubicTables::COUNT * n_ + s;
                const auto at = [&](size_t i) { return linked[(i * n_ + s) * outputs_ + o]; };
                const double far = 0.5 * (at(3) + at(0)), near = 0.5 * (at(2) + at(1)), reach = reach_[s];
                const double steep = 0.5 * (at(3) - at(0)) / outer, flat = 0.5 * (at(2) - at(1)) / inner;
                const double square = (far - near) / gap, cube = (steep - flat) / gap;
                const double slope = (flat - cube * inner * inner) / reach, bend = square / (reach * reach);
                const double middle = near - square * inner * inner, cubed = cube / (reach * reach * reach);
                set_coefficients(s, middle, slope, bend, cubed, to);
            }
    }

    // The typical range of d around its centre.
    void set_reach() {
        reach_.resize(n_);
        double most = 0.0;
        for (size_t s = 0; s < n_; ++s) {
            reach_[s] = std::max(0.5 * std::abs(first_[s]), 0.75 * std::sqrt(second_[s]));
            most = std::max(most, reach_[s]);
        }
        const double least = most > 0.0 ? 1e-3 * most : 1.0;
        for (size_t s = 0; s < n_; ++s) reach_[s] = std::max(reach_[s], least);
    }

    void set_coefficients(size_t s, double middle, double slope, double bend, double cube, double* to) const {
        const double centre = tables_.centre[s], product = tables_.alike ? 2.0 * bend : 0.0;
        const double all[CubicTables::COUNT] = {middle - slope * centre, slope, -product * centre, product,
                                                bend - product,          cube};
        double sum = 0.0;
        for (const double x : all) sum += std::abs(x);
        const bool defined = std::isfinite(sum);  // the link may not be, so far out
        for (size_t i = 0; i < CubicTables::COUNT; ++i) to[i * n_] = defined ? all[i] : 0.0;
    }

    // Adds the strong players' credit for g(S) * f(p), with the integral of f(p) p^a (1 - p)^b as integral(a, b).
    template <class Table, class Integral>
    void share_strong(Table g, Integral integral) {
        double both[STRONG_PLAYERS + 1], mine[STRONG_PLAYERS + 1];
        for (size_t a = 0; a <= q_; ++a) {
            mine[a] = a < q_ ? integral(a, q_ - 1 - a) : 0.0;
            both[a] = mine[a] + (a ? mine[a - 1] : 0.0);
        }
        double sum = 0.0;
        for (size_t s = 0; s < n_; ++s) {
            const double value = g(s);
            strong_[s] += both[tables_.sizes[s]] * value;
            sum += mine[tables_.sizes[s]] * value;
        }
        against_ += sum;
    }

    // factor_[s] = g(s) * integral(|S|, strong players not in S)
    template <class Table, class Integral>
    void set_factor(Table g, Integral integral) {
        double by_size[STRONG_PLAYERS + 1];
        for (size_t a = 0; a <= q_; ++a) by_size[a] = integral(a, q_ - a);
        factor_.resize(n_);
        for (size_t s = 0; s < n_; ++s) factor_[s] = g(s) * by_size[tables_.sizes[s]];
    }

    double& known_of(size_t weak, size_t output) { return known_[(q_ + weak) * outputs_ + output]; }

    // slope(S) times the margin.
    void share_margins(const CubicTables& game, size_t output) {
        share_strong([&](size_t s) { return game.constant[s] + game.slope[s] * tables_.base[s]; }, beta_integral);
        for (size_t i = 0; i < tables_.n_kinds(); ++i) {
            const WeakTables::Kind& kind = tables_.kind(i);
            const size_t u = kind.n_past, v = kind.n_before;
            share_strong([&](size_t s) { return game.slope[s] * kind.all[s]; },
                         [&](size_t a, size_t b) { return beta_integral(a + u, b + v); });
            if (u) share_weak(game.slope, kind.past, 1.0, u - 1, v, output);
            if (v) share_weak(game.slope, kind.before, -1.0, u, v - 1, output);
        }
    }

    // The weak players' contributions to slope(S) times leaves that require u others in and v out.
    void share_weak(const double* slope, const std::vector<double>& leaves, double sign, size_t u, size_t v,
                    size_t output) {
        set_factor([&](size_t s) { return sign * slope[s]; },
                   [&](size_t a, size_t b) { return beta_integral(a + u, b + v); });
        for (size_t j = 0; j < w_; ++j)
            known_of(j, output) += sum_of_products(factor_.data(), leaves.data() + j * n_, n_);
    }

    // The powers of d.
    void share_powers(const CubicTables& game, size_t output) {
        const auto integral = [](size_t power) {
            return [power](size_t a, size_t b) { return centred_integral(power, a, b); };
        };
        share_strong([&](size_t s) { return 0.25 * game.square[s] * second_[s]; }, integral(0));
        share_strong(
            [&](size_t s) {
                return game.line[s] * first_[s] +
                       0.25 * game.cube[s] * (3.0 * first_[s] * second_[s] - 2.0 * third_[s]);
            },
            integral(1));
        share_strong([&](size_t s) { return game.square[s] * (first_[s] * first_[s] - second_[s]); }, integral(2));
        share_strong(
            [&](size_t s) {
                return game.cube[s] * (first_[s] * (first_[s] * first_[s] - 3.0 * second_[s]) + 2.0 * third_[s]);
            },
            integral(3));
        values_.resize(n_);
        const auto share = [&](size_t power, auto of) {  // of(s, weight): what a weak player adds, over (p - 1/2)^power
            set_factor([](size_t) { return 1.0; }, integral(power));
            for (size_t j = 0; j < w_; ++j) {
                const double* const mine = tables_.weight(j);
                for (size_t s = 0; s < n_; ++s) values_[s] = of(s, mine[s]);
                known_of(j, output) += sum_of_products(factor_.data(), values_.data(), n_);
            }
        };
        share(0, [&](size_t s, double me) {
            return me * (game.line[s] + game.cube[s] * (0.75 * second_[s] - 0.5 * me * me));
        });
        share(1, [&](size_t s, double me) { return 2.0 * me * game.square[s] * (first_[s] - me); });
        share(2, [&](size_t s, double me) {
            const double others = first_[s] - me;
            return 3.0 * me * game.cube[s] * (others * others - (second_[s] - me * me));
        });
    }

    // product(S) times d times the margin; no leaf needs a weak player out.
    void share_products(const PrefixMargins& prefixes, const CubicTables& game, size_t output) {
        const auto centred = [](size_t power, size_t u) {
            return [power, u](size_t a, size_t b) { return centred_integral(power, a + u, b); };
        };
        share_strong([&](size_t s) { return game.product[s] * tables_.base[s] * first_[s]; }, centred(1, 0));
        set_factor([&](size_t s) { return game.product[s] * tables_.base[s]; }, centred(0, 0));
        for (size_t j = 0; j < w_; ++j) known_of(j, output) += sum_of_products(factor_.data(), tables_.weight(j), n_);
        supersets_.resize(tables_.n_kinds() * w_ * n_);
        for (size_t i = 0; i < tables_.n_kinds(); ++i) share_kind(i, game, output);
        size_t need = 0;
        prefixes.for_needs([&](const uint32_t* weak, uint32_t n_past, uint32_t, auto changes) {
            const double* const of_kind = supersets_.data() + tables_.kind_of_need(need++) * w_ * n_;
            double sum = 0.0;
            changes([&](uint32_t cell, double value) {
                for (uint32_t i = 0; i < n_past; ++i) sum += of_kind[weak[i] * n_ + n_ - 1 - cell] * value;
            });
            for (uint32_t i = 0; i < n_past; ++i) known_of(weak[i], output) += sum;
        });
    }

    // The same for the leaves that need u weak players, N of them: the weights of N count half, those of the others y.
    void share_kind(size_t number, const CubicTables& game, size_t output) {
        const WeakTables::Kind& kind = tables_.kind(number);
        const size_t u = kind.n_past;
        const auto centred = [](size_t power, size_t u) {
            return [power, u](size_t a, size_t b) { return centred_integral(power, a + u, b); };
        };
        values_.assign(n_, 0.0);  // the sum over leaves of the weights of their players
        for (size_t j = 0; j < w_; ++j) {
            const double *const mine = tables_.weight(j), *const leaves = kind.past.data() + j * n_;
            for (size_t s = 0; s < n_; ++s) values_[s] += mine[s] * leaves[s];
        }
        share_strong([&](size_t s) { return 0.5 * game.product[s] * values_[s]; }, centred(0, u));
        share_strong([&](size_t s) { return game.product[s] * (first_[s] * kind.all[s] - values_[s]); }, centred(1, u));
        // a player that no leaf of these needs adds its weight; one that it needs, all that the leaf has
        set_factor([&](size_t s) { return game.product[s]; }, centred(0, u));
        for (size_t j = 0; j < w_; ++j) {
            const double *const mine = tables_.weight(j), *const leaves = kind.past.data() + j * n_;
            for (size_t s = 0; s < n_; ++s) values_[s] = mine[s] * (kind.all[s] - leaves[s]);
            known_of(j, output) += sum_of_products(factor_.data(), values_.data(), n_);
        }
        set_factor([&](size_t s) { return game.product[s] * first_[s]; }, centred(1, u - 1));
        for (size_t j = 0; j < w_; ++j)
            known_of(j, output) += sum_of_products(factor_.data(), kind.past.data() + j * n_, n_);
        set_factor(
            [&](size_t s) { return game.product[s]; },
            [&](size_t a, size_t b) { return 0.5 * beta_integral(a + u - 1, b) - centred_integral(1, a + u - 1, b); });
        for (size_t j = 0; j < w_; ++j) {
            double* const to = supersets_.data() + (number * w_ + j) * n_;
            const double* const mine = tables_.weight(j);
            for (size_t s = 0; s < n_; ++s) to[n_ - 1 - s] = factor_[s] * mine[s];
            zeta_transform(to, n_, 1);
        }
    }

    void fold_strong(size_t output) {
        for (size_t i = q_; i-- > 0;) {
            const size_t half = size_t{1} << i;
            double sum = 0.0;
            for (size_t s = 0; s < half; ++s) sum += strong_[half + s], strong_[s] += strong_[half + s];
            known_[i * outputs_ + output] = sum - against_;
        }
    }
};

}  // namespace gigrad
