// Numbers for all coalitions of a few players: bit i of a coalition's index is set if player i is in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/wide.hpp"
#include "limits.hpp"

namespace gigrad {

// Levels of the transform, from steps of `half` numbers up to the whole table of n: the first half of every block is
// added to the second. Two levels at a time, since loads and stores are the bottleneck.
GIGRAD_WIDE inline void zeta_levels(double* x, size_t n, size_t half) {
    for (; 4 * half <= n; half *= 4)
        for (size_t begin = 0; begin < n; begin += 4 * half) {
            const double* __restrict a = x + begin;
            double* __restrict b = x + begin + half, * __restrict c = b + half, * __restrict d = c + half;
            for (size_t j = 0; j < half; ++j) {
                const double first = b[j] + a[j];
                d[j] = (d[j] + c[j]) + first;
                c[j] += a[j];
                b[j] = first;
            }
        }
    if (2 * half <= n) {
        const double* __restrict from = x;
        double* __restrict to = x + half;
        for (size_t j = 0; j < half; ++j) to[j] += from[j];
    }
}

// The first three levels for contiguous numbers: too short for vectors.
inline void zeta_eights(double* x, size_t n) {
    for (double* const end = x + n; x != end; x += 8) {
        const double a = x[0], b = x[1] + a, c = x[2] + a, d = x[3] + x[2] + b;
        const double e = x[4], f = x[5] + e, g = x[6] + e, h = x[7] + x[6] + f;
        x[1] = b, x[2] = c, x[3] = d, x[4] = e + a, x[5] = f + b, x[6] = g + c, x[7] = h + d;
    }
}

// The fast zeta transform, in place: from one vector of `width` Moebius coefficients for each coalition to their sums
// over its subsets. n log2(n) / 2 additions of vectors for n coalitions; recursively, so that parts stay in cache.
inline void zeta_transform(double* table, size_t n, size_t width) {
    const size_t numbers = n * width;
    if (numbers > ZETA_NUMBERS && n >= 8) {
        for (size_t part = 0; part < 4; ++part) zeta_transform(table + part * (numbers / 4), n / 4, width);
        zeta_levels(table, numbers, numbers / 4);
    } else if (width == 1 && n >= 8) {
        zeta_eights(table, n);
        zeta_levels(table, n, 8);
    } else {
        zeta_levels(table, numbers, width);
    }
}

// (-1)^|T| for the subsets T of up to six players.
constexpr size_t SIGNED_BITS = 6;
inline const std::array<double, size_t{1} << SIGNED_BITS>& subset_signs() {
    static const auto signs = [] {
        std::array<double, size_t{1} << SIGNED_BITS> out{};
        out[0] = 1.0;
        for (size_t half = 1; half < out.size(); half *= 2)
            for (size_t i = 0; i < half; ++i) out[half + i] = -out[i];
        return out;
    }();
    return signs;
}

// Adds the Moebius coefficients of a leaf that needs the players `past` in and the players `before` out: sign(T) times its
// `width` values at past + T, for every subset T of `before`. `to` has `step` numbers for each coalition.
inline void add_leaf(uint32_t past, uint32_t before, const double* value, size_t width, double* to, size_t step) {
    if (before == 0) {
        for (size_t o = 0; o < width; ++o) to[past * step + o] += value[o];
        return;
    }
    std::array<uint32_t, size_t{1} << SIGNED_BITS> places;
    const double* const signs = subset_signs().data();
    places[0] = past;
    size_t n = 1;
    for (size_t bits = 0; before && bits < SIGNED_BITS; ++bits, n *= 2) {
        const uint32_t player = before & (~before + 1);
        before ^= player;
        for (size_t i = 0; i < n; ++i) places[n + i] = places[i] | player;
    }
    const auto add = [&](uint32_t more, double sign) {
        if (width == 1 && step == 1) {
            const double x = sign * *value;
            for (size_t i = 0; i < n; ++i) to[places[i] | more] += signs[i] * x;
            return;
        }
        for (size_t i = 0; i < n; ++i)
            for (size_t o = 0; o < width; ++o) to[(places[i] | more) * step + o] += signs[i] * sign * value[o];
    };
    add(0, 1.0);
    for (uint32_t more = before; more; more = (more - 1) & before) {  // what is left of a long list, subset by subset
        bool odd = false;
        for (uint32_t rest = more; rest; rest &= rest - 1) odd = !odd;
        add(more, odd ? -1.0 : 1.0);
    }
}

}  // namespace gigrad
