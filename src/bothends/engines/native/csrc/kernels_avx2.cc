// Kernels for AVX2: maddubs, which adds two products into an int16, and madd, which adds two of those.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels.h"
#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma")
namespace avx2 {

#include "vector_avx2.inl"

#include "row_operations.inl"

#include "prefetch.inl"

// Products of a group of steps, summed in int16s. Seven bits of weight keep two products within an int16:
// maddubs saturates, and never has to. The packer has made sure that the sums fit too.
struct Group {
  Group(__m256i, __m256i row, __m256i weights) : words(_mm256_maddubs_epi16(row, weights)) {}
  void add(__m256i row, __m256i weights) {
    // Sums one after another: GCC would rather hold all products first, for which registers are missing.
    asm("" : "+x"(words));
    words = _mm256_add_epi16(words, _mm256_maddubs_epi16(row, weights));
  }
  __m256i end(__m256i sums) const {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
  }

  __m256i words;
};

#include "products_256.inl"

}  // namespace avx2
END_TARGET

const Kernels kAvx2Kernels = {"avx2",         {avx2::kPanel, true},     avx2::product,
                              avx2::quantise, avx2::quantise_relu, avx2::normalise,
                              avx2::activate, avx2::embed,         avx2::attend,
                              avx2::scan_words};

}  // namespace bothends

#endif
