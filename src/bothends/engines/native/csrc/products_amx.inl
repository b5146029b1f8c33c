// Products with tiles. TILE_... are the instructions of AMX, or their emulation in a test.
//
// A packed panel of 64 outputs is four tiles of weights side by side: tile row `i` holds four inputs of
// 16 outputs, 64 bytes out of each 256.

constexpr int kPanel = 64;
constexpr int kTileRows = 16;
constexpr int kTileBytes = 64;
constexpr int kSumTiles = kPanel / 16;  // tiles 0 to 3; 4 is of rows, 5 of weights

// Palette 1 of the architecture: eight tiles of at most 16 rows by 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};
};

void product(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last, float* out,
             size_t out_stride, bool add) {
  // Few rows make small tiles, which take less time. More than 16 are cut into tiles of 16, and what
  // the last one reads past the end is readable, computed, and left out below.
  const int height = rows.rows < kTileRows ? rows.rows : kTileRows;
  TileConfiguration configuration;
  for (int tile = 0; tile < kSumTiles + 2; ++tile) {
    configuration.bytes_per_row[tile] = kTileBytes;
    configuration.rows[tile] = static_cast<uint8_t>(tile == kSumTiles + 1 ? kTileRows : height);
  }
  TILE_LOADCONFIG(&configuration);
  alignas(64) int32_t sums[kSumTiles][kTileRows * 16];
  for (int panel = first; panel < last; ++panel) {
    const int8_t* weights = matrix.panel_values(panel);
    for (int m = 0; m < rows.rows; m += kTileRows) {
      TILE_ZERO(0);
      TILE_ZERO(1);
      TILE_ZERO(2);
      TILE_ZERO(3);
      for (int input = 0; input < matrix.padded_inputs; input += kTileBytes) {
        const int8_t* from = weights + input * kPanel;
        TILE_LOADD(4, rows.values + m * rows.stride + input, rows.stride);
        TILE_LOADD(5, from, kPanel * 4);
        TILE_DPBUSD(0, 4, 5);
        TILE_LOADD(5, from + 64, kPanel * 4);
        TILE_DPBUSD(1, 4, 5);
        TILE_LOADD(5, from + 128, kPanel * 4);
        TILE_DPBUSD(2, 4, 5);
        TILE_LOADD(5, from + 192, kPanel * 4);
        TILE_DPBUSD(3, 4, 5);
      }
      TILE_STORED(0, sums[0], kTileBytes);
      TILE_STORED(1, sums[1], kTileBytes);
      TILE_STORED(2, sums[2], kTileBytes);
      TILE_STORED(3, sums[3], kTileBytes);
      const int real = rows.rows - m < kTileRows ? rows.rows - m : kTileRows;
      for (int i = 0; i < real; ++i) {
        for (int r = 0; r < kSumTiles; ++r) {
          const int output = panel * kPanel + r * 16;
          __m512i sum = _mm512_load_si512(sums[r] + i * 16);
          if (!rows.positive) {
            sum = _mm512_add_epi32(sum, _mm512_load_si512(matrix.offsets + output));
          }
          Vector value = Vector{_mm512_cvtepi32_ps(sum)} * set(rows.scales[m + i]) *
                             load(matrix.scales + output) +
                         load(matrix.bias + output);
          float* to = out + (m + i) * out_stride + (panel - first) * kPanel + r * 16;
          if (add) value = value + load(to);
          store(to, value);
        }
      }
    }
  }
  TILE_RELEASE();
}
