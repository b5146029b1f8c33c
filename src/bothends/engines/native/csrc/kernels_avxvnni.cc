// Kernels for AVX-VNNI, the 256-bit VNNI of processors without AVX-512.

#include "kernels.h"

#if defined(BOTHENDS_AVXVNNI)

#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma,avxvnni")
namespace avx_vnni {

#include "vector_avx2.inl"

#include "row_operations.inl"

#include "prefetch.inl"

// Steps are summed in int32s at once, in groups or not.
struct Group {
  Group(__m256i before, __m256i row, __m256i weights) : sums(before) { add(row, weights); }
  void add(__m256i row, __m256i weights) { sums = _mm256_dpbusd_avx_epi32(sums, row, weights); }
  __m256i end(__m256i) const { return sums; }

  __m256i sums;
};

#include "products_256.inl"

}  // namespace avx_vnni
END_TARGET

const Kernels kAvxVnniKernels = {
    "avx-vnni",         {avx_vnni::kPanel, true},      avx_vnni::product,
    avx_vnni::quantise, avx_vnni::quantise_relu, avx_vnni::normalise,
    avx_vnni::activate, avx_vnni::embed,         avx_vnni::attend,
    avx_vnni::scan_words};

}  // namespace bothends

#endif
