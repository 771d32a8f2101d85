// Sixteen lanes of NEON, in two registers, so that sums come in the order of AVX2 and give the same bits; see
// isa_plain.hpp for the meaning of each function.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "lanes/lanes.hpp"

namespace gigrad {
namespace {

// For a turn, the nibble that counts it: four tables of bytes with two turns each, for turns 0 to 7 and for 8 to 15.
struct NeonNibbles {
    alignas(16) uint8_t of[2][4][16];
    constexpr NeonNibbles() : of{} {
        for (int first = 0; first < 2; ++first)
            for (int d = 0; d < 8; ++d) of[first][d / 2][8 * first + d] = d % 2 ? 16 : 1;
    }
};
constexpr NeonNibbles NEON_NIBBLES;
alignas(16) constexpr uint8_t NEON_BITS[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};

struct IsaNeon {
    static constexpr int LANES = 16;
    struct Vec {
        int16x8_t low, high;
    };
    struct Mask {
        uint16x8_t low, high;
    };

    static Vec load(const int16_t* p) { return {vld1q_s16(p), vld1q_s16(p + 8)}; }
    static void store(int16_t* p, Vec v) {
        vst1q_s16(p, v.low);
        vst1q_s16(p + 8, v.high);
    }
    static Vec all(int16_t x) { return {vdupq_n_s16(x), vdupq_n_s16(x)}; }
    static Vec least(Vec a, Vec b) { return {vminq_s16(a.low, b.low), vminq_s16(a.high, b.high)}; }
    static Vec largest(Vec a, Vec b) { return {vmaxq_s16(a.low, b.low), vmaxq_s16(a.high, b.high)}; }
    static Vec both(Vec a, Vec b) { return {vandq_s16(a.low, b.low), vandq_s16(a.high, b.high)}; }
    static Vec plus(Vec a, Vec b) { return {vqaddq_s16(a.low, b.low), vqaddq_s16(a.high, b.high)}; }
    static Vec minus(Vec a, Vec b) { return {vqsubq_s16(a.low, b.low), vqsubq_s16(a.high, b.high)}; }

    static Mask more(Vec a, Vec b) { return {vcgtq_s16(a.low, b.low), vcgtq_s16(a.high, b.high)}; }
    static Mask same(Vec a, Vec b) { return {vceqq_s16(a.low, b.low), vceqq_s16(a.high, b.high)}; }
    static Mask differ(Mask a, Mask b) { return {veorq_u16(a.low, b.low), veorq_u16(a.high, b.high)}; }
    static Mask either(Mask a, Mask b) { return {vorrq_u16(a.low, b.low), vorrq_u16(a.high, b.high)}; }
    static Mask without(Mask a, Mask b) { return {vbicq_u16(a.low, b.low), vbicq_u16(a.high, b.high)}; }
    static Mask flag(bool on) {
        const uint16x8_t m = vdupq_n_u16(on ? 0xffff : 0);
        return {m, m};
    }
    static Mask negative(Vec a) { return {vcltzq_s16(a.low), vcltzq_s16(a.high)}; }
    static bool any(Mask m) { return vmaxvq_u32(vreinterpretq_u32_u16(vorrq_u16(m.low, m.high))) != 0; }
    static uint32_t bits(Mask m) {
        const uint8x16_t one = vandq_u8(bytes(m.low, m.high), vld1q_u8(NEON_BITS));
        const uint8x16_t four = vpaddq_u8(vpaddq_u8(one, one), one), all = vpaddq_u8(four, four);
        return vgetq_lane_u16(vreinterpretq_u16_u8(all), 0);
    }
    static Vec choose(Mask m, Vec yes, Vec no) {
        return {vbslq_s16(m.low, yes.low, no.low), vbslq_s16(m.high, yes.high, no.high)};
    }
    static Vec doubt(Vec v, Mask m) { return {with_doubt(v.low, m.low), with_doubt(v.high, m.high)}; }

