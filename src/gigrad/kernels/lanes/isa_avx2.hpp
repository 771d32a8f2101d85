// Sixteen lanes of AVX2; see isa_plain.hpp for the meaning of each function.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lanes/lanes.hpp"

namespace gigrad {
namespace {

struct IsaAvx2 {
    static constexpr int LANES = 16;
    using Vec = __m256i;
    struct Mask {
        __m256i m;
    };

    static Vec load(const int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static void store(int16_t* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
    static Vec all(int16_t x) { return _mm256_set1_epi16(x); }
    static Vec least(Vec a, Vec b) { return _mm256_min_epi16(a, b); }
    static Vec largest(Vec a, Vec b) { return _mm256_max_epi16(a, b); }
    static Vec both(Vec a, Vec b) { return _mm256_and_si256(a, b); }
    static Vec plus(Vec a, Vec b) { return _mm256_adds_epi16(a, b); }
    static Vec minus(Vec a, Vec b) { return _mm256_subs_epi16(a, b); }

    static Mask more(Vec a, Vec b) { return {_mm256_cmpgt_epi16(a, b)}; }
    static Mask same(Vec a, Vec b) { return {_mm256_cmpeq_epi16(a, b)}; }
    static Mask differ(Mask a, Mask b) { return {_mm256_xor_si256(a.m, b.m)}; }
    static Mask either(Mask a, Mask b) { return {_mm256_or_si256(a.m, b.m)}; }
    static Mask without(Mask a, Mask b) { return {_mm256_andnot_si256(b.m, a.m)}; }
    static Mask flag(bool on) { return {_mm256_set1_epi16(static_cast<int16_t>(-static_cast<int>(on)))}; }
    static Mask negative(Vec a) { return {_mm256_srai_epi16(a, 15)}; }
    static bool any(Mask m) { return _mm256_movemask_epi8(m.m) != 0; }
    static uint32_t bits(Mask m) {
        const auto b = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_packs_epi16(m.m, m.m)));
        return (b & 0xffu) | (b >> 8 & 0xff00u);
    }
    static Vec choose(Mask m, Vec yes, Vec no) { return _mm256_blendv_epi8(no, yes, m.m); }
    static Vec doubt(Vec v, Mask m) { return _mm256_or_si256(v, _mm256_srli_epi16(m.m, 12)); }

    // Nibble d of a 32-bit lane counts turn d: at most four in one vector, so three vectors fit; then they move to bytes.
    struct Tally {
        __m256i shift;  // of the first turn
        __m256i nibbles, even, odd;
        int room;
    };
    static Tally tally(int first) {
        const __m256i zero = _mm256_setzero_si256();
        return {_mm256_set1_epi16(static_cast<int16_t>(4 * first)), zero, zero, zero, 3};
    }
    static void add(Tally& t, Vec in, Vec out, Mask m) {
        const __m256i not_m = _mm256_xor_si256(m.m, _mm256_set1_epi16(-1));
        // Shifts of 32 and more, and those below zero once they are bytes, give nothing.
        const auto shift = [&](Vec turn) {
            return _mm256_and_si256(_mm256_or_si256(_mm256_sub_epi16(_mm256_slli_epi16(turn, 2), t.shift), not_m),
                                    _mm256_set1_epi16(255));
        };
        const __m256i bytes = _mm256_packus_epi16(shift(in), shift(out)), one = _mm256_set1_epi32(1);
        const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
        const auto eight = [&](__m128i b) { return _mm256_sllv_epi32(one, _mm256_cvtepu8_epi32(b)); };
        const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(eight(low), eight(_mm_srli_si128(low, 8))),
                                             _mm256_add_epi32(eight(high), eight(_mm_srli_si128(high, 8))));
        t.nibbles = _mm256_add_epi32(t.nibbles, sum);
        if (--t.room == 0) spill(t);
    }
    static void read(Tally t, int* n) {
        spill(t);
        // Even bytes are turns 0, 2, 4, 6 and odd ones 1, 3, 5, 7.
        const __m256i a = _mm256_unpacklo_epi8(t.even, t.odd), b = _mm256_unpackhi_epi8(t.even, t.odd),
                      ab = _mm256_add_epi8(a, b);
        const __m128i c = _mm_add_epi8(_mm256_castsi256_si128(ab), _mm256_extracti128_si256(ab, 1));
        const __m128i sums = _mm_add_epi8(c, _mm_srli_si128(c, 8));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(n), _mm256_cvtepu8_epi32(sums));
    }

    static Vec times(const float* inverse, float u, int16_t offset) {
        const __m256 v = _mm256_set1_ps(u);
        return code(_mm256_mul_ps(v, _mm256_loadu_ps(inverse)), _mm256_mul_ps(v, _mm256_loadu_ps(inverse + 8)), offset);
    }
    static Vec times(const float* inverse, const double* ends, double threshold, int16_t offset) {
        const __m256d t = _mm256_set1_pd(threshold);
        const auto four = [&](int i) { return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_loadu_pd(ends + i), t)); };
        const __m256 even = _mm256_set_m128(four(8), four(0)), odd = _mm256_set_m128(four(12), four(4));
        return code(_mm256_mul_ps(even, _mm256_loadu_ps(inverse)), _mm256_mul_ps(odd, _mm256_loadu_ps(inverse + 8)),
                    offset);
    }

private:
    static void spill(Tally& t) {
        const __m256i four = _mm256_set1_epi32(0x0f0f0f0f);
        t.even = _mm256_add_epi8(t.even, _mm256_and_si256(t.nibbles, four));
        t.odd = _mm256_add_epi8(t.odd, _mm256_and_si256(_mm256_srli_epi32(t.nibbles, 4), four));
        t.nibbles = _mm256_setzero_si256();
        t.room = 3;
    }
    static Vec code(__m256 even, __m256 odd, int16_t offset) {
        // A place beyond the start (a value outside of a column's support) is crossed at the start; packing holds the other end.
        const __m256 most = _mm256_set1_ps(CODE_UNIT);
        const __m256i units = _mm256_packus_epi32(_mm256_cvtps_epi32(_mm256_min_ps(even, most)),
                                                  _mm256_cvtps_epi32(_mm256_min_ps(odd, most)));
        return _mm256_add_epi16(_mm256_slli_epi16(units, 4), _mm256_set1_epi16(offset));
    }
};

}  // namespace
}  // namespace gigrad
