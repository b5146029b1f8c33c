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

// Which pairs of steps of an output do not fit an int16, a byte each.
void find_wide_pairs(const int8_t* row, int inputs, uint8_t* wide) {
  int input = 0;
  for (; input + 8 <= inputs; input += 8) wide[input / 8] = could_overflow(row + input);
  if (input < inputs) {
    int8_t rest[8] = {};
    std::copy(row + input, row + inputs, rest);
    wide[input / 8] = could_overflow(rest);
  }
}

// The order of a panel's pairs: those that fit an int16, then the others. Returns how many fit.
int order_pairs(const uint8_t* wide, int pairs, uint16_t* order) {
  int narrow = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    if (!wide[pair]) order[narrow++] = static_cast<uint16_t>(pair);
  }
  for (int pair = 0, next = narrow; pair < pairs; ++pair) {
    if (wide[pair]) order[next++] = static_cast<uint16_t>(pair);
  }
  return narrow;
}

// The parts of a packed matrix in the memory that it gets.
struct Parts {
  float *scales, *bias;
  int32_t* offsets;
  uint16_t *order = nullptr, *narrow = nullptr;
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
  if (layout.pairs) {
    parts.order = reinterpret_cast<uint16_t*>(take(sizeof(uint16_t) * m.panels() * m.pairs_each()));
    parts.narrow = reinterpret_cast<uint16_t*>(take(sizeof(uint16_t) * m.panels()));
  }
  parts.values = reinterpret_cast<int8_t*>(memory);
  m.values = parts.values;
  m.scales = parts.scales;
  m.bias = parts.bias;
  m.offsets = parts.offsets;
  m.pairs = parts.order;
  m.narrow = parts.narrow;
  return parts;
}

// Where each step of a panel stands: in its place, or where its pair is after `order`.
void find_places(const uint16_t* order, std::vector<int>* places) {
  for (size_t i = 0; i < places->size(); ++i) {
    if (order == nullptr) {
      (*places)[i] = static_cast<int>(i);
    } else {
      (*places)[2 * order[i / 2] + i % 2] = static_cast<int>(i);
    }
  }
}

// The weights of a panel's outputs into their places. Step by step: what is written lies side by side.
void place_rows(const std::vector<const int8_t*>& rows, int inputs, int panel,
                const std::vector<int>& places, int8_t* to) {
  for (int input = 0; input < inputs; input += 4) {
    int8_t* step = to + static_cast<size_t>(places[input / 4]) * panel * 4;
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
      layout.pairs ? round_up(panels * padded_inputs / 8 * sizeof(uint16_t), kAlignment) +
                         round_up(panels * sizeof(uint16_t), kAlignment)
                   : 0;
  return 3 * round_up(padded_outputs * sizeof(float), kAlignment) + order +
         round_up(padded_outputs * padded_inputs, kAlignment);
}

bool pack(const PlainMatrix& plain, Layout layout, uint8_t* memory, PackedMatrix* packed,
          std::vector<uint8_t>* wide) {
  PackedMatrix& m = *packed;
  const Parts parts = lay_out(plain.outputs, plain.inputs, layout, memory, packed);
  const int pairs = m.pairs_each();
  std::memcpy(parts.scales, plain.scales, plain.outputs * sizeof(float));
  if (plain.bias != nullptr) std::memcpy(parts.bias, plain.bias, plain.outputs * sizeof(float));
  if (wide != nullptr && layout.pairs) wide->resize(static_cast<size_t>(plain.outputs) * pairs);
  int largest = 0;
  std::vector<int> places(m.padded_inputs / 4);
  find_places(nullptr, &places);
  std::vector<uint8_t> of_output(pairs), of_panel(pairs);
  std::vector<const int8_t*> rows;
  for (int p = 0; p < m.panels(); ++p) {
    const int first = p * m.panel, count = std::min(m.panel, plain.outputs - first);
    rows.clear();
    for (int o = 0; o < count; ++o) rows.push_back(plain.row(first + o));
    if (layout.pairs) {
      std::fill(of_panel.begin(), of_panel.end(), 0);
      for (int o = 0; o < count; ++o) {
        find_wide_pairs(rows[o], plain.inputs, of_output.data());
        for (int i = 0; i < pairs; ++i) of_panel[i] |= of_output[i];
        if (wide == nullptr) continue;
        std::copy(of_output.begin(), of_output.end(),
                  wide->begin() + static_cast<size_t>(first + o) * pairs);
      }
      uint16_t* order = parts.order + static_cast<size_t>(p) * pairs;
      parts.narrow[p] = static_cast<uint16_t>(order_pairs(of_panel.data(), pairs, order));
      find_places(order, &places);
    }
    for (int o = 0; o < count; ++o) {
      int sum = 0;
      for (int input = 0; input < plain.inputs; ++input) {
        const int weight = rows[o][input];
        sum += weight;
        largest = std::max(largest, weight < 0 ? -weight : weight);
      }
      parts.offsets[first + o] = -128 * sum;
    }
    place_rows(rows, plain.inputs, m.panel, places, parts.values + p * m.panel_bytes());
  }
  return largest <= kMaxWeight;
}

void pack_rows(const PlainMatrix& plain, const PackedMatrix& whole, const std::vector<uint8_t>& wide,
               const std::vector<int32_t>& rows, uint8_t* memory, PackedMatrix* packed) {
  PackedMatrix& m = *packed;
  const Layout layout = {whole.panel, whole.pairs != nullptr};
  const int outputs = static_cast<int>(rows.size());
  const Parts parts = lay_out(outputs, plain.inputs, layout, memory, packed);
  m.fetch_ahead = whole.fetch_ahead;
  const int pairs = m.pairs_each();
  for (int i = 0; i < outputs; ++i) {
    parts.scales[i] = whole.scales[rows[i]];
    parts.bias[i] = whole.bias[rows[i]];
    parts.offsets[i] = whole.offsets[rows[i]];
  }
  std::fill(parts.scales + outputs, parts.scales + m.padded_outputs, 0.0f);
  std::fill(parts.bias + outputs, parts.bias + m.padded_outputs, 0.0f);
  std::fill(parts.offsets + outputs, parts.offsets + m.padded_outputs, 0);
  std::vector<int> places(m.padded_inputs / 4);
  find_places(nullptr, &places);
  std::vector<uint8_t> of_panel(pairs);
  std::vector<const int8_t*> own_rows;
  for (int p = 0; p < m.panels(); ++p) {
    const int first = p * m.panel, count = std::min(m.panel, outputs - first);
    int8_t* values = parts.values + p * m.panel_bytes();
    const bool padded = count < m.panel || m.inputs < m.padded_inputs;
    if (padded) std::memset(values, 0, m.panel_bytes());
    own_rows.clear();
    for (int o = 0; o < count; ++o) own_rows.push_back(plain.row(rows[first + o]));
    if (layout.pairs) {
      std::fill(of_panel.begin(), of_panel.end(), 0);
      for (int o = 0; o < count; ++o) {
        const uint8_t* own = &wide[static_cast<size_t>(rows[first + o]) * pairs];
        for (int i = 0; i < pairs; ++i) of_panel[i] |= own[i];
      }
      uint16_t* order = parts.order + static_cast<size_t>(p) * pairs;
      parts.narrow[p] = static_cast<uint16_t>(order_pairs(of_panel.data(), pairs, order));
      find_places(order, &places);
    }
    place_rows(own_rows, plain.inputs, m.panel, places, values);
  }
}

}  // namespace bothends
