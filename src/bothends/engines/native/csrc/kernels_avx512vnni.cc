// Kernels for AVX512-VNNI.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "kernels.h"
#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace avx512_vnni {

#include "vector_avx512.inl"

#include "row_operations.inl"

#include "prefetch.inl"

#include "products_512.inl"

}  // namespace avx512_vnni
END_TARGET

const Kernels kAvx512VnniKernels = {
    "avx512-vnni",         {avx512_vnni::kPanel, false},      avx512_vnni::product,
    avx512_vnni::quantise, avx512_vnni::quantise_relu, avx512_vnni::normalise,
    avx512_vnni::activate, avx512_vnni::embed,         avx512_vnni::attend,
    avx512_vnni::scan_words};

}  // namespace bothends

#endif
