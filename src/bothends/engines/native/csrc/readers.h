// From what Python hands over to what the network takes, each value checked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "arrays.h"
#include "encoder.h"
#include "network.h"

namespace bothends {

std::vector<int32_t> token_ids(const Integers& tokens, int words);

// Words in rising order, each once.
std::vector<int32_t> rising_ids(const Integers& words, int target_words);

// Source sentences without their padding.
SourceBatch read_source(const Integers& source, int words, int64_t pad);

Configuration read_configuration(const py::dict& values);

using AllowedArrays = std::optional<std::vector<Integers>>;

// The words that each of so many sentences may use; none: all sentences may use all.
std::vector<std::vector<int32_t>> read_allowed(const AllowedArrays& arrays, int sentences,
                                               int target_words);

}  // namespace bothends
