// Which walk runs: the fastest that the processor supports, unless another is set.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/forest.hpp"
#include "core/processor.hpp"
#include "lanes/lanes.hpp"

namespace gigrad {

extern const LaneKernel LANES_PLAIN;
#if defined(GIGRAD_X86)
extern const LaneKernel LANES_AVX2;
extern const LaneKernel LANES_AVX512;
#elif defined(GIGRAD_NEON)
extern const LaneKernel LANES_NEON;
#endif

// The vector walks that this processor can run, the fastest first.
inline std::vector<const LaneKernel*> runnable_lanes() {
    std::vector<const LaneKernel*> out;
#if defined(GIGRAD_X86)
    const Processor& processor = this_processor();
    if (processor.avx512) out.push_back(&LANES_AVX512);
    if (processor.avx2) out.push_back(&LANES_AVX2);
#elif defined(GIGRAD_NEON)
    out.push_back(&LANES_NEON);
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

// The vector walk for some trees; null if they are faster node by node, see policy.hpp.
inline const LaneKernel* lanes_for(const Forest& forest) { return forest.tangled() ? nullptr : chosen_lanes().load(); }

}  // namespace gigrad
