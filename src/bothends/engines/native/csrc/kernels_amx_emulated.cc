// The products of AMX with tiles in plain memory: for tests on a processor that has none.
//
// Slow, and chosen only by its name. It shows that the layout, the strides and the sums of
// products_amx.inl are right; the instructions themselves are the processor's.

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "kernels.h"
#include "target.h"

namespace bothends {

BEGIN_TARGET("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
namespace amx_emulated {

#include "vector_avx512.inl"

struct TileConfiguration;
void load_configuration(const TileConfiguration* configuration);
void zero_tile(int tile);
void load_tile(int tile, const void* from, size_t stride);
void multiply_tiles(int sums, int rows, int weights);
void store_tile(int tile, void* to, size_t stride);

#define TILE_LOADCONFIG load_configuration
#define TILE_ZERO(tile) zero_tile(tile)
#define TILE_LOADD(tile, from, stride) load_tile(tile, from, stride)
#define TILE_DPBUSD(sums, rows, weights) multiply_tiles(sums, rows, weights)
#define TILE_STORED(tile, to, stride) store_tile(tile, to, stride)
#define TILE_RELEASE() load_configuration(nullptr)
#include "products_amx.inl"

struct Tile {
  int rows = 0, bytes = 0;
  uint8_t data[kTileRows][kTileBytes] = {};
};
thread_local Tile tiles[8];

void load_configuration(const TileConfiguration* configuration) {
  for (int i = 0; i < 8; ++i) {
    tiles[i] = Tile();
    if (configuration == nullptr) continue;
    tiles[i].rows = configuration->rows[i];
    tiles[i].bytes = configuration->bytes_per_row[i];
  }
}

void zero_tile(int tile) { std::memset(tiles[tile].data, 0, sizeof tiles[tile].data); }

void load_tile(int tile, const void* from, size_t stride) {
  zero_tile(tile);
  for (int row = 0; row < tiles[tile].rows; ++row) {
    std::memcpy(tiles[tile].data[row], static_cast<const uint8_t*>(from) + row * stride,
                tiles[tile].bytes);
  }
}

void multiply_tiles(int sums, int rows, int weights) {
  for (int m = 0; m < tiles[sums].rows; ++m) {
    for (int n = 0; n < tiles[sums].bytes / 4; ++n) {
      int32_t sum;
      std::memcpy(&sum, &tiles[sums].data[m][4 * n], sizeof sum);
      for (int k = 0; k < tiles[rows].bytes; ++k) {
        sum += tiles[rows].data[m][k] *
               static_cast<int8_t>(tiles[weights].data[k / 4][4 * n + k % 4]);
      }
      std::memcpy(&tiles[sums].data[m][4 * n], &sum, sizeof sum);
    }
  }
}

void store_tile(int tile, void* to, size_t stride) {
  for (int row = 0; row < tiles[tile].rows; ++row) {
    std::memcpy(static_cast<uint8_t*>(to) + row * stride, tiles[tile].data[row], tiles[tile].bytes);
  }
}

}  // namespace amx_emulated
END_TARGET

const Kernels kAmxEmulatedKernels = {"amx-emulated",
                                     {amx_emulated::kPanel, false},
                                     amx_emulated::product,
                                     kAvx512VnniKernels.quantise,
                                     kAvx512VnniKernels.quantise_relu,
                                     kAvx512VnniKernels.normalise,
                                     kAvx512VnniKernels.activate,
                                     kAvx512VnniKernels.embed,
                                     kAvx512VnniKernels.attend,
                                     kAvx512VnniKernels.scan_words};

}  // namespace bothends

#endif
