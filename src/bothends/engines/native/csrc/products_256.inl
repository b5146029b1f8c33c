// Products over 256-bit registers: panels of 16 outputs, two registers for four inputs of each.
//
// Included by AVX2 and AVX-VNNI, which define `add_step(sums, row, weights)`, to each of eight sums four
// products of a row's unsigned bytes and weights, and `add_pair` for two steps at once.

constexpr int kPanel = 16;
constexpr int kStepBytes = 4 * kPanel;
constexpr int kMostRows = 4;  // eight sums of two registers of outputs
constexpr int kBusyRows = 2;  // as many take longer to multiply than to read

// Four bytes of a row, in every lane.
inline __m256i repeat_four(const uint8_t* from) {
  int32_t bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return _mm256_set1_epi32(bytes);
}

inline __m256i load_weights(const int8_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

// `kRows` rows by one panel.
template <int kRows, class Fetching>
inline void product_block(const QuantisedRows& rows, int first_row, const PackedMatrix& matrix,
                          int panel, float* out, size_t out_stride, bool add, Fetching ahead) {
  const uint8_t* row = rows.values + first_row * rows.stride;
  const size_t stride = rows.stride;
  const int output = panel * kPanel;
  __m256i sums[kRows][2];
  for (int m = 0; m < kRows; ++m) {
    for (int half = 0; half < 2; ++half) {
      const auto* offsets = reinterpret_cast<const __m256i*>(matrix.offsets + output + half * 8);
      sums[m][half] = rows.positive ? _mm256_setzero_si256() : _mm256_load_si256(offsets);
    }
  }
  const int8_t* weights = matrix.panel_values(panel);
  const uint16_t* pairs = matrix.panel_pairs(panel);
  int pair = 0;
  for (; pair < matrix.narrow[panel]; ++pair, weights += 2 * kStepBytes) {
    ahead.fetch(2 * pair);
    ahead.fetch(2 * pair + 1);
    const __m256i low = load_weights(weights), high = load_weights(weights + 32);
    const __m256i next_low = load_weights(weights + 64), next_high = load_weights(weights + 96);
    for (int m = 0; m < kRows; ++m) {
      const __m256i four = repeat_four(row + m * stride + 8 * pairs[pair]);
      const __m256i next = repeat_four(row + m * stride + 8 * pairs[pair] + 4);
      sums[m][0] = add_pair(sums[m][0], four, low, next, next_low);
      sums[m][1] = add_pair(sums[m][1], four, high, next, next_high);
    }
  }
  for (int step = 2 * pair; step < 2 * matrix.pairs_each(); ++step, weights += kStepBytes) {
    ahead.fetch(step);
    const __m256i low = load_weights(weights), high = load_weights(weights + 32);
    for (int m = 0; m < kRows; ++m) {
      const __m256i four = repeat_four(row + m * stride + 8 * pairs[step / 2] + step % 2 * 4);
      sums[m][0] = add_step(sums[m][0], four, low);
      sums[m][1] = add_step(sums[m][1], four, high);
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int half = 0; half < 2; ++half) {
      // Multiplied in this order, as the graphs do
      Vector value = Vector{_mm256_cvtepi32_ps(sums[m][half])} * set(rows.scales[first_row + m]) *
                         load(matrix.scales + output + half * 8) +
                     load(matrix.bias + output + half * 8);
      float* to = out + m * out_stride + half * 8;
      if (add) value = value + load(to);
      store(to, value);
    }
  }
}

template <class Fetching>
void product_panels(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last,
                    float* out, size_t out_stride, bool add) {
  const int blocks = (rows.rows + kMostRows - 1) / kMostRows;
  for (int panel = first; panel < last; ++panel) {
    for (int b = 0, m = 0; b < blocks; ++b) {
      // Blocks of nearly the same size: five rows are three and two, not four and one.
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
