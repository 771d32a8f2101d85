// For loops over arrays: compiled twice, once with AVX2; the version is chosen when the library is loaded (function
// multiversioning, which glibc's loader supports and musl's does not).
#pragma once

#include <cstddef>  // which libc it is

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define GIGRAD_WIDE __attribute__((target_clones("avx2", "default")))
#define GIGRAD_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GIGRAD_WIDE
#define GIGRAD_WIDEST
#endif
