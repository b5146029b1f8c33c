#include "packed_matrix.h"

#include <cstring>

#include "memory.h"

namespace bothends {

size_t packed_bytes(int outputs, int inputs, int panel) {
  const size_t padded_outputs = round_up(outputs, panel);
  const size_t numbers = round_up(padded_outputs * sizeof(float), kAlignment);
  return padded_outputs * round_up(inputs, kInputStep) + 3 * numbers;
}

bool pack(const PlainMatrix& plain, int panel, uint8_t* memory, PackedMatrix* packed) {
  const size_t padded_outputs = round_up(plain.outputs, panel);
  const size_t padded_inputs = round_up(plain.inputs, kInputStep);
  const size_t numbers = round_up(padded_outputs * sizeof(float), kAlignment);
  auto* scales = reinterpret_cast<float*>(memory);
  auto* bias = reinterpret_cast<float*>(memory + numbers);
  auto* offsets = reinterpret_cast<int32_t*>(memory + 2 * numbers);
  auto* values = reinterpret_cast<int8_t*>(memory + 3 * numbers);
  std::memcpy(scales, plain.scales, plain.outputs * sizeof(float));
  if (plain.bias != nullptr) std::memcpy(bias, plain.bias, plain.outputs * sizeof(float));
  int largest = 0;
  for (int output = 0; output < plain.outputs; ++output) {
    const int8_t* row = plain.values + static_cast<size_t>(output) * plain.inputs;
    int8_t* to = values + output / panel * (panel * padded_inputs) + output % panel * 4;
    int sum = 0;
    int input = 0;
    for (; input + 4 <= plain.inputs; input += 4, to += panel * 4) std::memcpy(to, row + input, 4);
    for (; input < plain.inputs; ++input) to[input % 4] = row[input];
    for (input = 0; input < plain.inputs; ++input) {
      sum += row[input];
      const int size = row[input] < 0 ? -row[input] : row[input];
      largest = size > largest ? size : largest;
    }
    offsets[output] = -128 * sum;
  }
  *packed = PackedMatrix{plain.outputs,
                         plain.inputs,
                         panel,
                         static_cast<int>(padded_outputs),
                         static_cast<int>(padded_inputs),
                         values,
                         scales,
                         bias,
                         offsets};
  return largest <= kMaxWeight;
}

}  // namespace bothends
