// Which walk runs: what the processor can do, unless it was chosen.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "lanes/lanes.hpp"

namespace gigrad {

extern const LaneKernel LANES_PLAIN;
#ifdef GIGRAD_X86
extern const LaneKernel LANES_AVX2;
extern const LaneKernel LANES_AVX512;
#endif

// The vector walks that this processor can run, the fastest first.
inline std::vector<const LaneKernel*> runnable_lanes() {
    std::vector<const LaneKernel*> out;
#ifdef GIGRAD_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt"))
        out.push_back(&LANES_AVX512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("popcnt"))
        out.push_back(&LANES_AVX2);
#endif
    out.push_back(&LANES_PLAIN);
    return out;
}

// The chosen walk; null for the portable one, node by node in float64. Calls read it once, when they begin.
inline std::atomic<const LaneKernel*>& chosen_lanes() {
    static std::atomic<const LaneKernel*> chosen{[]() -> const LaneKernel* {
        const LaneKernel* fastest = runnable_lanes().front();
        return fastest == &LANES_PLAIN ? nullptr : fastest;
    }()};
    return chosen;
}

}  // namespace gigrad
