#include "packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "memory.h"

namespace bothends {

namespace {

// Which pairs of neighbouring steps of an output do not fit an int16, a byte each.
void find_wide_pairs(const int8_t* row, int inputs, uint8_t* wide) {
  int input = 0;
  for (; input + 8 <= inputs; input += 8) wide[input / 8] = !pair_fits(row + input);
  if (input < inputs) {
    int8_t rest[8] = {};
    std::copy(row + input, row + inputs, rest);
    wide[input / 8] = !pair_fits(rest);
  }
}

// The first input of every step: of pairs that fit an int16, then of the others. Returns how many fit.
int order_pairs(const uint8_t* wide, int pairs, uint16_t* order) {
  int fitting = 0;
  for (const bool later : {false, true}) {
    for (int pair = 0; pair < pairs; ++pair) {
      if (wide[pair] != later) continue;
      fitting += !later;
      *order++ = static_cast<uint16_t>(8 * pair);
      *order++ = static_cast<uint16_t>(8 * pair + 4);
    }
  }
  return fitting;
}

// The parts of a packed matrix in the memory that it gets.
struct Parts {
  float *scales, *bias;
  int32_t* offsets;
  uint16_t* order = nullptr;
  StepGroups* groups = nullptr;
  int8_t* values;
};

Parts lay_out(int outputs, int inputs, Layout layout, uint8_t* memory, PackedMatrix* packed) {
  const auto take = [&](size_t size) {
    uint8_t* taken = memory;
    memory += round_up(size, kAlignment);
    return taken;
  };
  PackedMatrix& m = *packed;
  m.outputs = outputs;
  m.inputs = inputs;
  m.panel = layout.panel;
  m.padded_outputs = static_cast<int>(round_up(outputs, layout.panel));
  m.padded_inputs = static_cast<int>(round_up(inputs, kInputStep));
  Parts parts;
  parts.scales = reinterpret_cast<float*>(take(m.padded_outputs * sizeof(float)));
  parts.bias = reinterpret_cast<float*>(take(m.padded_outputs * sizeof(float)));
  parts.offsets = reinterpret_cast<int32_t*>(take(m.padded_outputs * sizeof(int32_t)));
  if (layout.groups) {
    parts.order = reinterpret_cast<uint16_t*>(take(sizeof(uint16_t) * m.panels() * m.steps()));
    parts.groups = reinterpret_cast<StepGroups*>(take(sizeof(StepGroups) * m.panels()));
  }
  parts.values = reinterpret_cast<int8_t*>(memory);
  m.values = parts.values;
  m.scales = parts.scales;
  m.bias = parts.bias;
  m.offsets = parts.offsets;
  m.order = parts.order;
  m.groups = parts.groups;
  return parts;
}

// The weights of a panel's outputs: step i at place `places[i]`, or all in their own order. Step by
// step: what is written lies side by side.
void place_rows(const std::vector<const int8_t*>& rows, int inputs, int panel, const int* places,
                int8_t* to) {
  for (int input = 0; input < inputs; input += 4) {
    const size_t place = places == nullptr ? input / 4 : places[input / 4];
    int8_t* step = to + place * panel * 4;
    if (input + 4 <= inputs) {
      for (size_t o = 0; o < rows.size(); ++o) std::memcpy(step + o * 4, rows[o] + input, 4);
    } else {
      for (size_t o = 0; o < rows.size(); ++o) {
        std::copy(rows[o] + input, rows[o] + inputs, step + o * 4);
      }
    }
  }
}

}  // namespace

size_t packed_bytes(int outputs, int inputs, Layout layout) {
  const size_t padded_outputs = round_up(outputs, layout.panel);
  const size_t padded_inputs = round_up(inputs, kInputStep);
  const size_t panels = padded_outputs / layout.panel;
  const size_t order =
      layout.groups ? round_up(panels * padded_inputs / 4 * sizeof(uint16_t), kAlignment) +
                          round_up(panels * sizeof(StepGroups), kAlignment)
                    : 0;
  return 3 * round_up(padded_outputs * sizeof(float), kAlignment) + order +
         round_up(padded_outputs * padded_inputs, kAlignment);
}

bool pack(const PlainMatrix& plain, Layout layout, uint8_t* memory, PackedMatrix* packed,
          std::vector<uint8_t>* wide) {
  PackedMatrix& m = *packed;
  const Parts parts = lay_out(plain.outputs, plain.inputs, layout, memory, packed);
  std::memcpy(parts.scales, plain.scales, plain.outputs * sizeof(float));
  if (plain.bias != nullptr) std::memcpy(parts.bias, plain.bias, plain.outputs * sizeof(float));
  int largest = 0;
  for (int output = 0; output < plain.outputs; ++output) {
    const int8_t* row = plain.row(output);
    int sum = 0;
    for (int input = 0; input < plain.inputs; ++input) {
      const int weight = row[input];
      sum += weight;
      largest = std::max(largest, weight < 0 ? -weight : weight);
    }
    parts.offsets[output] = -128 * sum;
  }
  if (largest > kMaxWeight) return false;
  if (wide != nullptr && layout.groups) {
    wide->resize(static_cast<size_t>(plain.outputs) * m.pairs());
    for (int output = 0; output < plain.outputs; ++output) {
      find_wide_pairs(plain.row(output), plain.inputs, &(*wide)[output * m.pairs()]);
    }
  }
  StepGrouping grouping(m.padded_inputs);
  std::vector<int8_t> own_order(layout.groups ? m.panel_bytes() : 0);
  std::vector<const int8_t*> rows;
  for (int p = 0; p < m.panels(); ++p) {
    const int first = p * m.panel, count = std::min(m.panel, plain.outputs - first);
    rows.clear();
    for (int o = 0; o < count; ++o) rows.push_back(plain.row(first + o));
    int8_t* values = parts.values + p * m.panel_bytes();
    if (!layout.groups) {
      place_rows(rows, plain.inputs, m.panel, nullptr, values);
      continue;
    }
    std::fill(own_order.begin(), own_order.end(), 0);
    place_rows(rows, plain.inputs, m.panel, nullptr, own_order.data());
    uint16_t* order = parts.order + static_cast<size_t>(p) * m.steps();
    parts.groups[p] = grouping.find(own_order.data(), order);
    const size_t step_bytes = 4 * m.panel;
    for (int i = 0; i < m.steps(); ++i) {
      std::memcpy(values + i * step_bytes, &own_order[order[i] / 4 * step_bytes], step_bytes);
    }
  }
  return true;
}

void pack_rows(const PlainMatrix& plain, const PackedMatrix& whole, const std::vector<uint8_t>& wide,
               const std::vector<int32_t>& rows, uint8_t* memory, PackedMatrix* packed) {
  PackedMatrix& m = *packed;
  const Layout layout = {whole.panel, whole.order != nullptr};
  const int outputs = static_cast<int>(rows.size());
  const Parts parts = lay_out(outputs, plain.inputs, layout, memory, packed);
  m.cached = whole.cached;
  const int pairs = m.pairs();
  for (int i = 0; i < outputs; ++i) {
    parts.scales[i] = whole.scales[rows[i]];
    parts.bias[i] = whole.bias[rows[i]];
    parts.offsets[i] = whole.offsets[rows[i]];
  }
  std::fill(parts.scales + outputs, parts.scales + m.padded_outputs, 0.0f);
  std::fill(parts.bias + outputs, parts.bias + m.padded_outputs, 0.0f);
  std::fill(parts.offsets + outputs, parts.offsets + m.padded_outputs, 0);
  std::vector<int> places(m.steps());
  std::vector<uint8_t> of_panel(pairs);
  std::vector<const int8_t*> own_rows;
  for (int p = 0; p < m.panels(); ++p) {
    const int first = p * m.panel, count = std::min(m.panel, outputs - first);
    int8_t* values = parts.values + p * m.panel_bytes();
    const bool padded = count < m.panel || m.inputs < m.padded_inputs;
    if (padded) std::memset(values, 0, m.panel_bytes());
    own_rows.clear();
    for (int o = 0; o < count; ++o) own_rows.push_back(plain.row(rows[first + o]));
    if (layout.groups) {
      std::fill(of_panel.begin(), of_panel.end(), 0);
      for (int o = 0; o < count; ++o) {
        const uint8_t* own = &wide[static_cast<size_t>(rows[first + o]) * pairs];
        for (int i = 0; i < pairs; ++i) of_panel[i] |= own[i];
      }
      uint16_t* order = parts.order + static_cast<size_t>(p) * m.steps();
      parts.groups[p] = {0, static_cast<uint16_t>(order_pairs(of_panel.data(), pairs, order))};
      for (int i = 0; i < m.steps(); ++i) places[order[i] / 4] = i;
    }
    place_rows(own_rows, plain.inputs, m.panel, layout.groups ? places.data() : nullptr, values);
  }
}

}  // namespace bothends
