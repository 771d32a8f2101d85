// tanh and the logistic function over arrays, without branches, so that the compiler can vectorize. Every operation is
// in plain double precision: results are bit for bit the same with any instruction set.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/wide.hpp"

namespace gigrad {

// exp(x) for x <= 0; zero below -708.
GIGRAD_INLINED double exp_negative(double x) {
    constexpr double log2_e = 1.4426950408889634074, ln2_high = 6.93145751953125e-1,
                     ln2_low = 1.42860682030941723212e-6;
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer in the lowest bits
    const double bounded = x > -708.0 ? x : -708.0;
    const double shifted = bounded * log2_e + shift;
    const double n = shifted - shift;
    const double r = (bounded - n * ln2_high) - n * ln2_low;
    // Taylor on |r| <= ln 2 / 2: the first term left out is below 1e-17. In parts, to shorten the dependency chain.
    const double r2 = r * r, r4 = r2 * r2;
    const double low = 0.5 + r * (1.0 / 6.0);
    const double middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
    const double high = ((1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))) +
                        r4 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0));
    const double p = 1.0 + (r + (r2 * low + r4 * (middle + r4 * high)));
    uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;  // 2^n
    double scale;
    std::memcpy(&scale, &bits, sizeof scale);
    const double value = p * scale;
    return x > -708.0 ? value : (x == x ? 0.0 : x);
}

GIGRAD_INLINED void tanh_each_loop(const double* x, size_t n, double* out) {
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
GIGRAD_WIDEST(tanh_each, (const double* x, size_t n, double* out), (x, n, out))

GIGRAD_INLINED double sigmoid_of(double x) {
    const double t = exp_negative(-std::fabs(x));
    return (x < 0.0 ? t : 1.0) / (1.0 + t);
}

GIGRAD_INLINED void sigmoid_each_loop(const double* x, size_t n, double* out) {
    for (size_t i = 0; i < n; ++i) out[i] = sigmoid_of(x[i]);
}
GIGRAD_WIDEST(sigmoid_each, (const double* x, size_t n, double* out), (x, n, out))

inline void sigmoid_in_place(double* x, size_t n) { sigmoid_each(x, n, x); }

}  // namespace gigrad
