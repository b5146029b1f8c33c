// Products over 256-bit registers: panels of 16 outputs, two registers for four inputs of each.
//
// Included by AVX2 and AVX-VNNI, which define `Group`: the sums of a group of steps, for eight outputs.
// It begins with the first step and ends as part of the sums over all steps.

constexpr int kPanel = StepGrouping::kOutputs;
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

// Loads in an instruction of its own, before anything is multiplied. Where all multiplications load by
// themselves, one row waits longer for the cache: 65 us instead of 58 for the 4.8 MB of a step.
inline __m256i load_weights_early(const int8_t* from) {
  __m256i weights;
  asm volatile("vmovdqa %1, %0" : "=x"(weights) : "m"(*reinterpret_cast<const __m256i*>(from)));
  return weights;
}

// A group of `kSteps` steps for `kRows` rows. Inlined, and its loops unrolled, before anything else: GCC
// would otherwise store all sums after each group.
template <int kSteps, int kRows>
[[gnu::always_inline]] inline void add_group(const uint8_t* row, size_t stride,
                                             const uint16_t* inputs, const int8_t* weights,
                                             __m256i (&sums)[kRows][2]) {
  // Registers are left for half of the weights. The others are read again for every row.
  __m256i low[kSteps];
  size_t input[kSteps];
#pragma GCC unroll 3
  for (int s = 0; s < kSteps; ++s) {
    low[s] = load_weights_early(weights + s * kStepBytes);
    input[s] = inputs[s];
  }
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m, row += stride) {
    const __m256i first = repeat_four(row + input[0]);
    Group low_group(sums[m][0], first, low[0]);
    Group high_group(sums[m][1], first, load_weights(weights + 32));
#pragma GCC unroll 3
    for (int s = 1; s < kSteps; ++s) {
      const __m256i four = repeat_four(row + input[s]);
      low_group.add(four, low[s]);
      high_group.add(four, load_weights(weights + s * kStepBytes + 32));
    }
    sums[m][0] = low_group.end(sums[m][0]);
    sums[m][1] = high_group.end(sums[m][1]);
  }
}

// `kRows` rows by one panel.
template <int kRows, class Fetching>
[[gnu::always_inline]] inline void product_block(const QuantisedRows& rows, int first_row,
                                                 const PackedMatrix& matrix, int panel, float* out,
                                                 size_t out_stride, bool add, Fetching ahead) {
  const uint8_t* row = rows.values + first_row * rows.stride;
  const size_t stride = rows.stride;
  const int output = panel * kPanel;
  __m256i sums[kRows][2];
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const auto* offsets = reinterpret_cast<const __m256i*>(matrix.offsets + output + half * 8);
      sums[m][half] = rows.positive ? _mm256_setzero_si256() : _mm256_load_si256(offsets);
    }
  }
  const int8_t* weights = matrix.panel_values(panel);
  const uint16_t* inputs = matrix.panel_order(panel);
  const StepGroups groups = matrix.groups[panel];
  const int threes = 3 * groups.threes, twos = threes + 2 * groups.twos;
  int step = 0;
  for (; step < threes; step += 3) {
    add_group<3>(row, stride, inputs + step, weights + step * kStepBytes, sums);
    ahead.fetch(step);
    ahead.fetch(step + 1);
    ahead.fetch(step + 2);
  }
  for (; step < twos; step += 2) {
    add_group<2>(row, stride, inputs + step, weights + step * kStepBytes, sums);
    ahead.fetch(step);
    ahead.fetch(step + 1);
  }
  for (; step < matrix.steps(); ++step) {
    add_group<1>(row, stride, inputs + step, weights + step * kStepBytes, sums);
    ahead.fetch(step);
  }
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 2
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
      const auto block = [&](auto together) {
        product_block<together>(rows, m, matrix, panel,
                                out + m * out_stride + (panel - first) * kPanel, out_stride, add,
                                Fetching(matrix, panel, b, blocks, count >= kBusyRows));
      };
      switch (count) {
        case 1: block(std::integral_constant<int, 1>()); break;
        case 2: block(std::integral_constant<int, 2>()); break;
        case 3: block(std::integral_constant<int, 3>()); break;
        default: block(std::integral_constant<int, 4>()); break;
      }
      m += count;
    }
  }
}

void product(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last, float* out,
             size_t out_stride, bool add) {
  const auto panels = matrix.cached ? product_panels<NothingAhead> : product_panels<Ahead>;
  panels(rows, matrix, first, last, out, out_stride, add);
}
