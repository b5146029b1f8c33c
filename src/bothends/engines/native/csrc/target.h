// Compiling some functions for an instruction set that the rest of the build does not assume.
//
// Between BEGIN_TARGET("avx2,fma") and END_TARGET every function may use those instructions, and is
// called only after the processor was asked. Headers are included before BEGIN_TARGET: a function of
// the standard library must not be compiled for a processor that may not be there.
#pragma once

#define BOTHENDS_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define BEGIN_TARGET(sets) \
  BOTHENDS_PRAGMA(clang attribute push(__attribute__((target(sets))), apply_to = function))
#define END_TARGET BOTHENDS_PRAGMA(clang attribute pop)
#else
#define BEGIN_TARGET(sets) BOTHENDS_PRAGMA(GCC push_options) BOTHENDS_PRAGMA(GCC target(sets))
#define END_TARGET BOTHENDS_PRAGMA(GCC pop_options)
#endif
