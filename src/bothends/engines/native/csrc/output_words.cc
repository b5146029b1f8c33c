#include "output_words.h"

#include <algorithm>
#include <iterator>
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

int32_t SentenceWords::id(int32_t place) const {
  return place < first_own() ? shared_->ids()[place] : own_->ids()[place - first_own()];
}

int32_t SentenceWords::place(int32_t id) const {
  const int32_t among_shared = shared_ ? shared_->place(id) : -1;
  if (among_shared >= 0) return among_shared;
  const int32_t among_own = own_ ? own_->place(id) : -1;
  return among_own < 0 ? -1 : first_own() + among_own;
}

WordsOfSentences pack_words(const Network& network, std::shared_ptr<const OutputWords> shared,
                            const std::vector<std::vector<int32_t>>& ids) {
  WordsOfSentences words;
  for (const std::vector<int32_t>& list : ids) {
    std::shared_ptr<const OutputWords> common;
    std::vector<int32_t> own = list;
    if (shared && std::includes(list.begin(), list.end(), shared->ids().begin(),
                                shared->ids().end())) {
      common = shared;
      own.clear();
      std::set_difference(list.begin(), list.end(), shared->ids().begin(), shared->ids().end(),
                          std::back_inserter(own));
    }
    words.emplace_back(std::move(common), own.empty() ? nullptr : std::make_unique<OutputWords>(
                                                                      network, std::move(own)));
  }
  return words;
}

}  // namespace bothends
