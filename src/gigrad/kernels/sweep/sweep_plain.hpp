// Eight lanes of int32 in plain C++: the operations that an instruction set must provide for the sweep.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gigrad {
namespace {

struct SweepPlain {
    static constexpr size_t LANES = 8;
    struct Vec {
        int32_t lane[LANES];
    };

    template <class F>
    static Vec each(F f) {
        Vec out;
        for (size_t i = 0; i < LANES; ++i) out.lane[i] = static_cast<int32_t>(f(i));
        return out;
    }
    static uint32_t unsign(int32_t x) { return static_cast<uint32_t>(x); }

    static Vec load(const int32_t* p) {
        return each([&](size_t i) { return p[i]; });
    }
    static void store(int32_t* p, Vec v) {
        for (size_t i = 0; i < LANES; ++i) p[i] = v.lane[i];
    }
    // Moves the lanes of `bits` to the front; the rest is unspecified.
    using Order = Vec;
    static Order together(uint32_t bits) {
        Vec from{};
        for (size_t i = 0, n = 0; i < LANES; ++i)
            if (bits >> i & 1) from.lane[n++] = static_cast<int32_t>(i);
        return from;
    }
    static Vec arrange(Vec v, Order from) {
        return each([&](size_t i) { return v.lane[from.lane[i]]; });
    }
    static Vec all(uint32_t x) {
        return each([&](size_t) { return x; });
    }
    static Vec all(int32_t x) {
        return each([&](size_t) { return x; });
    }

    // Sums and differences wrap around.
    static Vec plus(Vec a, Vec b) {
        return each([&](size_t i) { return unsign(a.lane[i]) + unsign(b.lane[i]); });
    }
    static Vec minus(Vec a, Vec b) {
        return each([&](size_t i) { return unsign(a.lane[i]) - unsign(b.lane[i]); });
    }
    static Vec least(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Vec largest(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Vec both(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] & b.lane[i]; });
    }
    static Vec either(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] | b.lane[i]; });
    }
    static Vec less_bits(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] & ~b.lane[i]; });
    }
    static Vec up(Vec a, Vec by) {
        return each([&](size_t i) { return unsign(a.lane[i]) << by.lane[i]; });
    }
    template <int BY>
    static Vec down(Vec a) {
        return each([&](size_t i) { return unsign(a.lane[i]) >> BY; });
    }

    // True is -1 in a lane.
    static Vec more(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] > b.lane[i] ? -1 : 0; });
    }
    static Vec same(Vec a, Vec b) {
        return each([&](size_t i) { return a.lane[i] == b.lane[i] ? -1 : 0; });
    }
    static Vec numbers() {
        return each([](size_t i) { return i; });
    }
    static Vec choose(Vec m, Vec yes, Vec no) {
        return each([&](size_t i) { return m.lane[i] ? yes.lane[i] : no.lane[i]; });
    }
    // The signs of the lanes.
    static uint32_t bits(Vec a) {
        uint32_t out = 0;
        for (size_t i = 0; i < LANES; ++i) out |= (unsign(a.lane[i]) >> 31) << i;
        return out;
    }
};

}  // namespace
}  // namespace gigrad
