// Instruction sets that an x86 processor and its operating system support. The compilers' own query
// (__builtin_cpu_supports) is in their run-time library, which is not linked on Windows.
#pragma once

#ifdef GIGRAD_X86

#include <cpuid.h>

#include <cstdint>

namespace gigrad {

struct Processor {
    bool avx2 = false, avx512 = false;  // with all extensions that the walks of that name are compiled for

    Processor() {
        unsigned a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        const bool popcnt = c >> 23 & 1, saves = c >> 27 & 1;
        if (!popcnt || !saves || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
        const uint64_t saved = saved_registers();
        constexpr unsigned BMI = 1u << 3, AVX2 = 1u << 5,
                           AVX512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F DQ BW VL
        constexpr uint64_t HALVES = 0x6, WHOLE = 0xe6;  // 128 and 256 bits; masks and 512 bits as well
        avx2 = (b & (BMI | AVX2)) == (BMI | AVX2) && (saved & HALVES) == HALVES;
        avx512 = avx2 && (b & AVX512) == AVX512 && (saved & WHOLE) == WHOLE;
    }

private:
    // Registers that the system saves at a context switch.
    static uint64_t saved_registers() {
        uint32_t low, high;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        return uint64_t{high} << 32 | low;
    }
};

inline const Processor& this_processor() {
    static const Processor processor;
    return processor;
}

}  // namespace gigrad

#endif
