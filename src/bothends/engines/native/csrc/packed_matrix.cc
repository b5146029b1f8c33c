#include "packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "memory.h"

namespace bothends {

namespace {

// Could two steps (eight inputs) of an output overflow an int16 that adds both? A lane adds inputs 0, 1,
// 4 and 5, the other 2, 3, 6 and 7, each times at most 255. Of one sign, they may sum to 128.
bool could_overflow(const int8_t* w) {
  int positive[2] = {}, negative[2] = {};
  for (int i = 0; i < 8; ++i) {
    positive[i / 2 % 2] += std::max<int>(w[i], 0);
    negative[i / 2 % 2] += std::max<int>(-w[i], 0);
  }
  constexpr int kMost = 32767 / 255;
  return std::max({positive[0], positive[1], negative[0], negative[1]}) > kMost;
}

// The order of a panel's pairs: those that fit an int16, then the others. Returns how many fit.
int order_pairs(const PlainMatrix& plain, int first_output, int outputs, int pairs, uint16_t* order) {
  std::vector<uint8_t> wide(pairs);
  for (int output = first_output; output < first_output + outputs; ++output) {
    const int8_t* row = plain.values + static_cast<size_t>(output) * plain.inputs;
    int input = 0;
    for (; input + 8 <= plain.inputs; input += 8) wide[input / 8] |= could_overflow(row + input);
    if (input < plain.inputs) {
      int8_t rest[8] = {};
      std::copy(row + input, row + plain.inputs, rest);
      wide[input / 8] |= could_overflow(rest);
    }
  }
  for (int pair = 0; pair < pairs; ++pair) order[pair] = static_cast<uint16_t>(pair);
  const auto first_wide =
      std::stable_partition(order, order + pairs, [&](uint16_t pair) { return !wide[pair]; });
  return static_cast<int>(first_wide - order);
}

}  // namespace

size_t packed_bytes(int outputs, int inputs, Layout layout) {
  const size_t padded_outputs = round_up(outputs, layout.panel);
  const size_t padded_inputs = round_up(inputs, kInputStep);
  const size_t panels = padded_outputs / layout.panel;
  const size_t order =
      layout.pairs ? round_up(panels * padded_inputs / 8 * sizeof(uint16_t), kAlignment) +
                         round_up(panels * sizeof(uint16_t), kAlignment)
                   : 0;
  return 3 * round_up(padded_outputs * sizeof(float), kAlignment) + order +
         round_up(padded_outputs * padded_inputs, kAlignment);
}

bool pack(const PlainMatrix& plain, Layout layout, uint8_t* memory, PackedMatrix* packed) {
  const auto take = [&](size_t size) {
    uint8_t* taken = memory;
    memory += round_up(size, kAlignment);
    return taken;
  };
  PackedMatrix& m = *packed;
  m.outputs = plain.outputs;
  m.inputs = plain.inputs;
  m.panel = layout.panel;
  m.padded_outputs = static_cast<int>(round_up(plain.outputs, layout.panel));
  m.padded_inputs = static_cast<int>(round_up(plain.inputs, kInputStep));
  auto* scales = reinterpret_cast<float*>(take(m.padded_outputs * sizeof(float)));
  auto* bias = reinterpret_cast<float*>(take(m.padded_outputs * sizeof(float)));
  auto* offsets = reinterpret_cast<int32_t*>(take(m.padded_outputs * sizeof(int32_t)));
  uint16_t *order = nullptr, *narrow = nullptr;
  const int pairs = m.pairs_each();
  if (layout.pairs) {
    order = reinterpret_cast<uint16_t*>(take(sizeof(uint16_t) * m.panels() * pairs));
    narrow = reinterpret_cast<uint16_t*>(take(sizeof(uint16_t) * m.panels()));
  }
  auto* values = reinterpret_cast<int8_t*>(memory);
  std::memcpy(scales, plain.scales, plain.outputs * sizeof(float));
  if (plain.bias != nullptr) std::memcpy(bias, plain.bias, plain.outputs * sizeof(float));
  int largest = 0;
  std::vector<int> places(m.padded_inputs / 4);  // where each step stands in the panel
  for (size_t step = 0; step < places.size(); ++step) places[step] = static_cast<int>(step);
  for (int p = 0; p < m.panels(); ++p) {
    const int first = p * m.panel, count = std::min(m.panel, plain.outputs - first);
    if (layout.pairs) {
      uint16_t* own = order + static_cast<size_t>(p) * pairs;
      narrow[p] = static_cast<uint16_t>(order_pairs(plain, first, count, pairs, own));
      for (int i = 0; i < pairs; ++i) {
        places[2 * own[i]] = 2 * i;
        places[2 * own[i] + 1] = 2 * i + 1;
      }
    }
    for (int o = 0; o < count; ++o) {
      const int8_t* row = plain.values + static_cast<size_t>(first + o) * plain.inputs;
      int8_t* to = values + p * m.panel_bytes() + o * 4;
      int sum = 0;
      for (int input = 0; input < plain.inputs; ++input) {
        sum += row[input];
        largest = std::max<int>(largest, row[input] < 0 ? -row[input] : row[input]);
      }
      offsets[first + o] = -128 * sum;
      for (int input = 0; input < plain.inputs; input += 4) {
        const size_t at = static_cast<size_t>(places[input / 4]) * m.panel * 4;
        if (input + 4 <= plain.inputs) {
          std::memcpy(to + at, row + input, 4);
        } else {
          std::copy(row + input, row + plain.inputs, to + at);
        }
      }
    }
  }
  m.values = values;
  m.scales = scales;
  m.bias = bias;
  m.offsets = offsets;
  m.pairs = order;
  m.narrow = narrow;
  return largest <= kMaxWeight;
}

}  // namespace bothends
