// Products with AVX512-VNNI: panels of 64 outputs, four registers for four inputs of each.

constexpr int kPanel = 64;
constexpr int kRegisters = kPanel / 16;
constexpr int kAhead = 2048;  // bytes that are fetched before they are needed
constexpr int kMostRows = 6;  // 24 sums, 4 registers of weights and one of the row

// Sums to floats: for one row and one register of 16 outputs.
inline void finish(__m512i sums, float row_scale, const float* scales, const float* bias, float* to,
                   bool add) {
  // Multiplied in this order, as the graphs do
  Vector value = Vector{_mm512_cvtepi32_ps(sums)} * set(row_scale) * load(scales) + load(bias);
  if (add) value = value + load(to);
  store(to, value);
}

template <int kRows>
inline void product_block(const uint8_t* row, size_t stride, const int8_t* weights, int inputs,
                          const int32_t* offsets, const float* row_scales, const float* scales,
                          const float* bias, float* out, size_t out_stride, bool add) {
  __m512i sums[kRows][kRegisters];
  for (int m = 0; m < kRows; ++m) {
    for (int r = 0; r < kRegisters; ++r) {
      sums[m][r] = offsets != nullptr ? _mm512_load_si512(offsets + r * 16) : _mm512_setzero_si512();
    }
  }
  for (int input = 0; input < inputs; input += 4) {
    __m512i four[kRegisters];
    for (int r = 0; r < kRegisters; ++r) {
      const int8_t* from = weights + input * kPanel + r * 64;
      _mm_prefetch(reinterpret_cast<const char*>(from) + kAhead, _MM_HINT_T0);
      four[r] = _mm512_load_si512(from);
    }
    for (int m = 0; m < kRows; ++m) {
      int32_t bytes;
      std::memcpy(&bytes, row + m * stride + input, sizeof bytes);
      const __m512i same = _mm512_set1_epi32(bytes);
      for (int r = 0; r < kRegisters; ++r) {
        sums[m][r] = _mm512_dpbusd_epi32(sums[m][r], same, four[r]);
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int r = 0; r < kRegisters; ++r) {
      finish(sums[m][r], row_scales[m], scales + r * 16, bias + r * 16,
             out + m * out_stride + r * 16, add);
    }
  }
}

void product(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last, float* out,
             size_t out_stride, bool add) {
  // Blocks of nearly the same size: seven rows are four and three, not six and one.
  const int blocks = (rows.rows + kMostRows - 1) / kMostRows;
  for (int panel = first; panel < last; ++panel) {
    const int output = panel * kPanel;
    for (int b = 0, m = 0; b < blocks; ++b) {
      const int count = (rows.rows - m) / (blocks - b);
      const auto block = [&](auto kernel) {
        kernel(rows.values + m * rows.stride, rows.stride,
               matrix.values + panel * matrix.panel_bytes(), matrix.padded_inputs,
               rows.positive ? nullptr : matrix.offsets + output, rows.scales + m,
               matrix.scales + output, matrix.bias + output,
               out + m * out_stride + (panel - first) * kPanel, out_stride, add);
      };
      switch (count) {
        case 1: block(product_block<1>); break;
        case 2: block(product_block<2>); break;
        case 3: block(product_block<3>); break;
        case 4: block(product_block<4>); break;
        case 5: block(product_block<5>); break;
        default: block(product_block<6>); break;
      }
      m += count;
    }
  }
}
