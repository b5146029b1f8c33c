#include "output_words.h"

#include <algorithm>
#include <cstring>

namespace bothends {

OutputWords::OutputWords(const Network& network, std::vector<int32_t> ids) : ids_(std::move(ids)) {
  const PlainMatrix& all = network.plain_output;
  const size_t width = all.inputs;
  std::vector<int8_t> values(ids_.size() * width);
  std::vector<uint8_t> scales(ids_.size() * sizeof(float)), bias(all.bias ? scales.size() : 0);
  for (size_t i = 0; i < ids_.size(); ++i) {
    const size_t id = ids_[i];
    std::memcpy(&values[i * width], all.values + id * width, width);
    std::memcpy(&scales[i * sizeof(float)], all.scales + id * sizeof(float), sizeof(float));
    if (all.bias) {
      std::memcpy(&bias[i * sizeof(float)], all.bias + id * sizeof(float), sizeof(float));
    }
  }
  const int count = static_cast<int>(ids_.size());
  const Layout layout = network.kernels.layout;
  memory_ = Bytes(packed_bytes(count, all.inputs, layout));
  pack({values.data(), scales.data(), all.bias ? bias.data() : nullptr, count, all.inputs}, layout,
       memory_.data(), &matrix_);
}

int32_t OutputWords::place(int32_t id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  return found != ids_.end() && *found == id ? static_cast<int32_t>(found - ids_.begin()) : -1;
}

}  // namespace bothends
