#include "output_words.h"

#include <algorithm>
#include <utility>

namespace bothends {

OutputWords::OutputWords(const Network& network, std::vector<int32_t> ids)
    : ids_(std::move(ids)),
      memory_(packed_bytes(static_cast<int>(ids_.size()), network.plain_output.inputs,
                           network.kernels.layout),
              false) {
  pack_rows(network.plain_output, network.output, network.wide_output, ids_, memory_.data(),
            &matrix_);
}

int32_t OutputWords::place(int32_t id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  return found != ids_.end() && *found == id ? static_cast<int32_t>(found - ids_.begin()) : -1;
}

WordsOfSentences pack_words(const Network& network, const std::vector<std::vector<int32_t>>& ids) {
  WordsOfSentences words;
  for (const std::vector<int32_t>& own : ids) {
    words.push_back(own.empty() ? nullptr : std::make_unique<OutputWords>(network, own));
  }
  return words;
}

}  // namespace bothends
