// Eight lanes of int32 with NEON, in two registers; see sweep_plain.hpp for the meaning of each function.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace gigrad {
namespace {

// For each set of lanes, where their bytes come from when they are moved together.
struct TogetherBytes {
    alignas(32) uint8_t from[256][32];
    constexpr TogetherBytes() : from{} {
        for (int bits = 0; bits < 256; ++bits)
            for (int i = 0, n = 0; i < 8; ++i)
                if (bits >> i & 1)
                    for (int b = 0; b < 4; ++b) from[bits][n++] = static_cast<uint8_t>(4 * i + b);
    }
};
constexpr TogetherBytes TOGETHER_BYTES;
alignas(16) constexpr int16_t NEON_PLACES[8] = {0, 1, 2, 3, 4, 5, 6, 7};
alignas(16) constexpr int32_t NEON_NUMBERS[8] = {0, 1, 2, 3, 4, 5, 6, 7};

struct SweepNeon {
    static constexpr size_t LANES = 8;
    struct Vec {
        int32x4_t low, high;
    };

    static Vec load(const int32_t* p) { return {vld1q_s32(p), vld1q_s32(p + 4)}; }
    static void store(int32_t* p, Vec v) {
        vst1q_s32(p, v.low);
        vst1q_s32(p + 4, v.high);
    }
    struct Order {
        uint8x16_t low, high;
    };
    static Order together(uint32_t bits) {
        const uint8_t* from = TOGETHER_BYTES.from[bits];
        return {vld1q_u8(from), vld1q_u8(from + 16)};
    }
    static Vec arrange(Vec v, Order from) {
        const uint8x16x2_t bytes{{vreinterpretq_u8_s32(v.low), vreinterpretq_u8_s32(v.high)}};
        return {vreinterpretq_s32_u8(vqtbl2q_u8(bytes, from.low)), vreinterpretq_s32_u8(vqtbl2q_u8(bytes, from.high))};
    }
    static Vec all(uint32_t x) { return all(static_cast<int32_t>(x)); }
    static Vec all(int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }

    static Vec plus(Vec a, Vec b) { return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)}; }
    static Vec minus(Vec a, Vec b) { return {vsubq_s32(a.low, b.low), vsubq_s32(a.high, b.high)}; }
    static Vec least(Vec a, Vec b) { return {vminq_s32(a.low, b.low), vminq_s32(a.high, b.high)}; }
    static Vec largest(Vec a, Vec b) { return {vmaxq_s32(a.low, b.low), vmaxq_s32(a.high, b.high)}; }
    static Vec both(Vec a, Vec b) { return {vandq_s32(a.low, b.low), vandq_s32(a.high, b.high)}; }
    static Vec either(Vec a, Vec b) { return {vorrq_s32(a.low, b.low), vorrq_s32(a.high, b.high)}; }
    static Vec less_bits(Vec a, Vec b) { return {vbicq_s32(a.low, b.low), vbicq_s32(a.high, b.high)}; }
    static Vec up(Vec a, Vec by) { return {vshlq_s32(a.low, by.low), vshlq_s32(a.high, by.high)}; }
    template <int BY>
    static Vec down(Vec a) {
        return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.low), BY)),
                vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.high), BY))};
    }
    static Vec more(Vec a, Vec b) { return truth(vcgtq_s32(a.low, b.low), vcgtq_s32(a.high, b.high)); }
    static Vec same(Vec a, Vec b) { return truth(vceqq_s32(a.low, b.low), vceqq_s32(a.high, b.high)); }
    static Vec numbers() { return load(NEON_NUMBERS); }
    static Vec choose(Vec m, Vec yes, Vec no) {
        return {vbslq_s32(vreinterpretq_u32_s32(m.low), yes.low, no.low),
                vbslq_s32(vreinterpretq_u32_s32(m.high), yes.high, no.high)};
    }
    static uint32_t bits(Vec a) {
        const uint16x8_t upper = vuzp2q_u16(vreinterpretq_u16_s32(a.low), vreinterpretq_u16_s32(a.high));
        return vaddvq_u16(vshlq_u16(vshrq_n_u16(upper, 15), vld1q_s16(NEON_PLACES)));
    }

private:
    static Vec truth(uint32x4_t low, uint32x4_t high) {
        return {vreinterpretq_s32_u32(low), vreinterpretq_s32_u32(high)};
    }
};

}  // namespace
}  // namespace gigrad
