// For loops over arrays: compiled twice, once with AVX2, and chosen between when the library is loaded.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define GIGRAD_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define GIGRAD_WIDE
#endif
