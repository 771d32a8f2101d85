// Shortest decimals: the one that rounds to a given float32, or that lies in an interval.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gigrad {

// Powers of ten that float64 holds exactly: a whole number below 2^53 times or over one of them is rounded once, so the
// result is the float64 nearest to that decimal.
constexpr double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int MOST_POWER = 22;

// x rounded to `digits` significant decimal digits; `exponent` is floor(log10(|x|)), or one less.
inline double rounded_to_digits(double x, int digits, int exponent) {
    const int shift = digits - 1 - exponent;
    if (shift >= 0 && shift <= MOST_POWER) return std::nearbyint(x * POWERS_OF_TEN[shift]) / POWERS_OF_TEN[shift];
    if (shift < 0 && shift >= -MOST_POWER) return std::nearbyint(x / POWERS_OF_TEN[-shift]) * POWERS_OF_TEN[-shift];
    char text[40];
    std::snprintf(text, sizeof text, "%.*e", digits - 1, x);
    return std::strtod(text, nullptr);
}

// The decimal of the fewest digits that `fits`, the nearest to x of those; x itself if none of 17 digits does.
template <class Fits>
double shortest_decimal(double x, Fits fits) {
    if (fits(0.0)) return 0.0;
    const int exponent = static_cast<int>(std::floor(std::log10(std::abs(x))));
    for (int digits = 1; digits <= 17; ++digits) {
        const double candidate = rounded_to_digits(x, digits, exponent);
        if (fits(candidate)) return candidate;
    }
    return x;
}

// The shortest decimal in [low, high], both finite.
inline double shortest_decimal_between(double low, double high) {
    return shortest_decimal(0.5 * low + 0.5 * high, [=](double d) { return d >= low && d <= high; });
}

// floor(log10(x)) of a positive number from 1e-13 to 1e15, without a logarithm: rows are read value by value.
inline int decimal_exponent(double x) {
    constexpr double powers[] = {1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4,
                                 1e-3,  1e-2,  1e-1,  1e0,   1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
                                 1e7,   1e8,   1e9,   1e10,  1e11, 1e12, 1e13, 1e14, 1e15};
    int64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const int binary = static_cast<int>(bits >> 52) - 1023;
    const int guess = binary * 1233 >> 12;  // log10(2) is 1233 / 4096, nearly: right, or one too small
    return guess + (x >= powers[guess + 14]);
}

// The shortest decimal that rounds to the same float32 as x; x itself if that is not finite.
inline double decimal_of_float32(double x) {
    const float single = static_cast<float>(x);
    const double wide = single, size = std::abs(wide);
    if (size < 16777216.0 && wide == static_cast<double>(static_cast<int32_t>(wide)))
        return wide;  // whole: short already
    if (!(size > 1e-12 && size < 1e15)) {
        if (!std::isfinite(single)) return x;
        return shortest_decimal(wide, [=](double d) { return static_cast<float>(d) == single; });
    }
    // No two decimals of up to six digits round to the same float32 (FLT_DIG), and nine digits distinguish all float32
    // numbers.
    const int exponent = decimal_exponent(size);
    constexpr double rounder = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds to an integer
    for (int digits = 6; digits < 9; ++digits) {
        const int shift = digits - 1 - exponent;
        const double power = POWERS_OF_TEN[shift < 0 ? -shift : shift];
        const double whole = ((shift < 0 ? wide / power : wide * power) + rounder) - rounder;
        const double decimal = shift < 0 ? whole * power : whole / power;
        if (static_cast<float>(decimal) == single) return decimal;
    }
    return rounded_to_digits(wide, 9, exponent);
}

}  // namespace gigrad
