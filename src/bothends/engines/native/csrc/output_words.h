// The words that a sentence may use: a part of the output layer, packed for that sentence alone.
//
// Per sentence and never per batch: what a sentence becomes must not depend on its neighbours.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memory.h"
#include "network.h"

namespace bothends {

class OutputWords {
 public:
  // `ids` in rising order, each once; there is at least one. Probabilities are shared out among them.
  OutputWords(const Network& network, std::vector<int32_t> ids);

  const PackedMatrix& matrix() const { return matrix_; }
  int32_t id(int32_t place) const { return ids_[place]; }
  // The place of a word among them, or -1.
  int32_t place(int32_t id) const;

 private:
  std::vector<int32_t> ids_;
  Bytes memory_;
  PackedMatrix matrix_;
};

// Sentence by sentence, the words that it may use; a null pointer is all words.
using WordsOfSentences = std::vector<std::unique_ptr<OutputWords>>;

// From each sentence's ids, none meaning all words. Without any list, an empty vector.
WordsOfSentences pack_words(const Network& network, const std::vector<std::vector<int32_t>>& ids);

}  // namespace bothends
