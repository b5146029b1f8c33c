// Kernels in plain C++: for every processor, and the readable oracle of the others.

#include <cmath>
#include <cstring>

#include "kernels.h"

namespace bothends {
namespace portable {

#include "vector_portable.inl"

#include "row_operations.inl"

constexpr int kPanel = 16;

void product(const QuantisedRows& rows, const PackedMatrix& matrix, int first, int last, float* out,
             size_t out_stride, bool add) {
  for (int panel = first; panel < last; ++panel) {
    const int8_t* weights = matrix.panel_values(panel);
    for (int m = 0; m < rows.rows; ++m) {
      const uint8_t* row = rows.values + m * rows.stride;
      int32_t sums[kPanel];
      for (int o = 0; o < kPanel; ++o) {
        sums[o] = rows.positive ? 0 : matrix.offsets[panel * kPanel + o];
      }
      for (int input = 0; input < matrix.padded_inputs; input += 4) {
        const int8_t* four = weights + input * kPanel;
        for (int o = 0; o < kPanel; ++o) {
          for (int i = 0; i < 4; ++i) sums[o] += row[input + i] * four[o * 4 + i];
        }
      }
      float* to = out + m * out_stride + (panel - first) * kPanel;
      for (int o = 0; o < kPanel; ++o) {
        const int output = panel * kPanel + o;
        const float value = static_cast<float>(sums[o]) * rows.scales[m] * matrix.scales[output] +
                            matrix.bias[output];
        to[o] = add ? to[o] + value : value;
      }
    }
  }
}

}  // namespace portable

const Kernels kPortableKernels = {
    "portable",          {portable::kPanel, false}, portable::product,
    portable::quantise,  portable::quantise_relu, portable::normalise,
    portable::activate,  portable::embed,     portable::attend,
    portable::scan_words};

}  // namespace bothends
