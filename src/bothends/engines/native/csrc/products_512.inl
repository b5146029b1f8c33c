// Products with AVX512-VNNI: panels of 64 outputs, four registers for four inputs of each.

constexpr int kPanel = 64;
constexpr int kRegisters = kPanel / 16;
constexpr int kMostRows = 4;  // 16 sums: enough to keep the multipliers busy
constexpr int kBusyRows = 3;  // as many take longer to multiply than to read

// Sums to floats: for one row and one register of 16 outputs.
inline void finish(__m512i sums, float row_scale, const float* scales, const float* bias, float* to,
                   bool add) {
  // Multiplied in this order, as the graphs do
  Vector value = Vector{_mm512_cvtepi32_ps(sums)} * set(row_scale) * load(scales) + load(bias);
  if (add) value = value + load(to);
  store(to, value);
}

// `kRows` rows by one panel.
template <int kRows, class Fetching>
inline void product_block(const QuantisedRows& rows, int first_row, const PackedMatrix& matrix,
                          int panel, float* out, size_t out_stride, bool add, Fetching ahead) {
  const uint8_t* row = rows.values + first_row * rows.stride;
  const size_t stride = rows.stride;
  const int output = panel * kPanel;
  __m512i sums[kRows][kRegisters];
  for (int m = 0; m < kRows; ++m) {
    for (int r = 0; r < kRegisters; ++r) {
      sums[m][r] = rows.positive ? _mm512_setzero_si512()
                                 : _mm512_load_si512(matrix.offsets + output + r * 16);
    }
  }
  const int8_t* weights = matrix.panel_values(panel);
  for (int input = 0; input < matrix.padded_inputs; input += 4) {
    __m512i four[kRegisters];
    for (int r = 0; r < kRegisters; ++r) {
      ahead.fetch(input / 4 * kRegisters + r);
      four[r] = _mm512_load_si512(weights + input * kPanel + r * 64);
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
      finish(sums[m][r], rows.scales[first_row + m], matrix.scales + output + r * 16,
             matrix.bias + output + r * 16, out + m * out_stride + r * 16, add);
    }
  }
}

template <class Fetching>
void product_panels(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last,
                    float* out, size_t out_stride, bool add) {
  // Blocks of nearly the same size: five rows are three and two, not four and one.
  const int blocks = (rows.rows + kMostRows - 1) / kMostRows;
  for (int panel = first; panel < last; ++panel) {
    for (int b = 0, m = 0; b < blocks; ++b) {
      const int count = (rows.rows - m) / (blocks - b);
      const auto block = [&](auto kernel) {
        kernel(rows, m, matrix, panel, out + m * out_stride + (panel - first) * kPanel, out_stride,
               add, Fetching(matrix, panel, b, blocks, count >= kBusyRows));
      };
      switch (count) {
        case 1: block(product_block<1, Fetching>); break;
        case 2: block(product_block<2, Fetching>); break;
        case 3: block(product_block<3, Fetching>); break;
        default: block(product_block<4, Fetching>); break;
      }
      m += count;
    }
  }
}

void product(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last, float* out,
             size_t out_stride, bool add) {
  const auto panels = matrix.fetch_ahead ? product_panels<Ahead> : product_panels<NothingAhead>;
  panels(rows, matrix, first, last, out, out_stride, add);
}
