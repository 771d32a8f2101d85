// Thirty-two lanes of AVX-512 (F, BW, VL, DQ); see isa_plain.hpp for the meaning of each function.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lanes/lanes.hpp"

namespace gigrad {
namespace {

struct IsaAvx512 {
    static constexpr int LANES = 32;
    using Vec = __m512i;
    using Mask = __mmask32;

    static Vec load(const int16_t* p) { return _mm512_loadu_si512(p); }
    static void store(int16_t* p, Vec v) { _mm512_storeu_si512(p, v); }
    static Vec all(int16_t x) { return _mm512_set1_epi16(x); }
    static Vec least(Vec a, Vec b) { return _mm512_min_epi16(a, b); }
    static Vec largest(Vec a, Vec b) { return _mm512_max_epi16(a, b); }
    static Vec both(Vec a, Vec b) { return _mm512_and_si512(a, b); }
    static Vec plus(Vec a, Vec b) { return _mm512_adds_epi16(a, b); }
    static Vec minus(Vec a, Vec b) { return _mm512_subs_epi16(a, b); }

    static Mask more(Vec a, Vec b) { return _mm512_cmpgt_epi16_mask(a, b); }
    static Mask same(Vec a, Vec b) { return _mm512_cmpeq_epi16_mask(a, b); }
    static Mask differ(Mask a, Mask b) { return a ^ b; }
    static Mask either(Mask a, Mask b) { return a | b; }
    static Mask without(Mask a, Mask b) { return a & ~b; }
    static Mask flag(bool on) { return on ? ~Mask{0} : Mask{0}; }
    static Mask negative(Vec a) { return _mm512_movepi16_mask(a); }
    static bool any(Mask m) { return m != 0; }
    static uint32_t bits(Mask m) { return m; }
    static Vec choose(Mask m, Vec yes, Vec no) { return _mm512_mask_blend_epi16(m, no, yes); }
    static Vec doubt(Vec v, Mask m) { return _mm512_mask_blend_epi16(m, v, _mm512_or_si512(v, _mm512_set1_epi16(15))); }

    struct Tally {
        int first;
        int n[8];
    };
    static Tally tally(int first) { return {first, {}}; }
    static void add(Tally& t, Vec in, Vec out, Mask m) {
        const __m512i none = _mm512_set1_epi16(-1);
        const __m512i turns =
            _mm512_packs_epi16(_mm512_mask_blend_epi16(m, none, in), _mm512_mask_blend_epi16(m, none, out));
        for (int d = 0; d < 8; ++d)
            t.n[d] +=
                __builtin_popcountll(_mm512_cmpeq_epi8_mask(turns, _mm512_set1_epi8(static_cast<char>(t.first + d))));
    }
    static void read(const Tally& t, int* n) {
        for (int d = 0; d < 8; ++d) n[d] = t.n[d];
    }

    static Vec times(const float* inverse, float u, int16_t offset) {
        const __m512 v = _mm512_set1_ps(u);
        return code(_mm512_mul_ps(v, _mm512_loadu_ps(inverse)), _mm512_mul_ps(v, _mm512_loadu_ps(inverse + 16)),
                    offset);
    }
    static Vec times(const float* inverse, const double* ends, double threshold, int16_t offset) {
        const __m256d t = _mm256_set1_pd(threshold);
        const auto four = [&](int i) { return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_loadu_pd(ends + i), t)); };
        const auto groups = [&](int i) {  // lanes i, i + 8, i + 16, i + 24 and the three after each
            const __m256 low = _mm256_set_m128(four(i + 8), four(i)),
                         high = _mm256_set_m128(four(i + 24), four(i + 16));
            return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
        };
        return code(_mm512_mul_ps(groups(0), _mm512_loadu_ps(inverse)),
                    _mm512_mul_ps(groups(4), _mm512_loadu_ps(inverse + 16)), offset);
    }

private:
    static Vec code(__m512 even, __m512 odd, int16_t offset) {
        const __m512 most = _mm512_set1_ps(CODE_UNIT);  // see isa_avx2.hpp
        const __m512i units = _mm512_packus_epi32(_mm512_cvtps_epi32(_mm512_min_ps(even, most)),
                                                  _mm512_cvtps_epi32(_mm512_min_ps(odd, most)));
        return _mm512_add_epi16(_mm512_slli_epi16(units, 4), _mm512_set1_epi16(offset));
    }
};

}  // namespace
}  // namespace gigrad
