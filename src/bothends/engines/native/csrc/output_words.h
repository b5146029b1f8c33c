// The words that a sentence may use: parts of the output layer, packed for them alone.
//
// Per sentence and never per batch: what a sentence becomes must not depend on its neighbours. Words
// that most lists have are packed once, and shared; a sentence then packs only its own.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "memory.h"
#include "network.h"

namespace bothends {

class OutputWords {
 public:
  // `ids` in rising order, each once; there is at least one.
  OutputWords(const Network& network, std::vector<int32_t> ids);

  const PackedMatrix& matrix() const { return matrix_; }
  const std::vector<int32_t>& ids() const { return ids_; }
  int32_t size() const { return static_cast<int32_t>(ids_.size()); }
  // The place of a word among them, or -1.
  int32_t place(int32_t id) const;

 private:
  std::vector<int32_t> ids_;
  Bytes memory_;
  PackedMatrix matrix_;
};

// What one sentence may use: words that it shares with others, and its own. Probabilities are shared
// out among both. With neither, it may use all words.
class SentenceWords {
 public:
  SentenceWords(std::shared_ptr<const OutputWords> shared, std::unique_ptr<OutputWords> own)
      : shared_(std::move(shared)), own_(std::move(own)) {}

  bool all() const { return !shared_ && !own_; }
  const PackedMatrix* shared() const { return shared_ ? &shared_->matrix() : nullptr; }
  const PackedMatrix* own() const { return own_ ? &own_->matrix() : nullptr; }
  // Places count the shared words first.
  int32_t first_own() const { return shared_ ? shared_->size() : 0; }
  int32_t id(int32_t place) const;
  // The place of a word, or -1.
  int32_t place(int32_t id) const;

 private:
  std::shared_ptr<const OutputWords> shared_;
  std::unique_ptr<OutputWords> own_;
};

using WordsOfSentences = std::vector<SentenceWords>;

// From each sentence's ids, none meaning all words; those of `shared`, which may be null, are not
// packed again where a list has all of them. Without any list, an empty vector.
WordsOfSentences pack_words(const Network& network, std::shared_ptr<const OutputWords> shared,
                            const std::vector<std::vector<int32_t>>& ids);

}  // namespace bothends
