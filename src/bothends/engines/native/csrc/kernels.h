// What every instruction set implements: products of integers and operations on rows.
//
// Each set is one `Kernels` table, filled in by `kernels_<name>.cc`. The integers of a product are the
// same whichever computes them. A row's results never depend on the rows beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "packed_matrix.h"

namespace bothends {

// Rows `scales[m] * (values[m] - zero point)`; the zero point is 128, or 0 after a ReLU.
struct QuantisedRows {
  const uint8_t* values;  // (rows, stride), readable for 16 rows more
  size_t stride;
  const float* scales;
  int rows;
  bool positive;  // zero point 0
};

struct Norm {
  const float* gain;
  const float* shift;
};

enum class Activation { relu, gelu, silu };

// Keys and values of one attention: entry `e` has its key at `base + e * stride` and its value
// `value_offset` floats after it, heads side by side in both.
struct Entries {
  const float* base;
  size_t stride;
  size_t value_offset;
  const int32_t* indices;  // nullptr: entries 0 to count - 1
  int count;
};

// The best words of one row so far, best first, and what the sum over all words needs.
struct BestWords {
  float* logits;   // (wanted,)
  int32_t* ids;    // (wanted,)
  int wanted;
  int found = 0;
  float largest;   // of all logits seen
  double sum = 0;  // of exp(logit - largest)
};

struct Kernels {
  const char* name;
  Layout layout;  // of packed matrices

  // out[m][o] = (or +=) row scale * integer product * channel scale + bias, for panels first to last.
  // `out` starts at the first output of `first`, and is written up to whole panels.
  void (*product)(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last,
                  float* out, size_t out_stride, bool add);
  // Round a row of `n` numbers: its values and its scale. 127 steps from the zero point 128.
  void (*quantise)(const float* x, int n, uint8_t* values, float* scale);
  // Round the positive part of a row: 255 steps from 0.
  void (*quantise_relu)(const float* x, int n, uint8_t* values, float* scale);
  // Layer normalisation, rounded; `out`, which may be `x`, takes the row before rounding.
  void (*normalise)(const float* x, Norm norm, int n, float* out, uint8_t* values, float* scale);
  void (*activate)(float* x, int n, Activation activation);
  // out = scale * values + encoding
  void (*embed)(const int8_t* values, float scale, const float* encoding, int n, float* out);
  // Attention of one row with `heads` heads of `head_width`; `scores` is scratch of entries.count + 64.
  void (*attend)(const float* query, const Entries& entries, int heads, int head_width,
                 float* scores, float* out);
  // Take in the logits of words `first_id` to `first_id + n - 1`.
  void (*scan_words)(const float* logits, int n, int first_id, BestWords* best);
};

// Old compilers and assemblers lack these two; setup.py tries them.
#if defined(__x86_64__) && !defined(BOTHENDS_WITHOUT_AVXVNNI)
#define BOTHENDS_AVXVNNI
#endif
#if defined(__x86_64__) && !defined(BOTHENDS_WITHOUT_AMX)
#define BOTHENDS_AMX
#endif

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvxVnniKernels;
extern const Kernels kAvx512VnniKernels;
extern const Kernels kAmxKernels;
extern const Kernels kAmxEmulatedKernels;  // for tests
#endif

}  // namespace bothends