    // A nibble counts two in every step, so seven steps fit; then nibbles move to bytes.
    struct Tally {
        const uint8_t (*tables)[16];
        uint8x16_t nibbles[4], even[4], odd[4];
        int room;
    };
    static Tally tally(int first) {
        const uint8x16_t zero = vdupq_n_u8(0);
        return {NEON_NIBBLES.of[first / 8],
                {zero, zero, zero, zero},
                {zero, zero, zero, zero},
                {zero, zero, zero, zero},
                7};
    }
    static void add(Tally& t, Vec in, Vec out, Mask m) {
        const uint8x16_t there = bytes(m.low, m.high), opens = vornq_u8(bytes(in), there),
                         closes = vornq_u8(bytes(out), there);  // a table has nothing for 255
        for (int i = 0; i < 4; ++i) {
            const uint8x16_t table = vld1q_u8(t.tables[i]);
            t.nibbles[i] = vaddq_u8(t.nibbles[i], vaddq_u8(vqtbl1q_u8(table, opens), vqtbl1q_u8(table, closes)));
        }
        if (--t.room == 0) spill(t);
    }
    static void read(Tally t, int* n) {
        spill(t);
        uint16x8_t two[4];  // turns 2 i and 2 i + 1
        for (int i = 0; i < 4; ++i) two[i] = vpaddq_u16(vpaddlq_u8(t.even[i]), vpaddlq_u8(t.odd[i]));
        const uint16x8_t sums = vpaddq_u16(vpaddq_u16(two[0], two[1]), vpaddq_u16(two[2], two[3]));
        vst1q_s32(n, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(sums))));
        vst1q_s32(n + 4, vreinterpretq_s32_u32(vmovl_high_u16(sums)));
    }

    static Vec times(const float* inverse, float u, int16_t offset) {
        const auto four = [&](int i) { return vmulq_n_f32(vld1q_f32(inverse + i), u); };
        return {code(four(0), four(8), offset), code(four(4), four(12), offset)};
    }
    static Vec times(const float* inverse, const double* ends, double threshold, int16_t offset) {
        const float64x2_t t = vdupq_n_f64(threshold);
        const auto two = [&](int i) { return vsubq_f64(vld1q_f64(ends + i), t); };
        const auto four = [&](int lane, int place) {
            return vmulq_f32(vcvt_high_f32_f64(vcvt_f32_f64(two(lane)), two(lane + 2)), vld1q_f32(inverse + place));
        };
        return {code(four(0, 0), four(4, 8), offset), code(four(8, 4), four(12, 12), offset)};
    }

private:
    static int16x8_t with_doubt(int16x8_t v, uint16x8_t m) {
        return vorrq_s16(v, vreinterpretq_s16_u16(vshrq_n_u16(m, 12)));
    }
    // The lower halves of lanes.
    static uint8x16_t bytes(uint16x8_t low, uint16x8_t high) {
        return vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
    }
    static uint8x16_t bytes(Vec v) { return bytes(vreinterpretq_u16_s16(v.low), vreinterpretq_u16_s16(v.high)); }
    static void spill(Tally& t) {
        for (int i = 0; i < 4; ++i) {
            t.even[i] = vaddq_u8(t.even[i], vandq_u8(t.nibbles[i], vdupq_n_u8(15)));
            t.odd[i] = vsraq_n_u8(t.odd[i], t.nibbles[i], 4);
            t.nibbles[i] = vdupq_n_u8(0);
        }
        t.room = 7;
    }
    static int16x8_t code(float32x4_t first, float32x4_t last, int16_t offset) {
        // A place beyond the start (a value outside of a column's support) is crossed at the start. What is negative or
        // not a number becomes 0.
        const uint16x8_t units = vqmovn_high_u32(vqmovn_u32(vcvtnq_u32_f32(first)), vcvtnq_u32_f32(last));
        const uint16x8_t most = vminq_u16(units, vdupq_n_u16(static_cast<uint16_t>(CODE_UNIT)));
        return vreinterpretq_s16_u16(vmlaq_n_u16(vdupq_n_u16(static_cast<uint16_t>(offset)), most, 16));
    }
};

}  // namespace
}  // namespace gigrad
