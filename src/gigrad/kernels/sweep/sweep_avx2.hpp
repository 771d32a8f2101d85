// Eight lanes of int32 with AVX2; see sweep_plain.hpp for the meaning of each function.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace gigrad {
namespace {

// For each set of lanes, where they come from when they are moved together.
struct Together {
    alignas(32) int32_t from[256][8];
    constexpr Together() : from{} {
        for (int bits = 0; bits < 256; ++bits)
            for (int i = 0, n = 0; i < 8; ++i)
                if (bits >> i & 1) from[bits][n++] = i;
    }
};
constexpr Together TOGETHER;

struct SweepAvx2 {
    static constexpr size_t LANES = 8;
    using Vec = __m256i;

    static Vec load(const int32_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static void store(int32_t* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
    using Order = __m256i;
    static Order together(uint32_t bits) { return load(TOGETHER.from[bits]); }
    static Vec arrange(Vec v, Order from) { return _mm256_permutevar8x32_epi32(v, from); }
    static Vec all(uint32_t x) { return _mm256_set1_epi32(static_cast<int32_t>(x)); }
    static Vec all(int32_t x) { return _mm256_set1_epi32(x); }

    static Vec plus(Vec a, Vec b) { return _mm256_add_epi32(a, b); }
    static Vec minus(Vec a, Vec b) { return _mm256_sub_epi32(a, b); }
    static Vec least(Vec a, Vec b) { return _mm256_min_epi32(a, b); }
    static Vec largest(Vec a, Vec b) { return _mm256_max_epi32(a, b); }
    static Vec both(Vec a, Vec b) { return _mm256_and_si256(a, b); }
    static Vec either(Vec a, Vec b) { return _mm256_or_si256(a, b); }
    static Vec less_bits(Vec a, Vec b) { return _mm256_andnot_si256(b, a); }
    static Vec up(Vec a, Vec by) { return _mm256_sllv_epi32(a, by); }
    template <int BY>
    static Vec down(Vec a) {
        return _mm256_srli_epi32(a, BY);
    }
    static Vec more(Vec a, Vec b) { return _mm256_cmpgt_epi32(a, b); }
    static Vec same(Vec a, Vec b) { return _mm256_cmpeq_epi32(a, b); }
    static Vec numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
    static Vec choose(Vec m, Vec yes, Vec no) { return _mm256_blendv_epi8(no, yes, m); }
    static uint32_t bits(Vec a) { return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(a))); }
};

}  // namespace
}  // namespace gigrad
