// Kernels for AVX-VNNI, the 256-bit VNNI of processors without AVX-512.

#include "kernels.h"

#if defined(BOTHENDS_AVXVNNI)

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma,avxvnni")
namespace avx_vnni {

#include "vector_avx2.inl"

#include "row_operations.inl"

#include "prefetch.inl"

inline __m256i add_step(__m256i sums, __m256i row, __m256i weights) {
  return _mm256_dpbusd_avx_epi32(sums, row, weights);
}

inline __m256i add_pair(__m256i sums, __m256i row, __m256i weights, __m256i next_row,
                        __m256i next_weights) {
  return add_step(add_step(sums, row, weights), next_row, next_weights);
}

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
