// tanh and the logistic function over arrays, without branches, so that the compiler can vectorize. Every operation is
// in plain double precision: results are bit for bit the same with any instruction set.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/wide.hpp"

namespace gigrad {

constexpr double LOG2_E = 1.4426950408889634074, LN2_HIGH = 6.93145751953125e-1, LN2_LOW = 1.42860682030941723212e-6;
constexpr double SHIFT = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer in the lowest bits

// 2^n for a number n + SHIFT.
inline double power_of_two(double shifted) {
    uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// exp(x) for x <= 0; zero below -708.
inline double exp_negative(double x) {
    const double bounded = x > -708.0 ? x : -708.0;
    const double shifted = bounded * LOG2_E + SHIFT;
    const double n = shifted - SHIFT;
    const double r = (bounded - n * LN2_HIGH) - n * LN2_LOW;
    // Taylor on |r| <= ln 2 / 2: the first term left out is below 1e-17. In parts, to shorten the dependency chain.
    const double r2 = r * r, r4 = r2 * r2;
    const double low = 0.5 + r * (1.0 / 6.0);
    const double middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    const double high = ((1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))) +
                        r4 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0));
    const double p = 1.0 + (r + (r2 * low + r4 * (middle + r4 * high)));
    const double value = p * power_of_two(shifted);
    return x > -708.0 ? value : (x == x ? 0.0 : x);
}

GIGRAD_WIDE inline void tanh_each(const double* x, size_t n, double* out) {
    for (size_t i = 0; i < n; ++i) {
        const double a = std::fabs(x[i]), z = x[i] * x[i];
        const double t = exp_negative(-2.0 * a);
        // near zero the difference 1 - t would cancel: the rational form of the Cephes library
        const double p = (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
        const double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3;
        const bool small = a < 0.625;
        const double quotient = (small ? p : 1.0 - t) / (small ? q : 1.0 + t);  // one division for both
        out[i] = small ? x[i] + x[i] * (z * quotient) : std::copysign(quotient, x[i]);
    }
}

// With exp(r) = (even + odd) / (even - odd), the quotient of two short polynomials, one division gives all of
// 1 / (1 + exp(-x)): two thirds of the time that exp_negative would take. The quotient is the best approximation of
// tanh(r / 2) on |r| <= ln 2 / 2, good to 1e-18; both parts are scaled so that even + odd stays just below 2, where
// numbers have the smallest relative rounding error. The result is within 2.1 units in the last place.
inline double sigmoid_of(double x) {
    constexpr double lowest = -708.0;  // zero below it
    const double a = -std::fabs(x), bounded = a < lowest ? lowest : a;
    const double shifted = bounded * LOG2_E + SHIFT;
    const double n = shifted - SHIFT;
    const double r = (bounded - n * LN2_HIGH) - n * LN2_LOW, z = r * r;
    const double odd = r * (0.836 + z * (0.02321945449870232 + z * 5.524491611398755e-05));
    const double even = 1.672 + z * (0.18577224233073056 + z * 0.0016581766934684963);
    const double scaled = (even + odd) * power_of_two(shifted);
    const double up = a > lowest ? scaled : 0.0, down = even - odd;
    const double both = x < 0.0 ? even - (odd - up) : down + up;  // in the order in which roundings are few, or cancel
    return (x < 0.0 ? up : down) / both;
}

GIGRAD_WIDE inline void sigmoid_each(const double* x, size_t n, double* out) {
    for (size_t i = 0; i < n; ++i) out[i] = sigmoid_of(x[i]);
}

GIGRAD_WIDE inline void sigmoid_in_place(double* x, size_t n) {
    for (size_t i = 0; i < n; ++i) x[i] = sigmoid_of(x[i]);
}

}  // namespace gigrad
