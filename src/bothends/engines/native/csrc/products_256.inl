// Products over 256-bit registers: panels of 16 outputs, two registers for four inputs of each.
//
// Included by AVX2 and AVX-VNNI, which define `add_products(sums, row, weights)`: to each of eight sums,
// four products of a row's unsigned bytes and weights.

constexpr int kPanel = 16;
constexpr int kAhead = 2048;  // bytes that are fetched before they are needed

// `kRows` rows by one panel. `kUnroll` steps of four inputs have sums of their own: with one row there
// would otherwise be too few sums to keep the multipliers busy.
template <int kRows, int kUnroll>
inline void product_block(const uint8_t* row, size_t stride, const int8_t* weights, int inputs,
                          const int32_t* offsets, const float* row_scales, const float* scales,
                          const float* bias, float* out, size_t out_stride, bool add) {
  __m256i sums[kUnroll][kRows][2];
  for (int u = 0; u < kUnroll; ++u) {
    for (int m = 0; m < kRows; ++m) {
      for (int half = 0; half < 2; ++half) {
        sums[u][m][half] =
            u == 0 && offsets != nullptr
                ? _mm256_load_si256(reinterpret_cast<const __m256i*>(offsets + half * 8))
                : _mm256_setzero_si256();
      }
    }
  }
  for (int input = 0; input < inputs; input += 4 * kUnroll) {
    for (int u = 0; u < kUnroll; ++u) {
      const int8_t* four = weights + (input + 4 * u) * kPanel;
      _mm_prefetch(reinterpret_cast<const char*>(four) + kAhead, _MM_HINT_T0);
      const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(four));
      const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(four + 32));
      for (int m = 0; m < kRows; ++m) {
        int32_t bytes;
        std::memcpy(&bytes, row + m * stride + input + 4 * u, sizeof bytes);
        const __m256i same = _mm256_set1_epi32(bytes);
        sums[u][m][0] = add_products(sums[u][m][0], same, low);
        sums[u][m][1] = add_products(sums[u][m][1], same, high);
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int half = 0; half < 2; ++half) {
      __m256i sum = sums[0][m][half];
      for (int u = 1; u < kUnroll; ++u) sum = _mm256_add_epi32(sum, sums[u][m][half]);
      // Multiplied in this order, as the graphs do
      const Vector scaled = Vector{_mm256_cvtepi32_ps(sum)} * set(row_scales[m]) *
                            load(scales + half * 8);
      Vector value = scaled + load(bias + half * 8);
      float* to = out + m * out_stride + half * 8;
      if (add) value = value + load(to);
      store(to, value);
    }
  }
}

void product(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last, float* out,
             size_t out_stride, bool add) {
  for (int panel = first; panel < last; ++panel) {
    const int output = panel * kPanel;
    const auto block = [&](auto kernel, int m) {
      kernel(rows.values + m * rows.stride, rows.stride,
             matrix.values + panel * matrix.panel_bytes(), matrix.padded_inputs,
             rows.positive ? nullptr : matrix.offsets + output, rows.scales + m,
             matrix.scales + output, matrix.bias + output,
             out + m * out_stride + (panel - first) * kPanel, out_stride, add);
    };
    int m = 0;
    for (; rows.rows - m >= 4; m += 4) block(product_block<4, 1>, m);
    switch (rows.rows - m) {
      case 3: block(product_block<3, 1>, m); break;
      case 2: block(product_block<2, 2>, m); break;
      case 1: block(product_block<1, 4>, m); break;
    }
  }
}
