// Kernels for AMX: tiles of 16 rows by 64 bytes, multiplied by one instruction.
// Everything between products is AVX-512.

#include "kernels.h"

#if defined(BOTHENDS_AMX)

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")
namespace amx {

#include "vector_avx512.inl"

#define TILE_LOADCONFIG _tile_loadconfig
#define TILE_ZERO(tile) _tile_zero(tile)
#define TILE_LOADD(tile, from, stride) _tile_loadd(tile, from, stride)
#define TILE_DPBUSD(sums, rows, weights) _tile_dpbusd(sums, rows, weights)
#define TILE_STORED(tile, to, stride) _tile_stored(tile, to, stride)
#define TILE_RELEASE _tile_release
#include "products_amx.inl"

}  // namespace amx
END_TARGET

const Kernels kAmxKernels = {"amx",
                             {amx::kPanel, false},
                             amx::product,
                             kAvx512VnniKernels.quantise,
                             kAvx512VnniKernels.quantise_relu,
                             kAvx512VnniKernels.normalise,
                             kAvx512VnniKernels.activate,
                             kAvx512VnniKernels.embed,
                             kAvx512VnniKernels.attend,
                             kAvx512VnniKernels.scan_words};

}  // namespace bothends

#endif
