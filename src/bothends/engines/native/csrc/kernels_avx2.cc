// Kernels for AVX2: maddubs, which adds two products into an int16, and madd, which adds two of those.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "kernels.h"
#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma")
namespace avx2 {

#include "vector_avx2.inl"

#include "row_operations.inl"

#include "prefetch.inl"

inline __m256i add_widened(__m256i sums, __m256i words) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
}

// Seven bits of weight keep two products within an int16: maddubs saturates, and never has to.
inline __m256i add_step(__m256i sums, __m256i row, __m256i weights) {
  return add_widened(sums, _mm256_maddubs_epi16(row, weights));
}

// The packer has made sure that four products fit an int16 too.
inline __m256i add_pair(__m256i sums, __m256i row, __m256i weights, __m256i next_row,
                        __m256i next_weights) {
  return add_widened(sums, _mm256_add_epi16(_mm256_maddubs_epi16(row, weights),
                                            _mm256_maddubs_epi16(next_row, next_weights)));
}

#include "products_256.inl"

}  // namespace avx2
END_TARGET

const Kernels kAvx2Kernels = {"avx2",         {avx2::kPanel, true},     avx2::product,
                              avx2::quantise, avx2::quantise_relu, avx2::normalise,
                              avx2::activate, avx2::embed,         avx2::attend,
                              avx2::scan_words};

}  // namespace bothends

#endif
