// Sixteen lanes in plain C++: the operations that an instruction set must provide for the vector walk. It runs
// everywhere, which is how the logic that the other instruction sets share is tested on machines that do not have them.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "lanes/lanes.hpp"

namespace gigrad {
namespace {

struct IsaPlain {
    static constexpr int LANES = 16;
    struct Vec {
        int16_t lane[LANES];
    };
    struct Mask {
        bool lane[LANES];
    };

    template <class F>
    static Vec each(F f) {
        Vec out;
        for (int i = 0; i < LANES; ++i) out.lane[i] = static_cast<int16_t>(f(i));
        return out;
    }
    template <class F>
    static Mask test(F f) {
        Mask out;
        for (int i = 0; i < LANES; ++i) out.lane[i] = f(i);
        return out;
    }

    static Vec load(const int16_t* p) {
        return each([&](int i) { return p[i]; });
    }
    static void store(int16_t* p, Vec v) {
        for (int i = 0; i < LANES; ++i) p[i] = v.lane[i];
    }
    static Vec all(int16_t x) {
        return each([&](int) { return x; });
    }
    static Vec least(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Vec largest(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Vec both(Vec a, Vec b) {
        return each([&](int i) { return a.lane[i] & b.lane[i]; });
    }
    // Sums and differences saturate.
    static Vec plus(Vec a, Vec b) {
        return each([&](int i) { return stop(a.lane[i] + b.lane[i]); });
    }
    static Vec minus(Vec a, Vec b) {
        return each([&](int i) { return stop(a.lane[i] - b.lane[i]); });
    }

    static Mask more(Vec a, Vec b) {
        return test([&](int i) { return a.lane[i] > b.lane[i]; });
    }
    static Mask same(Vec a, Vec b) {
        return test([&](int i) { return a.lane[i] == b.lane[i]; });
    }
    static Mask differ(Mask a, Mask b) {
        return test([&](int i) { return a.lane[i] != b.lane[i]; });
    }
    static Mask either(Mask a, Mask b) {
        return test([&](int i) { return a.lane[i] || b.lane[i]; });
    }
    static Mask without(Mask a, Mask b) {
        return test([&](int i) { return a.lane[i] && !b.lane[i]; });
    }
    static Mask flag(bool on) {
        return test([&](int) { return on; });
    }
    static Mask negative(Vec a) {
        return test([&](int i) { return a.lane[i] < 0; });
    }
    static bool any(Mask m) { return bits(m) != 0; }
    static uint32_t bits(Mask m) {
        uint32_t out = 0;
        for (int i = 0; i < LANES; ++i) out |= static_cast<uint32_t>(m.lane[i]) << i;
        return out;
    }
    static Vec choose(Mask m, Vec yes, Vec no) {
        return each([&](int i) { return m.lane[i] ? yes.lane[i] : no.lane[i]; });
    }
    // Sets the four lowest bits where m holds.
    static Vec doubt(Vec v, Mask m) {
        return each([&](int i) { return m.lane[i] ? v.lane[i] | 15 : v.lane[i]; });
    }

    // How often each of eight turns, from `first` on, was among `in` and `out` of the lanes where m holds.
    struct Tally {
        int first;
        int n[8];
    };
    static Tally tally(int first) { return {first, {}}; }
    static void add(Tally& t, Vec in, Vec out, Mask m) {
        for (int i = 0; i < LANES; ++i)
            for (const int turn : {in.lane[i] - t.first, out.lane[i] - t.first})
                if (m.lane[i] && turn >= 0 && turn < 8) ++t.n[turn];
    }
    static void read(const Tally& t, int* n) {
        for (int d = 0; d < 8; ++d) n[d] = t.n[d];
    }

    // 16 * round(u * inverse) + offset. Inverses lie in groups of four: first the even groups of lanes, then the odd
    // ones (`inverse_place`). Overflow occurs only in lanes that do not cross, and is never used.
    static Vec times(const float* inverse, float u, int16_t offset) {
        return each([&](int i) { return code(u * inverse[inverse_place(i)], offset); });
    }
    static Vec times(const float* inverse, const double* ends, double threshold, int16_t offset) {
        return each(
            [&](int i) { return code(static_cast<float>(ends[i] - threshold) * inverse[inverse_place(i)], offset); });
    }
    static int inverse_place(int lane) { return (lane / 4 % 2) * (LANES / 2) + lane / 8 * 4 + lane % 4; }

private:
    static int16_t stop(int x) { return static_cast<int16_t>(x > 32767 ? 32767 : x < -32768 ? -32768 : x); }
    static int16_t code(float x, int16_t offset) {
        const uint32_t unit = x > 0.0f ? static_cast<uint32_t>(std::lrint(x < CODE_UNIT ? x : CODE_UNIT)) : 0u;
        return static_cast<int16_t>(static_cast<uint16_t>(unit << 4) + static_cast<uint16_t>(offset));
    }
};

}  // namespace
}  // namespace gigrad
