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

// Seven bits of weight keep a pair of products within an int16: maddubs saturates, and never has to.
inline __m256i add_products(__m256i sums, __m256i row, __m256i weights) {
  const __m256i pairs = _mm256_maddubs_epi16(row, weights);
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "products_256.inl"

}  // namespace avx2
END_TARGET

const Kernels kAvx2Kernels = {"avx2",         avx2::kPanel,        avx2::product,
                              avx2::quantise, avx2::quantise_relu, avx2::normalise,
                              avx2::activate, avx2::embed,         avx2::attend,
                              avx2::scan_words};

}  // namespace bothends

#endif
