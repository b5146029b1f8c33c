// A matrix of 8-bit weights in the order in which the kernels read it.
//
// Outputs are cut into panels. Inside a panel, four inputs of each output lie side by side, output
// after output, then the next four inputs, which is called a step:
//
//     values[panel][step = input / 4][output in panel][input % 4]
//
// so that a vector register holds several outputs and no sum over a register is ever needed. The same
// order serves maddubs, VNNI and AMX tiles. Padding is zero: it adds nothing to a sum.
//
// **Paired steps**, for maddubs, which adds the products of two inputs into an int16. Two of these sums
// fit an int16 as well where the four weights are not large and of one sign, which is almost always.
// Then one instruction widens both, and multiplying takes three instructions where it took four. The
// packer checks every pair of steps: those that could overflow come last in their panel, where the
// kernel takes their steps one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bothends {

inline constexpr int kInputStep = 64;  // inputs are padded to a multiple of this
inline constexpr int kMaxWeight = 64;  // |weight|: two of them times 255 fit an int16

struct PackedMatrix {
  int outputs = 0, inputs = 0;
  int panel = 0;
  int padded_outputs = 0, padded_inputs = 0;
  const int8_t* values = nullptr;
  const float* scales = nullptr;     // (padded_outputs,)
  const float* bias = nullptr;       // (padded_outputs,), zeros if there is none
  const int32_t* offsets = nullptr;  // (padded_outputs,): -128 times the sum of an output's weights
  // Of paired steps only:
  const uint16_t* pairs = nullptr;   // (panels, pairs): the number of each, in the order of `values`
  const uint16_t* narrow = nullptr;  // (panels,): how many pairs fit an int16; the others follow

  bool fetch_ahead = true;  // not where it stays in a cache that is read sooner without

  int panels() const { return padded_outputs / panel; }
  int pairs_each() const { return padded_inputs / 8; }
  size_t panel_bytes() const { return static_cast<size_t>(panel) * padded_inputs; }
  const int8_t* panel_values(int p) const { return values + p * panel_bytes(); }
  const uint16_t* panel_pairs(int p) const { return pairs + static_cast<size_t>(p) * pairs_each(); }
};

// Rows of a matrix as a weight file holds them. Floats may be unaligned there.
struct PlainMatrix {
  const int8_t* values;  // (outputs, inputs)
  const uint8_t* scales;  // (outputs,) float32
  const uint8_t* bias;    // (outputs,) float32, or null
  int outputs, inputs;

  const int8_t* row(int output) const { return values + static_cast<size_t>(output) * inputs; }
};

// How the kernels at hand want it.
struct Layout {
  int panel;   // outputs that lie side by side
  bool pairs;  // whether steps are paired
};

size_t packed_bytes(int outputs, int inputs, Layout layout);

// Pack into `memory`, which has `packed_bytes` and is zero. False: a weight has more than seven bits.
// `wide`, if given, takes for each output which of its pairs of steps do not fit an int16: (outputs,
// pairs), nothing where steps are not paired.
bool pack(const PlainMatrix& plain, Layout layout, uint8_t* memory, PackedMatrix* packed,
          std::vector<uint8_t>* wide = nullptr);

// Pack only `rows` of a matrix that has been packed as a whole, which is much quicker: sums are known,
// and `wide` of the whole tells which pairs fit. `memory` need not be zero.
void pack_rows(const PlainMatrix& plain, const PackedMatrix& whole, const std::vector<uint8_t>& wide,
               const std::vector<int32_t>& rows, uint8_t* memory, PackedMatrix* packed);

}  // namespace bothends
