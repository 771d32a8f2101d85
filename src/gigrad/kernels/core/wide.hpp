// For loops over arrays: compiled several times, for more instructions than every machine has. Results are the same bits
// with any of them, since no multiplication is fused with an addition.
#pragma once

#include <cstddef>  // which libc it is

#include "core/processor.hpp"

// Twice, once with AVX2; the version is chosen when the library is loaded (function multiversioning, which glibc's
// loader supports and musl's does not).
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define GIGRAD_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define GIGRAD_WIDE
#endif

// Three times, also with the whole width of AVX-512, which the compiler does not use unless it is told to: for the few
// loops that take much of the time. GIGRAD_WIDEST(name, (parameters), (arguments)) makes the function `name` from
// `name_loop`, which must be GIGRAD_INLINED.
#define GIGRAD_INLINED inline __attribute__((always_inline))
#ifdef GIGRAD_X86
#ifdef __clang__
#define GIGRAD_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define GIGRAD_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#endif
#define GIGRAD_WIDEST(name, parameters, arguments)                                                \
    GIGRAD_AVX512 inline void name##_avx512 parameters { name##_loop arguments; }                 \
    __attribute__((target("avx2"))) inline void name##_avx2 parameters { name##_loop arguments; } \
    inline void name##_plain parameters { name##_loop arguments; }                                \
    inline void name parameters {                                                                 \
        if (this_processor().avx512)                                                              \
            name##_avx512 arguments;                                                              \
        else if (this_processor().avx2)                                                           \
            name##_avx2 arguments;                                                                \
        else                                                                                      \
            name##_plain arguments;                                                               \
    }
#else
#define GIGRAD_WIDEST(name, parameters, arguments) \
    inline void name parameters { name##_loop arguments; }
#endif
