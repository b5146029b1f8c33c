// Reading source sentences: from token ids to the keys and values that the decoder attends to.
#pragma once

#include <cstdint>
#include <vector>

#include "layers.h"

namespace bothends {

// Source sentences without their padding: tokens and their places, sentence after sentence.
struct SourceBatch {
  std::vector<int32_t> tokens, places;
  std::vector<int> first;  // (sentences + 1,): where each begins in `tokens`

  int sentences() const { return static_cast<int>(first.size()) - 1; }
  int length(int sentence) const { return first[sentence + 1] - first[sentence]; }
};

// Keys and values of all decoder layers, (layers, tokens, entry_stride).
struct Memory {
  Buffer<float> entries;
  std::vector<int> first;  // of each sentence, as in its SourceBatch
  size_t tokens = 0;

  const float* sentence(const Network& network, int layer, int index) const {
    return entries.data() + (layer * tokens + first[index]) * network.entry_stride();
  }
  int length(int index) const { return first[index + 1] - first[index]; }
};

void encode(const Network& network, const SourceBatch& source, Workspace& workspace,
            Memory* memory);

}  // namespace bothends
