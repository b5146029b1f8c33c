// A matrix of 8-bit weights in the order in which the kernels read it.
//
// Outputs are cut into panels. Inside a panel, four inputs of each output lie side by side, output
// after output, then the next four inputs:
//
//     values[panel][input / 4][output in panel][input % 4]
//
// so that a vector register holds several outputs and no sum over a register is ever needed. The same
// order serves maddubs, VNNI and AMX tiles. Padding is zero: it adds nothing to a sum.
#pragma once

#include <cstddef>
#include <cstdint>

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

  int panels() const { return padded_outputs / panel; }
  size_t panel_bytes() const { return static_cast<size_t>(panel) * padded_inputs; }
};

// Rows of a matrix as a weight file holds them. Floats may be unaligned there.
struct PlainMatrix {
  const int8_t* values;  // (outputs, inputs)
  const uint8_t* scales;  // (outputs,) float32
  const uint8_t* bias;    // (outputs,) float32, or null
  int outputs, inputs;
};

size_t packed_bytes(int outputs, int inputs, int panel);

// Pack into `memory`, which has `packed_bytes` and is zero. False: a weight has more than seven bits.
bool pack(const PlainMatrix& plain, int panel, uint8_t* memory, PackedMatrix* packed);

}  // namespace bothends
