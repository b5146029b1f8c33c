#include "single_kernels.h"

#include <algorithm>
#include <string>
#include <vector>

#include "arrays.h"
#include "instruction_set.h"
#include "memory.h"

namespace bothends {
namespace {

// The integers `(rows - zero point) weights^T`, as floats; rows (M, K) and weights (N, K).
py::array_t<float> multiply(const std::string& instruction_set, const Array<uint8_t>& rows,
                            const Array<int8_t>& weights, bool positive) {
  const Kernels& kernels = choose_kernels(instruction_set);
  require(rows.ndim() == 2 && weights.ndim() == 2 && rows.shape(1) == weights.shape(1) &&
              rows.shape(1) < (1 << 16) && rows.shape(0) < (1 << 16) && weights.shape(0) < (1 << 20),
          "rows and weights must have the same inputs");
  const int count = static_cast<int>(rows.shape(0)), inputs = static_cast<int>(rows.shape(1));
  const int outputs = static_cast<int>(weights.shape(0));
  const std::vector<float> ones(std::max(count, outputs), 1.0f);
  const auto* scales = reinterpret_cast<const uint8_t*>(ones.data());
  const Bytes memory(packed_bytes(outputs, inputs, kernels.layout));
  PackedMatrix matrix;
  require(pack({weights.data(), scales, nullptr, outputs, inputs}, kernels.layout, memory.data(),
               &matrix),
          "weights have more than seven bits");
  const size_t stride = matrix.padded_inputs, out_stride = matrix.padded_outputs;
  Buffer<uint8_t> padded;
  Buffer<float> out;
  padded.reserve((count + size_t{16}) * stride);
  out.reserve(count * out_stride);
  for (int m = 0; m < count; ++m) {
    std::copy_n(rows.data() + static_cast<size_t>(m) * inputs, inputs, padded.data() + m * stride);
  }
  kernels.product({padded.data(), stride, ones.data(), count, positive}, matrix, 0, matrix.panels(),
                  out.data(), out_stride, false);
  py::array_t<float> result(std::vector<py::ssize_t>{count, outputs});
  for (int m = 0; m < count; ++m) {
    std::copy_n(out.data() + m * out_stride, outputs,
                result.mutable_data() + static_cast<size_t>(m) * outputs);
  }
  return result;
}

// The bytes and the scale of one row.
py::tuple quantise(const std::string& instruction_set, const Array<float>& row, bool positive) {
  const Kernels& kernels = choose_kernels(instruction_set);
  require(row.size() < (1 << 20), "a row is too long");
  const int size = static_cast<int>(row.size());
  Buffer<uint8_t> values;
  values.reserve(round_up(size, 64) + 64);
  float scale = 0;
  (positive ? kernels.quantise_relu : kernels.quantise)(row.data(), size, values.data(), &scale);
  py::array_t<uint8_t> result(size);
  std::copy_n(values.data(), size, result.mutable_data());
  return py::make_tuple(result, scale);
}

}  // namespace

void define_single_kernels(py::module_& module) {
  module.def("multiply", &multiply, "Integer products of one instruction set.");
  module.def("quantise", &quantise, "Rounding of one instruction set.");
}

}  // namespace bothends
